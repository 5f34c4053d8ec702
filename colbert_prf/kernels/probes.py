"""The centroids whose document vectors are worth comparing with given vectors.

All centroids are compared in bytes, rounded to 32 levels a dimension, which is faster than in float32; of a few more
than are wanted the products are then computed as they are.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from colbert_prf.kernels.code_tile import byte_tile
from colbert_prf.kernels.compiled import Array, compiled
from colbert_prf.kernels.interaction import padded
from colbert_prf.kernels.simd import COLUMNS, ROWS

__all__ = ["CoarseCentroids", "Neighbours", "Probes", "best_probes", "coarse", "insert"]

LEVELS, LARGEST = 31, 63
"""The largest code of a rounded centroid and value of a rounded vector: 16 of their products stay below 2**15."""
WIDTH = 3.0
"""Standard deviations from the mean of a dimension that the levels reach."""
SPARE = 16
"""Centroids more than wanted that are compared again."""
SLACK = 0.02
"""What rounding may take from a promise, for vectors of length one."""
_NONE = -1


class Neighbours(NamedTuple):
    """``rows`` (num_vectors, count) of the nearest document vectors, nearest first, and their ``similarities``.

    Where there are fewer than ``count``, the row is -1 and the similarity minus infinity.
    """

    rows: NDArray[np.int64]
    similarities: NDArray[np.float32]

    @classmethod
    def none(cls, num_vectors: int, count: int) -> Neighbours:
        """No neighbours yet."""
        return cls(np.full((num_vectors, count), _NONE), np.full((num_vectors, count), -np.inf, np.float32))


@compiled()
def insert(rows: Array, similarities: Array, row: int, similarity: np.float32) -> None:
    """Put a row into a short sorted list; of equals the smaller row comes first."""
    place = rows.shape[0] - 1
    last = similarities[place]
    if similarity < last or (similarity == last and rows[place] != _NONE and row > rows[place]):
        return
    while place > 0:
        before = similarities[place - 1]
        if before > similarity or (before == similarity and rows[place - 1] != _NONE and rows[place - 1] < row):
            break
        rows[place], similarities[place] = rows[place - 1], before
        place -= 1
    rows[place], similarities[place] = row, similarity


class Probes(NamedTuple):
    """Centroids to look at for each vector, most promising first, what they promise, and their products with it.

    All of shape (num_vectors, probes).
    """

    centroids: NDArray[np.int64]
    promises: NDArray[np.float32]
    products: NDArray[np.float32]


class CoarseCentroids(NamedTuple):
    """Centroids (num_centroids, dim) as they are, ``radii`` (num_centroids,), and rounded: ``low + step · codes``.

    ``codes`` (at least num_centroids and ROWS, dim) uint8 of at most 31, ``low`` and ``step`` (dim,) float32.
    """

    centroids: NDArray[np.float32]
    radii: NDArray[np.float32]
    codes: NDArray[np.uint8]
    low: NDArray[np.float32]
    step: NDArray[np.float32]


def coarse(centroids: NDArray[np.float32], radii: NDArray[np.float32]) -> CoarseCentroids:
    """Round centroids (num_centroids, dim) to 32 levels in each dimension, between three deviations from its mean.

    >>> rounded = coarse(np.array([[0.0], [1.0]], np.float32), np.zeros(2, np.float32))
    >>> rounded.codes[:2].tolist(), (rounded.low + rounded.step * rounded.codes[:2]).round(2)
    ([[10], [21]], array([[-0.03], [ 1.03]], dtype=float32))
    """
    mean, spread = centroids.mean(axis=0), np.maximum(centroids.std(axis=0), np.float32(1e-6))
    low, step = mean - np.float32(WIDTH) * spread, np.float32(2 * WIDTH / LEVELS) * spread
    codes = np.zeros((max(ROWS, len(centroids)), centroids.shape[1]), np.uint8)
    codes[: len(centroids)] = np.clip(np.rint((centroids - low) / step), 0, LEVELS)
    return CoarseCentroids(centroids, radii, codes, low, step)


class _Columns(NamedTuple):
    """Vectors as bytes: ``υ · c ≈ factors · Σ_d values[d] · codes[d] + constants``, and reach · length of each.

    ``values`` (dim / 4, width, 4) int8; the others (width,) float32; ``ones`` (16,) int16, see :mod:`.code_tile`.
    """

    values: NDArray[np.int8]
    factors: NDArray[np.float32]
    constants: NDArray[np.float32]
    lengths: NDArray[np.float32]
    ones: NDArray[np.int16]


def _columns(vectors: NDArray[np.float32], centroids: CoarseCentroids, reach: float) -> _Columns:
    count, dim = vectors.shape
    width = padded(count)
    scaled = vectors * centroids.step
    units = np.maximum(np.abs(scaled).max(axis=1), np.float32(1e-30)) / np.float32(LARGEST)
    rounded = np.rint(scaled / units[:, None])
    values = np.zeros((dim // 4, width, 4), np.int8)
    values[:, :count] = rounded.astype(np.int8).reshape(count, dim // 4, 4).transpose(1, 0, 2)
    # What rounding took from a vector is multiplied by the middle of the levels, so that only deviations suffer.
    missing = (scaled - units[:, None] * rounded).sum(axis=1) * np.float32(LEVELS / 2)
    filled = np.zeros((3, width), np.float32)
    filled[:, :count] = units, vectors @ centroids.low + missing, np.float32(reach) * np.linalg.norm(vectors, axis=1)
    return _Columns(values, filled[0], filled[1], filled[2], np.ones(16, np.int16))


@compiled()
def _probe(codes: Array, radii: Array, query: _Columns, probed: Array, promises: Array) -> None:
    num_centroids, dim = radii.shape[0], codes.shape[1]
    width = query.factors.shape[0]
    tile, floors = np.empty((ROWS, COLUMNS), np.int32), np.full(COLUMNS, np.inf, np.float32)
    for column in range(0, width, COLUMNS):
        used = min(COLUMNS, probed.shape[0] - column)
        floors[:] = np.inf
        floors[:used] = promises[column : column + used, -1]
        factor, constant = query.factors[column : column + COLUMNS], query.constants[column : column + COLUMNS]
        length = query.lengths[column : column + COLUMNS]
        for first in range(0, num_centroids, ROWS):
            # The last tile overlaps the one before rather than reading past the end.
            row = max(0, min(first, num_centroids - ROWS))
            byte_tile(codes, row, dim, query.values, query.ones, width, column, tile)
            for r in range(first - row, min(ROWS, num_centroids - row)):
                radius, products, worth = radii[row + r], tile[r], 0
                for j in range(COLUMNS):
                    worth += factor[j] * np.float32(products[j]) + constant[j] + radius * length[j] > floors[j]
                if worth:
                    for j in range(used):
                        promise = factor[j] * np.float32(products[j]) + constant[j] + radius * length[j]
                        if promise > floors[j]:
                            insert(probed[column + j], promises[column + j], row + r, promise)
                            floors[j] = promises[column + j, -1]


@compiled(fastmath={"reassoc", "contract", "nsz"})
def _product(first: Array, second: Array) -> np.float32:
    total = np.float32(0)
    for d in range(first.shape[0]):
        total += first[d] * second[d]
    return total


@compiled()
def _refine(
    centroids: Array, radii: Array, vectors: Array, lengths: Array, rough: Array, out: Array, promises: Array
) -> None:
    for i in range(rough.shape[0]):
        for centroid in rough[i]:
            if centroid != _NONE:
                promise = _product(vectors[i], centroids[centroid]) + radii[centroid] * lengths[i]
                if promise > promises[i, -1]:
                    insert(out[i], promises[i], centroid, promise)


def best_probes(
    centroids: CoarseCentroids,
    vectors: NDArray[np.float32],
    probes: int,
    reach: float,
    floors: NDArray[np.float32] | None = None,
) -> Probes:
    """The centroids whose document vectors are worth comparing with each vector.

    A vector near υ need not have the centroid nearest to υ: document vectors lie about a centroid at the distance of
    its radius, so a centroid promises υ·c + reach·|υ|·radius(c). Of the centroids that promise most by their rounded
    vectors, the best by the vectors themselves are given.

    Parameters
    ----------
    centroids : CoarseCentroids
    vectors : float32 of shape (num_vectors, dim)
        ``dim`` is a multiple of 16.
    probes : int
        Centroids for each vector, or all if there are fewer.
    floors : float32 of shape (num_vectors,), optional
        Of each vector: centroids that promise less are left out. Their places are filled with centroid 0, promising
        minus infinity.

    Examples
    --------
    >>> axis = np.eye(1, 16, dtype=np.float32)
    >>> centroids = coarse(np.array([[0.5], [0.4], [0.1]], np.float32) * axis, np.array([0.1, 0.6, 0.1], np.float32))
    >>> best_probes(centroids, axis, 2, 0.4).centroids.tolist()
    [[1, 0]]
    """
    num_centroids = len(centroids.centroids)
    count = min(probes, num_centroids)
    rough = Neighbours.none(len(vectors), min(count + SPARE, num_centroids))
    out = Neighbours.none(len(vectors), count)
    query = _columns(vectors, centroids, reach)
    lengths = query.lengths[: len(vectors)]
    if floors is not None:
        # An entry that is not a centroid's: what promises as much or less does not come in.
        slack = np.float32(SLACK) * np.linalg.norm(vectors, axis=1)
        rough.similarities[:], out.similarities[:] = (floors - slack)[:, None], floors[:, None]
    _probe(centroids.codes, centroids.radii, query, *rough)
    _refine(centroids.centroids, centroids.radii, vectors, lengths, rough.rows, *out)
    unused = out.rows == _NONE
    out.rows[unused], out.similarities[unused] = 0, -np.inf
    return Probes(*out, out.similarities - centroids.radii[out.rows] * lengths[:, None])
