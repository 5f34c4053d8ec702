"""How good rankings are: recall of exact MaxSim, and the measures of TREC's judgements."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from latency import CUTOFFS
from numpy.typing import NDArray
from systems import brute_force, encoded_queries
from vectors import YEARS, Texts

from colbert_prf.datasets import read_qrels

NO_DOCUMENT = -1
"""Fills a row of rankings up when fewer documents were found."""


def exact_rankings(documents: Texts, queries: Texts, kept: Path) -> NDArray[np.int64]:
    """The best documents by float32 MaxSim over the vectors themselves, computed once; of shape (num_queries, 1000)."""
    if not kept.exists():
        search = brute_force(documents).search
        found = [np.asarray(search(query, max(CUTOFFS), 1)) for query in encoded_queries(queries)]
        np.save(kept, rows(found, max(CUTOFFS)))
    exact: NDArray[np.int64] = np.load(kept)
    return exact


def rows(rankings: list[NDArray[np.int64]], cutoff: int) -> NDArray[np.int64]:
    """Rankings of some length as the rows of one array.

    >>> rows([np.array([4, 2]), np.array([7])], 2).tolist()
    [[4, 2], [7, -1]]
    """
    filled = np.full((len(rankings), cutoff), NO_DOCUMENT, dtype=np.int64)
    for row, ranking in zip(filled, rankings, strict=True):
        row[: len(ranking)] = ranking
    return filled


def recall(found: NDArray[np.int64], exact: NDArray[np.int64], cutoff: int) -> float:
    """The part of the exact best ``cutoff`` that was found among the first ``cutoff``, mean over queries.

    >>> recall(np.array([[4, 2, 9]]), np.array([[2, 4, 9]]), 2), recall(np.array([[4, -1]]), np.array([[2, 4]]), 2)
    (1.0, 0.5)
    """
    shares = [
        len(np.intersect1d(best := expected[:cutoff][expected[:cutoff] != NO_DOCUMENT], row[:cutoff])) / len(best)
        for row, expected in zip(found, exact, strict=True)
    ]
    return float(np.mean(shares))


def read_judgements(data: Path, documents: Texts) -> dict[str, dict[str, dict[str, int]]]:
    """The judgements of each year that speak of a document of the collection; topics left without a relevant one go."""
    known = set(documents.names.tolist())
    judgements = {}
    for year in YEARS:
        qrels = {
            query: {document: grade for document, grade in grades.items() if document in known}
            for query, grades in read_qrels(data / f"qrels.{year}.txt").items()
        }
        judgements[year] = {query: grades for query, grades in qrels.items() if max(grades.values(), default=0) >= 2}
    return judgements


def judged_quality(
    found: NDArray[np.int64], documents: Texts, queries: Texts, judgements: Mapping[str, dict[str, dict[str, int]]]
) -> dict[str, dict[str, float]]:
    """nDCG@10 and MAP (relevant from grade 2) of rankings of 1,000, for each year and over all topics."""
    from ir_measures import AP, calc_aggregate, nDCG

    names = documents.names.tolist()
    run = {
        # The order is what counts: equal scores of a system would be ordered anew by the evaluation.
        query: {names[place]: float(-rank) for rank, place in enumerate(row[row != NO_DOCUMENT].tolist())}
        for query, row in zip(queries.names.tolist(), found, strict=True)
    }
    together = {query: grades for qrels in judgements.values() for query, grades in qrels.items()}
    table = {}
    for name, qrels in {**judgements, "all": together}.items():
        if qrels:
            measures = calc_aggregate([nDCG @ 10, AP(rel=2)], qrels, {query: run[query] for query in qrels})
            table[name] = {"ndcg@10": measures[nDCG @ 10], "map": measures[AP(rel=2)], "topics": len(qrels)}
    return table
