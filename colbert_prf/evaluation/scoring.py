"""From judgements and runs to an :class:`Evaluation`."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from colbert_prf.errors import DatasetWarning, InputError
from colbert_prf.evaluation.checks import check_qrels, check_run
from colbert_prf.evaluation.comparing import Family, compare
from colbert_prf.evaluation.measures import DEFAULT_MEASURES, Measure, measure_queries, parse_measures
from colbert_prf.evaluation.order import ranks_as_scores
from colbert_prf.evaluation.result import Comparison, Evaluation

__all__ = ["Qrels", "Run", "evaluate"]

Qrels: TypeAlias = "Mapping[str, Mapping[str, int]]"
"""Grades by query id and document id, as :func:`colbert_prf.datasets.read_qrels` gives them."""

Run: TypeAlias = "Mapping[str, Mapping[str, float]]"
"""Scores by query id and document id, as :func:`colbert_prf.datasets.read_run` gives them."""


def evaluate(
    qrels: Qrels,
    runs: Mapping[str, Run],
    measures: Sequence[str] = DEFAULT_MEASURES,
    *,
    relevance: int = 1,
    baselines: Sequence[str] | Literal["all"] = (),
    family: Family = "measure",
    alpha: float = 0.05,
    only_found: bool = False,
) -> Evaluation:
    """Evaluate runs against judgements, and compare them with baselines.

    The order of a run is that of trec_eval: by falling score, equal scores by falling document id. Every judged query
    counts; one that a run lacks counts as one for which it found nothing.

    Parameters
    ----------
    qrels
        ``qrels[query_id][doc_id]`` is a grade; 0 and below are not relevant.
    runs
        The run of each system, by its name: ``runs[system][query_id][doc_id]`` is a score.
    measures
        Expressions of ir_measures.
    relevance
        The lowest relevant grade of binary measures (AP, RR, R, P); the paper uses 2 on TREC Deep Learning. nDCG
        keeps its graded gains.
    baselines
        Names of runs the others are compared with by a paired t-test, or ``"all"`` to compare each with each.
    family
        Which tests Holm's correction is over; see :func:`~colbert_prf.evaluation.comparing.compare`.
    alpha
        The level of significance.
    only_found
        Average over the judged queries that every run has, instead of all.

    Returns
    -------
    Evaluation

    Raises
    ------
    InputError
        Judgements in which nothing is relevant, a run without documents or without a judged query, a score that is not
        finite, an unknown measure or baseline.

    Warns
    -----
    DatasetWarning
        Queries without judgements, without relevant documents or missing from a run; negative grades.

    Examples
    --------
    >>> qrels = {"q1": {"d1": 2, "d2": 1}, "q2": {"d3": 2}}
    >>> old = {"q1": {"d2": 3.0, "d1": 2.0}, "q2": {"d1": 2.0, "d3": 1.0}}
    >>> new = {"q1": {"d1": 3.0, "d2": 2.0}, "q2": {"d1": 2.0, "d3": 1.0}}
    >>> found = evaluate(qrels, {"old": old, "new": new}, ["MAP", "nDCG@10"], relevance=2, baselines=["old"])
    >>> found.means.round(3)
    array([[0.5 , 0.745],
           [0.75 , 0.815]])
    >>> [(one.measure, one.wins, one.ties) for one in found.comparisons]
    [('MAP', 1, 1), ('nDCG@10', 1, 1)]
    """
    parsed = parse_measures(measures, relevance=relevance)
    if not runs:
        raise InputError("no run to evaluate; give one or more")
    if not 0 < alpha < 1:
        raise InputError(f"the level of significance must be between 0 and 1, found {alpha}; 0.05 is usual")
    chosen = _baselines(baselines, runs)
    check_qrels(qrels, relevance)
    for name, run in runs.items():
        check_run(name, run, qrels, only_found=only_found)
    judged = _found_everywhere(qrels, runs) if only_found else qrels
    values = np.stack([_measured(parsed, judged, run) for run in runs.values()])
    comparisons: list[Comparison] = []
    for row, measure in enumerate(parsed if chosen else ()):
        of_systems = dict(zip(runs, values[:, row], strict=True))
        comparisons += compare(of_systems, measure.name, baselines=chosen, family=family)
    return Evaluation(tuple(runs), parsed, tuple(judged), values, chosen, tuple(comparisons), alpha)


def _measured(measures: Sequence[Measure], judged: Qrels, run: Run) -> npt.NDArray[np.float64]:
    """Each measure of each judged query; one that the run lacks has found nothing."""
    return measure_queries(measures, judged, {query: ranks_as_scores(run[query]) for query in judged if run.get(query)})


def _baselines(asked: Sequence[str] | Literal["all"], runs: Mapping[str, Run]) -> tuple[str, ...]:
    """The names of the runs to compare with, each once."""
    chosen = tuple(runs) if asked == "all" else tuple(dict.fromkeys(asked))
    for name in chosen:
        if name not in runs:
            raise InputError(f"the baseline {name!r} is not among the runs, {', '.join(runs)}")
    if chosen and len(runs) == 1:
        raise InputError(f"there is no run to compare the baseline {chosen[0]!r} with; give another")
    return chosen


def _found_everywhere(qrels: Qrels, runs: Mapping[str, Run]) -> Qrels:
    found = {query_id: grades for query_id, grades in qrels.items() if all(run.get(query_id) for run in runs.values())}
    if not found:
        raise InputError("no judged query is in every run; leave a run out, or count missing queries as 0")
    if len(found) < len(qrels):
        message = f"averages are over the {len(found)} of {len(qrels)} judged queries that every run has"
        warnings.warn(message, DatasetWarning, stacklevel=3)
    return found
