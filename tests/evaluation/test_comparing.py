from __future__ import annotations

import numpy as np
import pytest

from colbert_prf.errors import InputError
from colbert_prf.evaluation import compare, holm

VALUES = {
    "old": np.array([0.1, 0.2, 0.3, 0.4]),
    "older": np.array([0.2, 0.1, 0.3, 0.3]),
    "new": np.array([0.4, 0.5, 0.5, 0.8]),
    "newer": np.array([0.1 + 0.2, 0.2, 0.2, 0.9]),
}


def test_wins_ties_and_losses_are_counted_by_query():
    (found,) = compare({"old": VALUES["old"], "newer": VALUES["newer"]}, "MAP", baselines=["old"])
    assert (found.system, found.baseline, found.measure) == ("newer", "old", "MAP")
    assert (found.wins, found.ties, found.losses) == (2, 1, 1)
    assert found.difference == pytest.approx(0.15)


def test_a_difference_in_the_last_bit_is_a_tie():
    (found,) = compare({"old": np.array([0.3, 0.5]), "new": np.array([0.1 + 0.2, 0.5])}, "MAP", baselines=["old"])
    assert (found.wins, found.ties, found.losses) == (0, 2, 0)


def test_baselines_are_not_compared_with_each_other():
    found = compare(VALUES, "MAP", baselines=["older", "old"])
    assert [(one.system, one.baseline) for one in found] == [
        ("new", "older"),
        ("new", "old"),
        ("newer", "older"),
        ("newer", "old"),
    ]


def pairs(found, **chosen):
    return [one for one in found if all(getattr(one, key) == value for key, value in chosen.items())]


@pytest.mark.parametrize(
    ("family", "families"),
    [
        ("measure", [{}]),
        ("system", [{"system": "new"}, {"system": "newer"}]),
        ("baseline", [{"baseline": "old"}, {"baseline": "older"}]),
    ],
)
def test_holm_is_over_the_family(family, families):
    found = compare(VALUES, "MAP", baselines=["old", "older"], family=family)
    for chosen in families:
        members = pairs(found, **chosen)
        assert len(members) == 4 // len(families)
        assert [one.corrected_p_value for one in members] == holm([one.p_value for one in members])


def test_each_with_each_is_one_test_per_pair():
    found = compare(VALUES, "MAP", baselines=list(VALUES))
    assert len(found) == 12
    once = [one for one in found if list(VALUES).index(one.system) < list(VALUES).index(one.baseline)]
    assert [one.corrected_p_value for one in once] == holm([one.p_value for one in once])
    for one in found:
        (back,) = pairs(found, system=one.baseline, baseline=one.system)
        assert (back.wins, back.ties, back.losses) == (one.losses, one.ties, one.wins)
        assert back.difference == -one.difference
        assert back.corrected_p_value == one.corrected_p_value


def test_an_unknown_family():
    with pytest.raises(InputError, match="unknown family 'column'; choose measure, system, baseline"):
        compare(VALUES, "MAP", baselines=["old"], family="column")
