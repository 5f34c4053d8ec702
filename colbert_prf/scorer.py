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
    from colbert_prf.kernels.exact import ByteQuery, PackedVectors

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
        from colbert_prf.kernels.exact import byte_query

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
        parts = [np.empty(0, np.float32)]
        for segment, documents in zip(self._snapshot.segments, self._snapshot.places(positions), strict=True):
            parts.append(self._of_segment(segment, documents, workers, beside))
            beside = None
        if beside is not None:  # there is no segment
            beside()
        return np.concatenate(parts)

    def _of_segment(
        self,
        segment: Segment,
        documents: npt.NDArray[np.int64],
        workers: Workers,
        beside: Callable[[], object] | None,
    ) -> npt.NDArray[np.float32]:
        from colbert_prf.kernels.exact import maxsim_of_packed, maxsim_of_vectors

        vectors, weights = self.query.vectors, self.query.weights
        if self._rounded is None:
            stored = segment.columns["vectors"]
            return maxsim_of_vectors(vectors, weights, stored, segment.offsets, documents, **workers, beside=beside)
        return maxsim_of_packed(self._rounded, weights, packed_vectors(segment), documents, **workers, beside=beside)


def packed_vectors(segment: Segment) -> PackedVectors:
    """The compressed vectors of a segment, as the kernels take them."""
    from colbert_prf.kernels.exact import PackedVectors

    columns = segment.columns
    return PackedVectors(columns["codes"], columns["residuals"], columns["scales"], segment.offsets)
