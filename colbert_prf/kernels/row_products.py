"""Products of vectors with single rows of an index, wherever these lie."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from colbert_prf.kernels.compiled import Array, compiled
from colbert_prf.kernels.residuals import ResidualCodec, decode_row
from colbert_prf.kernels.simd import AHEAD, prefetch

__all__ = ["products_of_rows"]


@compiled(fastmath={"contract", "reassoc", "nsz"})
def _products_of_rows(
    vectors: Array,
    rows: Array,
    packed: Array,
    scales: Array,
    codes: Array,
    centroids: Array,
    codec: ResidualCodec,
    steps: Array,
    out: Array,
) -> None:
    dim = centroids.shape[1]
    levels, decoded = np.empty(dim, np.uint8), np.empty(dim, np.float32)
    for i in range(rows.shape[0]):
        for j in range(rows.shape[1]):
            if j + AHEAD < rows.shape[1] and rows[i, j + AHEAD] >= 0:
                row = rows[i, j + AHEAD]
                prefetch(packed, row * packed.shape[1])
                prefetch(packed, row * packed.shape[1] + packed.shape[1] - 1)
                prefetch(scales, row)
                prefetch(codes, row)
            if rows[i, j] >= 0:
                decode_row(packed, scales, codes, centroids, codec, steps, rows[i, j], levels, decoded)
                total = np.float32(0)
                for d in range(dim):
                    total += vectors[i, d] * decoded[d]
                out[i, j] = total


def products_of_rows(
    vectors: NDArray[np.float32],
    rows: NDArray[np.int64],
    packed: NDArray[np.uint8],
    scales: NDArray[np.unsignedinteger],
    codes: NDArray[np.integer],
    centroids: NDArray[np.float32],
    codec: ResidualCodec,
) -> NDArray[np.float32]:
    """The products of vectors (n, dim) with some decoded rows of each (n, count); minus infinity where a row is -1."""
    out = np.full(rows.shape, -np.inf, np.float32)
    _products_of_rows(vectors, rows, packed, scales, codes, centroids, codec, codec.steps, out)
    return out
