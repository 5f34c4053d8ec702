"""Compare systems with baselines, query by query, and correct for the number of comparisons."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from colbert_prf.errors import InputError
from colbert_prf.evaluation.result import Comparison
from colbert_prf.evaluation.significance import holm, paired_t_test

__all__ = ["FAMILIES", "Family", "compare"]

Family: TypeAlias = Literal["measure", "system", "baseline"]

FAMILIES: dict[Family, str] = {
    "measure": "all comparisons by a measure",
    "system": "the comparisons of a system by a measure",
    "baseline": "the comparisons with a baseline by a measure",
}
"""The comparisons that are corrected together, in words."""

_TIE = 1e-9  # values that differ by the order of a sum only are equal


def compare(
    values: Mapping[str, npt.NDArray[np.float64]],
    measure: str,
    *,
    baselines: Sequence[str],
    family: Family = "measure",
) -> list[Comparison]:
    """Compare systems with baselines by one measure.

    Parameters
    ----------
    values
        Per system, float64 of shape (num_queries,), the queries in the same order.
    measure
        The name of the measure.
    baselines
        Some systems, or all of them. The others are compared with each of them; where all are baselines, every system
        is compared with every other, and each such pair is one test.
    family
        Which tests Holm's correction is over: ``"measure"``, all comparisons by this measure; ``"system"``, those of
        one system with all baselines; ``"baseline"``, those of all systems with one baseline.

    Returns
    -------
    list of Comparison
        By system, and then by baseline, in their orders.

    Examples
    --------
    >>> values = {"old": np.array([0.1, 0.2, 0.3]), "new": np.array([0.2, 0.2, 0.5])}
    >>> (found,) = compare(values, "MAP", baselines=["old"])
    >>> round(found.difference, 6), found.wins, found.ties, found.losses, round(found.p_value, 4)
    (0.1, 2, 1, 0, 0.2254)
    """
    if family not in get_args(Family):
        raise InputError(f"unknown family {family!r}; choose {', '.join(get_args(Family))}")
    found = [_compared(values, measure, system, baseline) for system, baseline in _pairs(list(values), baselines)]
    families: dict[str, dict[frozenset[str], float]] = {}
    for one in found:
        families.setdefault(_family(one, family), {})[_pair(one)] = one.p_value
    corrected = {name: dict(zip(tests, holm(list(tests.values())), strict=True)) for name, tests in families.items()}
    return [replace(one, corrected_p_value=corrected[_family(one, family)][_pair(one)]) for one in found]


def _pairs(systems: Sequence[str], baselines: Sequence[str]) -> Iterator[tuple[str, str]]:
    all_against_all = set(systems) <= set(baselines)
    for system in systems:
        for baseline in baselines:
            if system != baseline and (all_against_all or system not in baselines):
                yield system, baseline


def _compared(values: Mapping[str, npt.NDArray[np.float64]], measure: str, system: str, baseline: str) -> Comparison:
    differences = values[system] - values[baseline]
    p_value = paired_t_test(differences)
    return Comparison(
        system=system,
        baseline=baseline,
        measure=measure,
        difference=float(values[system].mean() - values[baseline].mean()),
        p_value=p_value,
        corrected_p_value=p_value,
        wins=int((differences > _TIE).sum()),
        ties=int((np.abs(differences) <= _TIE).sum()),
        losses=int((differences < -_TIE).sum()),
    )


def _family(one: Comparison, family: Family) -> str:
    return {"measure": "", "system": one.system, "baseline": one.baseline}[family]


def _pair(one: Comparison) -> frozenset[str]:
    """A test is the same in both directions."""
    return frozenset((one.system, one.baseline))
