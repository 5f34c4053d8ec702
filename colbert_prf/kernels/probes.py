"""The centroids whose document vectors are worth comparing with given vectors.

All are compared, in bytes: products that are right to a hundredth or two are enough to choose by.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numpy.typing import NDArray

from colbert_prf.kernels.byte_products import byte_tile_once, largest_digits, round_to_digits, wide_byte_tile_once
from colbert_prf.kernels.compiled import Array, compiled, intrinsic
from colbert_prf.kernels.simd import COLUMNS, FLOAT, ROWS, Arrays, check_dim, vector

__all__ = ["NONE", "ByteCentroids", "Neighbours", "Probes", "best_probes", "insert"]

NONE = -1
"""In place of a row or a centroid where there is none."""


class Neighbours(NamedTuple):
    """``rows`` (num_vectors, count) of the nearest document vectors, nearest first, and their ``similarities``.

    Where there are fewer than ``count``, the row is -1 and the similarity minus infinity.
    """

    rows: NDArray[np.int64]
    similarities: NDArray[np.float32]

    @classmethod
    def none(cls, num_vectors: int, count: int) -> Neighbours:
        """No neighbours yet."""
        return cls(np.full((num_vectors, count), NONE), np.full((num_vectors, count), -np.inf, np.float32))


@compiled()
def insert(rows: Array, similarities: Array, row: int, similarity: np.float32) -> None:
    """Put a row into a short sorted list; of equals the smaller row comes first."""
    place = rows.shape[0] - 1
    last = similarities[place]
    if similarity < last or (similarity == last and rows[place] != NONE and row > rows[place]):
        return
    while place > 0:
        before = similarities[place - 1]
        if before > similarity or (before == similarity and rows[place - 1] != NONE and rows[place - 1] < row):
            break
        rows[place], similarities[place] = rows[place - 1], before
        place -= 1
    rows[place], similarities[place] = row, similarity


class Probes(NamedTuple):
    """Centroids to look at for each vector, most promising first, what they promise, and their products with it.

    All of shape (num_vectors, probes). Where there are fewer, the centroid is 0 and promises minus infinity.
    """

    centroids: NDArray[np.int64]
    promises: NDArray[np.float32]
    products: NDArray[np.float32]


class ByteCentroids(NamedTuple):
    """Centroids in bytes: ``codes · steps``.

    ``codes`` (num_centroids, dim) int8, at least :data:`~.simd.ROWS` of them, the ``sums`` of each (num_centroids,)
    int32, ``steps`` (dim,) and ``radii`` (num_centroids,) float32.
    """

    codes: NDArray[np.int8]
    sums: NDArray[np.int32]
    steps: NDArray[np.float32]
    radii: NDArray[np.float32]


@intrinsic
def _any_promised(_context: Any, products: Any, place: Any, reaches: Any, column: Any, radius: Any, least: Any) -> Any:
    """Whether ``products[place + j] + radius * reaches[column + j] > least[column + j]`` for some j of 16."""
    number = types.int64
    signature = types.boolean(products, number, reaches, number, types.float32, least)

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> Any:
        arrays = Arrays(context, builder, signature, values)
        products, place, reaches, column, radius, least = arrays
        floats = vector(FLOAT, COLUMNS)
        reach = builder.fmul(arrays.load(reaches, column, floats), arrays.splat(radius, floats))
        promise = builder.fadd(arrays.load(products, place, floats), reach)
        more = builder.fcmp_ordered(">", promise, arrays.load(least, column, floats))
        return arrays.call(f"llvm.vector.reduce.or.v{COLUMNS}i1", ir.IntType(1), more)

    return signature, generate


@compiled()
def _probe(
    centroids: ByteCentroids, vectors: Array, probes: int, reach: np.float32, floors: Array, top: np.float32
) -> Probes:
    codes, sums, radii = centroids.codes, centroids.sums, centroids.radii
    num_centroids, dim = codes.shape
    num_vectors, width = vectors.shape[0], -(-vectors.shape[0] // COLUMNS) * COLUMNS
    digits, units = np.zeros((1, dim // 4, width, 4), np.uint8), np.zeros(width, np.float32)
    round_to_digits(vectors * centroids.steps, top, digits, units)
    shape = (num_vectors, min(probes, num_centroids))
    out = Probes(np.full(shape, NONE), np.full(shape, np.float32(-np.inf)), np.empty(shape, np.float32))
    tile = np.empty((ROWS, width), np.float32)
    # To the columns without a vector nothing is promised.
    reaches, least = np.zeros(width, np.float32), np.full(width, np.float32(np.inf))
    for i in range(num_vectors):
        square = np.float32(0)
        for d in range(dim):
            square += vectors[i, d] * vectors[i, d]
        reaches[i], least[i] = reach * np.sqrt(square), floors[i]
    for first in range(0, num_centroids, ROWS):
        # The last tile overlaps the one before rather than reading past the end.
        row = min(first, num_centroids - ROWS)
        for column in range(0, width - COLUMNS, 2 * COLUMNS):
            wide_byte_tile_once(codes, row, dim, sums, digits, column, width, units, tile, 0)
        if width // COLUMNS % 2:
            byte_tile_once(codes, row, dim, sums, digits, width - COLUMNS, width, units, tile, 0)
        for centroid in range(first, min(first + ROWS, num_centroids)):
            products, radius = tile[centroid - row], radii[centroid]
            for column in range(0, width, COLUMNS):
                if not _any_promised(tile, (centroid - row) * width + column, reaches, column, radius, least):
                    continue
                for i in range(column, min(column + COLUMNS, num_vectors)):
                    promise = products[i] + reaches[i] * radius
                    if promise > least[i]:
                        insert(out.centroids[i], out.promises[i], centroid, promise)
                        least[i] = max(least[i], out.promises[i, -1])
    for i in range(num_vectors):
        for j in range(out.centroids.shape[1]):
            if out.centroids[i, j] == NONE:
                out.centroids[i, j] = 0
            out.products[i, j] = out.promises[i, j] - reaches[i] * radii[out.centroids[i, j]]
    return out


def best_probes(
    centroids: ByteCentroids,
    vectors: NDArray[np.float32],
    probes: int,
    reach: float,
    floors: NDArray[np.float32] | None = None,
) -> Probes:
    """The centroids whose document vectors are worth comparing with each vector.

    A vector near υ need not have the centroid nearest to υ: document vectors lie about a centroid at the distance of
    its radius, so a centroid promises υ·c + reach·|υ|·radius(c). Those that promise most are given.

    Parameters
    ----------
    centroids : ByteCentroids
    vectors : float32 of shape (num_vectors, dim)
        ``dim`` is a multiple of 16.
    probes : int
        Centroids for each vector, or all if there are fewer.
    floors : float32 of shape (num_vectors,), optional
        Of each vector: centroids that promise no more are left out.

    Examples
    --------
    >>> axis = np.eye(1, 16, dtype=np.float32)
    >>> codes = (np.array([[50], [40], [10], [0]]) * axis).astype(np.int8)
    >>> radii, steps = np.array([0.1, 0.6, 0.1, 0.1], np.float32), np.full(16, 0.01, np.float32)
    >>> best_probes(ByteCentroids(codes, codes.sum(axis=1, dtype=np.int32), steps, radii), axis, 2, 0.4).centroids
    array([[1, 0]])
    """
    check_dim(vectors.shape[1])
    if floors is None:
        floors = np.full(len(vectors), -np.inf, np.float32)
    top = largest_digits(vectors.shape[1], 1)
    # Whatever its strides, a column becomes the same to the compiler.
    found: Probes = _probe(centroids, vectors, probes, np.float32(reach), np.ascontiguousarray(floors), top)
    return found
