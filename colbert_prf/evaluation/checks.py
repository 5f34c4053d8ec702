"""Refuse judgements and runs that cannot be meant, and warn of those that are odd."""

from __future__ import annotations

import math
import warnings
from collections.abc import Collection, Mapping

from colbert_prf.errors import DatasetWarning, InputError

__all__ = ["check_qrels", "check_run"]

_HIGHEST_GRADE = 10_000  # trec_eval keeps a table as long as the highest grade


def check_qrels(qrels: Mapping[str, Mapping[str, int]], relevance: int) -> None:
    """Check that something is relevant; warn of queries without relevant documents and of negative grades.

    Parameters
    ----------
    qrels
        Grades by query id and document id.
    relevance
        The lowest relevant grade.
    """
    grades = [(grade, query_id, doc_id) for query_id, docs in qrels.items() for doc_id, grade in docs.items()]
    if not grades:
        raise InputError("there are no judgements; give some")
    highest, query_id, doc_id = max(grades)
    if highest < relevance:
        raise InputError(
            f"no judgement has grade {relevance} or more, the highest is {highest}, so nothing counts as relevant; "
            "lower the lowest relevant grade"
        )
    if highest > _HIGHEST_GRADE:
        raise InputError(
            f"document {doc_id!r} of query {query_id!r} has grade {highest}; grades above {_HIGHEST_GRADE} cannot be "
            "measured, so give smaller ones"
        )
    negative = [entry for entry in grades if entry[0] < 0]
    if negative:
        grade, query_id, doc_id = negative[0]
        _warn(
            f"{len(negative)} of {len(grades)} judgements have a negative grade (first: {grade} of document {doc_id!r} "
            f"for query {query_id!r}); they count as not relevant"
        )
    barren = [query_id for query_id, docs in qrels.items() if max(docs.values(), default=0) < relevance]
    if barren:
        _warn(
            f"{len(barren)} of {len(qrels)} judged queries have no document of grade {relevance} or more "
            f"(first: {barren[0]!r}); binary measures are 0 there, whatever a system finds"
        )


def check_run(
    name: str, run: Mapping[str, Mapping[str, float]], qrels: Collection[str], *, only_found: bool = False
) -> None:
    """Check that a run answers judged queries with finite scores; warn of queries on one side only.

    Parameters
    ----------
    name
        Of the run, for messages.
    run
        Scores by query id and document id.
    qrels
        The judged queries.
    only_found
        Whether missing queries are left out of the averages, so that they need no warning.
    """
    found = [query_id for query_id, docs in run.items() if docs]
    if not found:
        raise InputError(f"run {name!r} has no document; there is nothing to evaluate")
    for query_id, docs in run.items():
        for doc_id, score in docs.items():
            if not math.isfinite(score):
                raise InputError(f"run {name!r} gives document {doc_id!r} of query {query_id!r} the score {score}")
    unjudged = [query_id for query_id in found if query_id not in qrels]
    if len(unjudged) == len(found):
        raise InputError(
            f"none of the {len(found)} queries of run {name!r} is judged (first: {found[0]!r}, while the first judged "
            f"is {next(iter(qrels))!r}); use the judgements of the same topics"
        )
    if unjudged:
        _warn(
            f"{len(unjudged)} of the {len(found)} queries of run {name!r} have no judgements (first: {unjudged[0]!r}); "
            "they do not count"
        )
    missing = [query_id for query_id in qrels if not run.get(query_id)]
    if missing and not only_found:
        _warn(
            f"run {name!r} lacks {len(missing)} of {len(qrels)} judged queries (first: {missing[0]!r}); they count as 0"
        )


def _warn(message: str) -> None:
    warnings.warn(message, DatasetWarning, stacklevel=4)
