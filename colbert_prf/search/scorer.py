"""Weighted MaxSim of documents of an index, for one query: approximate by their centroids, or exact."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from colbert_prf.errors import InputError
from colbert_prf.index.collection import Collection
from colbert_prf.index.segment import Segment
from colbert_prf.index.snapshot import Snapshot
from colbert_prf.kernels import interaction, packed, stored, topk
from colbert_prf.kernels.workers import ALONE, Workers, WorkQueue
from colbert_prf.types import EncodedQuery, Vectors

if TYPE_CHECKING:
    from colbert_prf.kernels.interaction import ByteTable
    from colbert_prf.kernels.packed import ByteQuery

__all__ = [
    "DocumentsBySegment",
    "Mask",
    "Positions",
    "ScoredDocuments",
    "Scorer",
    "Scores",
    "Scoring",
    "StoredScorer",
    "TopDocuments",
    "check_scores",
    "exact_scores",
]

Positions: TypeAlias = npt.NDArray[np.int64]
Scores: TypeAlias = npt.NDArray[np.float32]
Mask: TypeAlias = npt.NDArray[np.bool_] | None
"""Whether each document may be found; None for all."""
DocumentsBySegment: TypeAlias = Sequence[Positions | None]
"""For each segment some of its documents, ascending from 0; None for all of them."""

LARGEST_SCORE = float(np.finfo(np.float32).max) / 16
"""A sixteenth of what a float32 holds, because scores are added and subtracted on their way."""


class TopDocuments(NamedTuple):
    """Positions of documents and their scores, best first; equal scores by position."""

    positions: Positions
    scores: Scores


class ScoredDocuments(NamedTuple):
    """Positions of documents, ascending, and their scores; minus infinity for one without vectors."""

    positions: Positions
    scores: Scores

    def top(self, k: int) -> TopDocuments:
        """The best of them, except those without vectors."""
        order = topk.best_sorted(self.scores, k)
        order = order[np.isfinite(self.scores[order])]
        return TopDocuments(self.positions[order], self.scores[order])

    def union(self, other: ScoredDocuments) -> ScoredDocuments:
        """The documents of both, each once."""
        positions, rows = np.unique(np.concatenate([self.positions, other.positions]), return_index=True)
        return ScoredDocuments(positions, np.concatenate([self.scores, other.scores])[rows])


class Scoring(Protocol):
    """Documents that are being scored."""

    def finish(self) -> Scores:
        """Take part in what is left to do, and give the scores of all."""


class Scorer(Protocol):
    """Compares the documents of an index with one query; documents are given by ascending positions."""

    def estimates(self, positions: Positions) -> Scores:
        """Approximate scores of some documents, from the centroids of their vectors."""

    def scores(self, positions: Positions) -> Scores:
        """Exact weighted MaxSim over the decoded vectors; minus infinity for a document without vectors."""

    def begin(self, positions: Positions) -> Scoring:
        """As :meth:`scores`, but only have the other threads begin."""


class StoredScorer(Scorer):
    """Over a generation of an index folder; what depends on the query alone is computed once.

    Parameters
    ----------
    snapshot
        The generation.
    query
        Of the index's dim.
    workers
        What to compute with; it does not change a score.
    """

    def __init__(self, snapshot: Snapshot, query: EncodedQuery, workers: Workers = ALONE) -> None:
        self.snapshot = snapshot
        self.query = query
        self._workers = workers

    @cached_property
    def _centroid_scores(self) -> Vectors:
        return self.snapshot.codec.scores(self.query.vectors, self._workers)

    @cached_property
    def centroid_bytes(self) -> ByteTable:
        """The centroid scores of the query, as bytes."""
        return self.snapshot.codec.byte_table(self._centroid_scores)

    def prepare(self) -> None:
        """Compute the centroid scores now rather than when they are first needed."""
        _ = self.centroid_bytes

    @cached_property
    def _rounded(self) -> ByteQuery:
        codec = self.snapshot.codec
        return packed.byte_query(codec.pad(self.query.vectors), self._centroid_scores, codec.residuals)

    def estimates(self, positions: Positions) -> Scores:
        """Approximate scores of some documents, ascending."""
        return self.approximate(self.snapshot.local_positions(positions))

    def approximate(self, chosen: DocumentsBySegment) -> Scores:
        """Approximate scores of the chosen documents of each segment, one segment after the other."""
        table, weights = self.centroid_bytes, self.query.weights
        parts = [
            interaction.interact(table, weights, segment.columns["codes"], segment.offsets, documents, **self._workers)
            for segment, documents in zip(self.snapshot.segments, chosen, strict=True)
        ]
        return parts[0] if len(parts) == 1 else np.concatenate([np.empty(0, np.float32), *parts])

    def scores(self, positions: Positions) -> Scores:
        """Exact scores of some documents, ascending."""
        return self.begin(positions).finish()

    def begin(self, positions: Positions) -> Scoring:
        """As :meth:`scores`, but only have the other threads begin."""
        scores, kernels, start = np.full(len(positions), -np.inf, np.float32), [], 0
        for segment, documents in zip(self.snapshot.segments, self.snapshot.local_positions(positions), strict=True):
            kernels.append(self._kernel(segment, documents, scores[start : start + len(documents)]))
            start += len(documents)
        threads = packed.worthwhile_threads(len(positions), self._workers["threads"])
        return QueuedScoring(scores, WorkQueue(kernels, threads=threads, executor=self._workers["executor"]))

    def _kernel(self, segment: Segment, documents: Positions, out: Scores) -> Callable[[], None]:
        vectors, weights = self.query.vectors, self.query.weights
        if self.snapshot.codec.bits == 16:
            return stored.stored_kernel(vectors, weights, segment.columns["vectors"], segment.offsets, documents, out)
        return packed.packed_kernel(self._rounded, weights, segment.packed_vectors(), documents, out)


class QueuedScoring(NamedTuple):
    """Documents that other threads are scoring, and where their scores go."""

    pending: Scores
    queue: WorkQueue

    def finish(self) -> Scores:
        """The scores of all of them, in which the calling thread takes part."""
        self.queue.finish()
        return self.pending


def exact_scores(collection: Collection, query: EncodedQuery, positions: Positions, workers: Workers = ALONE) -> Scores:
    """Exact weighted MaxSim of some documents, in any order; minus infinity for one without vectors."""
    if (local := collection.local) is None:
        return collection.scores_at(query, positions)
    ascending, rows = np.unique(positions, return_inverse=True)
    return StoredScorer(local, query, workers).scores(ascending)[rows]


def check_scores(query: EncodedQuery, advice: str) -> None:
    """Refuse a query whose scores a float32 may not hold: a document would be lost, or all be equal.

    Document vectors have unit length, so no score exceeds the sum of the lengths of the query's, times their weights.
    """
    lengths = np.sqrt(np.einsum("ij,ij->i", query.vectors, query.vectors, dtype=np.float64))
    most = float(max(lengths @ query.weights, lengths.max()))
    if not most < LARGEST_SCORE:
        raise InputError(f"scores may come to {most:.1e}, and must stay below {LARGEST_SCORE:.1e}; {advice}")
