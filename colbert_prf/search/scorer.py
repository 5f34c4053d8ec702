"""Exact weighted MaxSim of documents of an index, for one query."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from colbert_prf.errors import InputError
from colbert_prf.index.collection import Collection
from colbert_prf.index.segment import Segment, packed_vectors
from colbert_prf.index.snapshot import Snapshot
from colbert_prf.kernels.parallel import ALONE, Workers, WorkQueue
from colbert_prf.types import EncodedQuery

if TYPE_CHECKING:
    from colbert_prf.kernels.byte_query import ByteQuery

__all__ = ["Scorer", "Scoring", "check_scores", "exact_scores", "packed_vectors"]


LARGEST_SCORE = float(np.finfo(np.float32).max) / 16
"""A sixteenth of what a float32 holds, for scores are added and subtracted on their way."""


def check_scores(query: EncodedQuery, advice: str) -> None:
    """Refuse a query whose scores a float32 may not hold: a document would be lost, or all be equal.

    Document vectors have unit length, so no score is beyond the sum of the lengths of the query's, times their weights.
    """
    lengths = np.sqrt(np.einsum("ij,ij->i", query.vectors, query.vectors, dtype=np.float64))
    most = float(max(lengths @ query.weights, lengths.max()))
    if not most < LARGEST_SCORE:
        raise InputError(f"scores may come to {most:.1e}, and must stay below {LARGEST_SCORE:.1e}; {advice}")


class Scorer:
    """Scores documents of a generation exactly for one query; what depends on the query alone is made once.

    Parameters
    ----------
    snapshot
        The generation.
    query
        Of the index's dim.
    table
        The query's centroid scores, where they are known; not used with 16 bits.
    workers
        What to compute them with, where they are not.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        query: EncodedQuery,
        *,
        table: npt.NDArray[np.float32] | None = None,
        workers: Workers = ALONE,
    ) -> None:
        from colbert_prf.kernels.byte_query import byte_query

        self.query = query
        self._snapshot = snapshot
        self._rounded: ByteQuery | None = None
        codec = snapshot.codec
        if codec.bits < 16:
            table = codec.scores(query.vectors, workers) if table is None else table
            self._rounded = byte_query(codec.pad(query.vectors), table, codec.residuals)

    def scores(self, positions: npt.NDArray[np.int64], workers: Workers = ALONE) -> npt.NDArray[np.float32]:
        """Exact weighted MaxSim on the decoded vectors of some documents; minus infinity for one without vectors.

        Parameters
        ----------
        positions
            Of the documents, ascending, of shape (num_documents,).
        workers
            What to compute with; it does not change the result.

        Returns
        -------
        scores
            Of shape (num_documents,).
        """
        return self.begin(positions, workers).finish()

    def begin(self, positions: npt.NDArray[np.int64], workers: Workers) -> Scoring:
        """As :meth:`scores`, but only have the other threads begin."""
        from colbert_prf.kernels.exact import worthwhile_threads

        scores, kernels, start = np.full(len(positions), -np.inf, np.float32), [], 0
        for segment, documents in zip(self._snapshot.segments, self._snapshot.places(positions), strict=True):
            kernels.append(self._kernel(segment, documents, scores[start : start + len(documents)]))
            start += len(documents)
        threads = worthwhile_threads(len(positions), workers["threads"])
        return Scoring(scores, WorkQueue(kernels, threads=threads, executor=workers["executor"]))

    def _kernel(
        self, segment: Segment, documents: npt.NDArray[np.int64], out: npt.NDArray[np.float32]
    ) -> Callable[[], None]:
        from colbert_prf.kernels.exact import packed_kernel, vectors_kernel

        vectors, weights = self.query.vectors, self.query.weights
        if self._rounded is None:
            return vectors_kernel(vectors, weights, segment.columns["vectors"], segment.offsets, documents, out)
        return packed_kernel(self._rounded, weights, packed_vectors(segment), documents, out)


class Scoring(NamedTuple):
    """Documents that other threads are scoring, and where their scores go."""

    scores: npt.NDArray[np.float32]
    queue: WorkQueue

    def finish(self) -> npt.NDArray[np.float32]:
        """The scores of all of them, in which the calling thread takes part."""
        self.queue.finish()
        return self.scores


def exact_scores(
    collection: Collection, query: EncodedQuery, positions: npt.NDArray[np.int64], workers: Workers = ALONE
) -> npt.NDArray[np.float32]:
    """Exact weighted MaxSim of some documents, in any order; minus infinity for one without vectors."""
    if (stored := collection.on_disk) is None:
        return collection.score(query)[positions]
    ascending, places = np.unique(positions, return_inverse=True)
    return Scorer(stored, query, workers=workers).scores(ascending, workers)[places]
