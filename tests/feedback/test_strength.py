"""How much added vectors count: ``weight`` and ``beta``, worked out by hand; what is refused; defaults and laws."""

from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest

from colbert_prf import CentroidPRF, ColbertPRF, EncodedQuery, InputError
from colbert_prf.experiments.run import feedback_facts, tag_of
from colbert_prf.feedback.methods import make_feedback
from colbert_prf.feedback.strength import DEFAULT, DEFAULT_AS_PUBLISHED, Strength

SIGMAS = np.array([6.0, 3.0, 1.0])
METHODS = [ColbertPRF, CentroidPRF]
DEFAULTS = {ColbertPRF: ("weight", 0.15), CentroidPRF: ("weight", 0.1)}


def query(*weights: float) -> EncodedQuery:
    count = len(weights)
    return EncodedQuery(np.arange(count, dtype=np.int32), np.eye(count, dtype=np.float32), np.float32(weights))


@pytest.mark.parametrize("method", METHODS)
def test_a_weight_is_shared_out_by_sigma_and_grows_with_the_query(method):
    """Queries weigh 4, and 8: half of that is 2, and 4. Σσ = 10, so the vectors get 6, 3 and 1 tenths of it."""
    feedback = method(weight=0.5)
    assert feedback.weights_of(query(1, 1, 1, 1), SIGMAS).tolist() == pytest.approx([1.2, 0.6, 0.2])
    assert feedback.weights_of(query(4, 3.5, 0.5), SIGMAS).tolist() == pytest.approx([2.4, 1.2, 0.4])


@pytest.mark.parametrize("method", METHODS)
def test_beta_multiplies_each_sigma_whatever_the_query_weighs(method):
    feedback = method(beta=0.5)
    for weights in ((1, 1, 1, 1), (4, 3.5, 0.5)):
        assert feedback.weights_of(query(*weights), SIGMAS).tolist() == [3, 1.5, 0.5]


@pytest.mark.parametrize("feedback", [ColbertPRF(weight=0.5), ColbertPRF(beta=0.5)])
def test_without_any_sigma_nothing_weighs_anything(feedback):
    assert feedback.weights_of(query(1, 1), np.zeros(2)).tolist() == [0, 0]
    assert feedback.weights_of(query(1, 1), np.zeros(0)).tolist() == []


@pytest.mark.parametrize("method", METHODS)
def test_the_strength_tells_what_is_in_force(method):
    assert method().strength == DEFAULTS[method]
    assert method(weight=0).strength == ("weight", 0)
    assert method(beta=0).strength == ("beta", 0)
    assert (method(weight=0.2).strength.is_relative, method(beta=0.2).strength.is_relative) == (True, False)


def test_compat_paper_has_another_default_and_takes_what_is_given():
    published = ColbertPRF(compat="paper")
    assert published.strength == DEFAULT_AS_PUBLISHED == Strength("beta", 0.1)
    assert published.weights_of(query(1, 1), SIGMAS).tolist() == pytest.approx([0.6, 0.3, 0.1])
    assert replace(published, beta=1.0).strength == ("beta", 1.0)
    assert replace(published, weight=0.5).strength == ("weight", 0.5)
    assert replace(published, compat=None).strength == DEFAULT, "the default was not written into it"


@pytest.mark.parametrize("name", ["weight", "beta"])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("value", [-0.1, float("nan"), "1", True, [1]])
def test_what_is_no_number_of_at_least_0_is_refused(method, name, value):
    with pytest.raises(InputError) as refused:
        method(**{name: value})
    assert str(refused.value) == f"{name} must be a number of at least 0, found {value!r}"


@pytest.mark.parametrize("name", ["weight", "beta", "push"])
@pytest.mark.parametrize("value", [float("inf"), 1e30, 1e39, 10**400])
def test_what_makes_weights_no_float32_holds_is_refused(name, value):
    with pytest.raises(InputError, match=rf"^{name} must be below 1e\+30, or no float32 holds a weight, found (inf|1)"):
        ColbertPRF(**{name: value})


def test_both_at_once_are_refused():
    message = (
        "weight and beta exclude each other, found weight=0.1 and beta=1; leave out beta to weigh .* or weight for"
    )
    for make in (
        lambda: ColbertPRF(weight=0.1, beta=1),
        lambda: CentroidPRF(weight=0.1, beta=1),
        lambda: make_feedback("prf", weight=0.1, beta=1),
        lambda: replace(ColbertPRF(weight=0.1), beta=1),
    ):
        with pytest.raises(InputError, match=message):
            make()
    assert replace(ColbertPRF(weight=0.1), weight=None, beta=1) == ColbertPRF(beta=1)


def test_the_old_name_is_refused():
    with pytest.raises(TypeError, match="relative"):
        ColbertPRF(beta=1, relative=False)
    with pytest.raises(
        InputError, match="no parameter 'relative'; weight is relative to the query, beta is the paper's"
    ):
        make_feedback("centroid", relative=True)


@pytest.mark.parametrize(
    "feedback", [ColbertPRF(), ColbertPRF(weight=0.5), CentroidPRF(beta=1), ColbertPRF(compat="paper")]
)
def test_they_are_frozen_values(feedback):
    again = pickle.loads(pickle.dumps(feedback))  # noqa: S301
    assert again == feedback == replace(feedback)
    assert hash(again) == hash(feedback)
    assert again.strength == feedback.strength
    with pytest.raises(FrozenInstanceError):
        feedback.weight = 0.3
    assert ColbertPRF(weight=0.5) != ColbertPRF(beta=0.5)


def test_facts_and_tags_say_what_is_in_force():
    """A run is taken for the same only if they are equal, so a default is written out."""
    assert [feedback_facts(ColbertPRF())[name] for name in ("weight", "beta")] == [0.15, None]
    assert feedback_facts(ColbertPRF()) == feedback_facts(ColbertPRF(weight=0.15))
    assert tag_of(ColbertPRF(weight=1)) == "colbert-prf.prf.fb1.K24.fe20.weight1"
    assert tag_of(ColbertPRF(compat="paper")) == "colbert-prf.prf.fb1.K24.fe20.beta0.1.compatpaper"
