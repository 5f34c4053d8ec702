"""Exact weighted MaxSim of documents of an index, for one query."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from colbert_prf.index.segment import Segment
from colbert_prf.index.snapshot import Snapshot
from colbert_prf.kernels.parallel import ALONE, Workers
from colbert_prf.types import EncodedQuery

if TYPE_CHECKING:
    from colbert_prf.kernels.byte_query import ByteQuery
    from colbert_prf.kernels.exact import PackedVectors, Use

__all__ = ["Scorer", "packed_vectors"]


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

    def scores(
        self,
        positions: npt.NDArray[np.int64],
        workers: Workers = ALONE,
        *,
        beside: Callable[[], object] | None = None,
    ) -> npt.NDArray[np.float32]:
        """Exact weighted MaxSim on the decoded vectors of some documents; minus infinity for one without vectors.

        Parameters
        ----------
        positions
            Of the documents, ascending, of shape (num_documents,).
        workers
            What to compute with; it does not change the result.
        beside
            What the calling thread does, once, while others score documents.

        Returns
        -------
        scores
            Of shape (num_documents,).
        """
        segments, places = self._snapshot.segments, self._snapshot.places(positions)
        if beside is not None and not segments:
            beside()
        parts = []
        for number, documents in enumerate(places):
            use = (lambda _: beside()) if beside is not None and number == 0 else None
            parts.append(self._of_segment(segments[number], documents, workers, beside=use))
        return parts[0] if len(parts) == 1 else np.concatenate([np.empty(0, np.float32), *parts])

    def scores_in_turn(
        self, positions: npt.NDArray[np.int64], num_few: int, workers: Workers, use: Use
    ) -> npt.NDArray[np.float32]:
        """The scores of a few documents and of others after them, either ascending.

        The calling thread uses those of the few, once, while other threads score the others.
        """
        segments = self._snapshot.segments
        if len(segments) == 1:
            return self._of_segment(segments[0], positions, workers, first=num_few, beside=use)
        known = self.scores(positions[:num_few], workers)
        return np.concatenate([known, self.scores(positions[num_few:], workers, beside=lambda: use(known))])

    def _of_segment(
        self,
        segment: Segment,
        documents: npt.NDArray[np.int64],
        workers: Workers,
        *,
        first: int = 0,
        beside: Use | None = None,
    ) -> npt.NDArray[np.float32]:
        from colbert_prf.kernels.exact import maxsim_of_packed, maxsim_of_vectors

        vectors, weights = self.query.vectors, self.query.weights
        if self._rounded is None:
            stored, offsets = segment.columns["vectors"], segment.offsets
            return maxsim_of_vectors(
                vectors, weights, stored, offsets, documents, **workers, first=first, beside=beside
            )
        store = packed_vectors(segment)
        return maxsim_of_packed(self._rounded, weights, store, documents, **workers, first=first, beside=beside)


def packed_vectors(segment: Segment) -> PackedVectors:
    """The compressed vectors of a segment, as the kernels take them."""
    from colbert_prf.kernels.exact import PackedVectors

    columns = segment.columns
    return PackedVectors(columns["codes"], columns["residuals"], columns["scales"], segment.offsets)
