"""Documents ranked by their best passage (MaxP).

Dai and Callan, Deeper Text Understanding for IR with Contextual Neural Language Modeling, SIGIR 2019.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from colbert_prf.errors import InputError
from colbert_prf.index.collection import Collection
from colbert_prf.index.passages import document_of, passages_named
from colbert_prf.types import Hits, Ranking

__all__ = ["Group", "by_document", "check_group", "expand_to_passages"]

Group = Literal["document"]
PASSAGES_PER_DOCUMENT = 4
"""Passages looked at first for each document that is wanted, and how many times as many after that."""


def check_group(group: str | None, collection: Collection) -> None:
    """Refuse to group what was not split."""
    if group is None:
        return
    if group != "document":
        raise InputError(f"group must be 'document' or None, found {group!r}")
    if collection.passages is None:
        raise InputError(
            "group='document' needs an index of passages: create one with Index.create(..., passages=Passages()) or "
            "`colbert-prf index CORPUS INDEX --passages 180`"
        )


def by_document(search: Callable[[int], Ranking], k: int, num_passages: int) -> Ranking:
    """Rank documents by their best passage, searching deeper until there are enough.

    Parameters
    ----------
    search
        Finds the best so many passages.
    k
        How many documents are wanted.
    num_passages
        How many passages there are.
    """
    depth = min(PASSAGES_PER_DOCUMENT * k, num_passages)
    while True:
        ranking = search(depth)
        grouped = _grouped(ranking, k)
        if len(grouped) >= k or len(ranking) < depth or depth >= num_passages:
            return grouped
        depth = min(PASSAGES_PER_DOCUMENT * depth, num_passages)


def expand_to_passages(collection: Collection, doc_ids: tuple[str, ...]) -> tuple[str, ...]:
    """Ids of passages as they are, those of documents as all of their passages."""

    def is_known(doc_id: str) -> bool:
        return collection.find(doc_id) is not None

    return tuple(
        passage
        for doc_id in doc_ids
        for passage in ([doc_id] if is_known(doc_id) else passages_named(doc_id, is_known) or [doc_id])
    )


def _grouped(ranking: Ranking, k: int) -> Ranking:
    """The documents of a ranking of passages, each with the score and the text of its best."""
    best: dict[str, int] = {}
    passages, scores = ranking.doc_ids, ranking.scores
    for rank, passage in enumerate(passages):
        best.setdefault(document_of(passage), rank)
    doc_ids, ranks = list(best)[:k], list(best.values())[:k]
    hits = Hits(
        doc_ids,
        [scores[rank] for rank in ranks],
        lambda number: ranking.hits[ranks[number]].text,
        lambda number: ranking.hits[ranks[number]].metadata,
        [passages[rank] for rank in ranks],
    )
    before = None if ranking.read_before is None else lambda: _grouped(_before(ranking), k)
    return Ranking(ranking.query, hits, ranking.timings, ranking.expansion, before)


def _before(ranking: Ranking) -> Ranking:
    assert ranking.before is not None
    return ranking.before
