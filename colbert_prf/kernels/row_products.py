"""Products of vectors with single rows of an index, wherever these lie."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from colbert_prf.kernels.compiled import Array, compiled
from colbert_prf.kernels.residuals import ResidualCodec, read_row, steps_of, top_of
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
) -> Any:
    # With v = gain · (c + scale · steps · (2·levels - top)), a product with the centroid and one with the levels.
    dim, out = centroids.shape[1], np.full(rows.shape, np.float32(-np.inf))
    levels, scaled = np.empty(dim, np.uint8), np.empty(dim, np.float32)
    top, steps = top_of(codec), steps_of(codec)
    for i in range(rows.shape[0]):
        vector, middle = vectors[i], np.float32(0)
        for d in range(dim):
            scaled[d] = 2 * vector[d] * steps[d]
            middle += top * vector[d] * steps[d]
        for j in range(rows.shape[1]):
            if j + AHEAD < rows.shape[1] and rows[i, j + AHEAD] >= 0:
                row = rows[i, j + AHEAD]
                prefetch(packed, row * packed.shape[1])
                prefetch(packed, row * packed.shape[1] + packed.shape[1] - 1)
                prefetch(scales, row)
                prefetch(codes, row)
            if rows[i, j] >= 0:
                scale, gain = read_row(packed, scales, codec, rows[i, j], levels)
                centroid, product, residual = centroids[codes[rows[i, j]]], np.float32(0), np.float32(0)
                for d in range(dim):
                    product += vector[d] * centroid[d]
                for d in range(dim):
                    residual += scaled[d] * np.float32(levels[d])
                out[i, j] = gain * (product + scale * (residual - middle))
    return out


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
    products: NDArray[np.float32]
    products = _products_of_rows(vectors, rows, packed, scales, codes, centroids, codec)
    return products
