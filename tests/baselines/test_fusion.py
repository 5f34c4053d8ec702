"""Systems merged."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from colbert_prf import Hit, InputError, Ranking, Retriever
from colbert_prf.baselines.fusion import Fusion


class Given(Retriever):
    def __init__(self, scores):
        self.hits = tuple(Hit(doc_id, score) for doc_id, score in sorted(scores.items(), key=lambda item: -item[1]))

    def search(self, query, k=1000):
        return Ranking(query, self.hits[:k], {"score": 0.1})


ONE, TWO = Given({"a": 9.0, "b": 8.0, "c": 5.0}), Given({"c": 0.9, "d": 0.8, "a": 0.4})
rankings = st.dictionaries(st.sampled_from("abcdef"), st.floats(-10, 10), min_size=1).map(Given)


def scores(system, k=1000):
    return [(hit.doc_id, hit.score) for hit in system.search("any", k)]


def test_reciprocal_ranks_by_hand():
    found = dict(scores(Fusion([ONE, TWO])))
    assert found == pytest.approx({"a": 1 / 61 + 1 / 63, "c": 1 / 63 + 1 / 61, "b": 1 / 62, "d": 1 / 62})


def test_weighted_scores_by_hand():
    # ONE stretched: a 1, b 0.75, c 0; TWO: c 1, d 0.8, a 0.
    found = dict(scores(Fusion([ONE, TWO], method="scores", weights=[0.7, 0.3])))
    assert found == pytest.approx({"a": 0.7, "b": 0.525, "c": 0.3, "d": 0.24})


@pytest.mark.parametrize("method", ["ranks", "scores"])
@given(systems=st.lists(rankings, min_size=2, max_size=4))
def test_the_order_of_the_systems_does_not_matter(method, systems):
    assert scores(Fusion(systems, method=method)) == scores(Fusion(systems[::-1], method=method))


@pytest.mark.parametrize("method", ["ranks", "scores"])
@given(system=rankings)
def test_one_system_keeps_its_order(method, system):
    plain, fused = system.search("any"), Fusion([system, system], method=method).search("any")
    places = {hit.doc_id: hit.score for hit in plain}
    found = [places[doc_id] for doc_id in fused.doc_ids]
    assert found == sorted(found, reverse=True)
    assert sorted(fused.doc_ids) == sorted(plain.doc_ids)


def test_depth_k_and_timings():
    fusion = Fusion([ONE, TWO], depth=1)
    ranking = fusion.search("any", 1)
    assert ranking.doc_ids == ["a"]
    assert set(ranking.timings) == {"1: score", "2: score"}
    assert len(fusion.search("any", 3)) == 3


@pytest.mark.parametrize(
    "wrong", [{"weights": [1.0]}, {"weights": [1.0, -1.0]}, {"constant": -1}, {"depth": 0}, {"method": "votes"}]
)
def test_impossible_parameters_are_refused(wrong):
    with pytest.raises(InputError):
        Fusion([ONE, TWO], **wrong)
    with pytest.raises(InputError):
        Fusion([])
