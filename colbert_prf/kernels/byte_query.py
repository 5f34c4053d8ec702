"""A query rounded to bytes, as the kernels of exact MaxSim take it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from colbert_prf.kernels.compiled import Array, compiled
from colbert_prf.kernels.interaction import padded
from colbert_prf.kernels.lanes import CHUNK
from colbert_prf.kernels.residuals import ResidualCodec, round_to_bytes, steps_of, top_of
from colbert_prf.kernels.simd import check_dim

__all__ = ["ByteQuery", "byte_query"]


class ByteQuery(NamedTuple):
    """A query rounded to bytes.

    ``values`` (planes, stride / 4, width, 4) int8, ``factors`` and ``constants`` (width,) and the ``table`` of centroid
    scores (num_centroids, width) float32; ``ranges``, see :mod:`.lanes`.
    """

    values: NDArray[np.int8]
    factors: NDArray[np.float32]
    constants: NDArray[np.float32]
    table: NDArray[np.float32]
    ranges: NDArray[np.float32]


@compiled()
def _round_query(queries: Array, codec: ResidualCodec, values: Array, factors: Array, constants: Array) -> None:
    """Fill the columns of a :class:`ByteQuery` that have query vectors (num_queries, dim)."""
    steps, top = steps_of(codec), top_of(codec)
    size, rounded = queries.shape[1] // values.shape[0], np.empty(queries.shape[1], np.int8)
    for i in range(queries.shape[0]):
        unit, total = round_to_bytes(queries[i], steps, rounded), np.int32(0)
        for d in range(rounded.shape[0]):
            values[d // size, d % size // 4, i, d % size % 4] = rounded[d]
            total += rounded[d]
        factors[i] = 2 * unit
        constants[i] = -top * unit * np.float32(total)


def byte_query(queries: NDArray[np.float32], table: NDArray[np.float32], codec: ResidualCodec) -> ByteQuery:
    """Round a query to bytes.

    Parameters
    ----------
    queries : float32 of shape (num_queries, dim)
        ``dim`` is a multiple of 16.
    table : float32 of shape (num_centroids, width)
        :func:`~.interaction.centroid_scores` of the same queries.
    """
    check_dim(queries.shape[1])
    width, planes = padded(len(queries)), 8 // codec.bits
    fours = -(-queries.shape[1] // planes // CHUNK) * CHUNK // 4
    values = np.zeros((planes, fours, width, 4), np.int8)
    factors, constants = np.zeros(width, np.float32), np.zeros(width, np.float32)
    _round_query(queries, codec, values, factors, constants)
    return ByteQuery(values, factors, constants, table, codec.ranges)
