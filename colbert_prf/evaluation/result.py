"""What an evaluation found: a value per system, measure and query, and how systems compare."""

from __future__ import annotations

import string
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from colbert_prf.errors import InputError
from colbert_prf.evaluation.measures import Measure

__all__ = ["LETTERS", "Comparison", "Evaluation"]

LETTERS = string.ascii_lowercase + string.ascii_uppercase
"""What stands for the baselines, in their order, in the superscripts of a table."""


@dataclass(frozen=True)
class Comparison:
    """One system against one baseline by one measure, over the same queries.

    Parameters
    ----------
    system, baseline, measure
        Their names.
    difference
        The system's mean minus the baseline's.
    p_value
        Of the two-sided paired t-test.
    corrected_p_value
        The same after Holm's correction over the family of tests.
    wins, ties, losses
        The number of queries on which the system is better, equal and worse.
    """

    system: str
    baseline: str
    measure: str
    difference: float
    p_value: float
    corrected_p_value: float
    wins: int
    ties: int
    losses: int

    def is_improvement(self, alpha: float) -> bool:
        """Tell whether the system is better, and significantly so at level ``alpha`` after correction."""
        return self.difference > 0 and self.corrected_p_value < alpha


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Values of systems by measures over queries, with their comparisons.

    Parameters
    ----------
    systems
        Names, in the order given.
    measures
        In the order given.
    query_ids
        The queries averaged over, in the order of the judgements.
    values
        Float64 of shape (num_systems, num_measures, num_queries).
    baselines
        The names of the systems that others were compared with; empty where nothing was compared.
    comparisons
        Of every system with every baseline by every measure.
    alpha
        The level of significance.

    Examples
    --------
    >>> from colbert_prf.evaluation import evaluate
    >>> qrels = {"q1": {"d1": 1}, "q2": {"d2": 1}}
    >>> found = evaluate(qrels, {"mine": {"q1": {"d1": 1.0}, "q2": {"d1": 2.0, "d2": 1.0}}}, ["MRR"])
    >>> found.mean("mine", "MRR"), found.per_query("mine", "MRR")
    (0.75, {'q1': 1.0, 'q2': 0.5})
    """

    systems: tuple[str, ...]
    measures: tuple[Measure, ...]
    query_ids: tuple[str, ...]
    values: npt.NDArray[np.float64]
    baselines: tuple[str, ...] = ()
    comparisons: tuple[Comparison, ...] = ()
    alpha: float = 0.05

    def __post_init__(self) -> None:
        shape = (len(self.systems), len(self.measures), len(self.query_ids))
        if self.values.shape != shape:
            raise InputError(f"Evaluation.values must have shape {shape}, found {self.values.shape}")
        if len(self.baselines) > len(LETTERS):
            raise InputError(
                f"there are letters for {len(LETTERS)} baselines, found {len(self.baselines)}; compare with fewer"
            )

    @property
    def measure_names(self) -> tuple[str, ...]:
        """The names of the measures."""
        return tuple(measure.name for measure in self.measures)

    @property
    def means(self) -> npt.NDArray[np.float64]:
        """The mean over queries, of shape (num_systems, num_measures)."""
        means: npt.NDArray[np.float64] = self.values.mean(axis=2)
        return means

    def mean(self, system: str, measure: str) -> float:
        """One mean, by names."""
        return float(self._row(system, measure).mean())

    def per_query(self, system: str, measure: str) -> dict[str, float]:
        """The values of one system by one measure, by query id."""
        return dict(zip(self.query_ids, self._row(system, measure).tolist(), strict=True))

    def letter(self, system: str) -> str:
        """The letter of a baseline; nothing for a system that is none."""
        return LETTERS[self.baselines.index(system)] if system in self.baselines else ""

    def compared(self, system: str, measure: str) -> Iterator[Comparison]:
        """The comparisons of one system by one measure, in the order of the baselines."""
        for comparison in self.comparisons:
            if comparison.system == system and comparison.measure == measure:
                yield comparison

    def improves_on(self, system: str, measure: str) -> tuple[str, ...]:
        """The baselines that a system is significantly better than by one measure."""
        return tuple(one.baseline for one in self.compared(system, measure) if one.is_improvement(self.alpha))

    def letters(self, system: str, measure: str) -> str:
        """The letters of the baselines that a system is significantly better than by one measure."""
        return "".join(self.letter(baseline) for baseline in self.improves_on(system, measure))

    def _row(self, system: str, measure: str) -> npt.NDArray[np.float64]:
        for name, known in ((system, self.systems), (measure, self.measure_names)):
            if name not in known:
                raise InputError(f"{name!r} was not evaluated; there are {', '.join(known)}")
        row: npt.NDArray[np.float64] = self.values[self.systems.index(system), self.measure_names.index(measure)]
        return row
