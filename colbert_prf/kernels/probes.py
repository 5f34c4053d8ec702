"""The centroids whose document vectors are worth comparing with given vectors.

They are looked for in the lists of the nearest cells, which the codec has to find the centroid of a vector.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from colbert_prf.kernels.compiled import Array, compiled
from colbert_prf.kernels.simd import AHEAD, check_dim, prefetch, product_of_bytes

__all__ = ["CELLS", "NONE", "ByteCentroids", "Neighbours", "Probes", "best_probes", "insert"]

CELLS = 3
"""Cells whose centroids are compared with a vector: some 1,000 of 8,192, where one has 512."""
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
    """Centroids and the cells that lead to them, in bytes: ``codes · steps``.

    ``codes`` (num_centroids, dim) int8, ``radii`` (num_centroids,), ``centers`` (num_cells, dim) int8, half the squared
    length of each centre in ``halves`` (num_cells,), and the ``lists`` of the cells (num_cells, list_length) uint16.
    """

    codes: NDArray[np.int8]
    steps: NDArray[np.float32]
    radii: NDArray[np.float32]
    centers: NDArray[np.int8]
    halves: NDArray[np.float32]
    lists: NDArray[np.uint16]


@compiled()
def _probe(
    centroids: ByteCentroids, values: Array, units: Array, lengths: Array, reach: np.float32, floors: Array, out: Probes
) -> None:
    codes, radii, centers, halves, lists = (
        centroids.codes,
        centroids.radii,
        centroids.centers,
        centroids.halves,
        centroids.lists,
    )
    dim = codes.shape[1]
    nearest = np.empty(min(CELLS, centers.shape[0]), np.int64)
    nearness = np.empty(nearest.shape[0], np.float32)
    compared = np.full(codes.shape[0], NONE, np.int32)
    for i in range(values.shape[0]):
        probed, promises, unit, length = out.centroids[i], out.promises[i], units[i], lengths[i]
        nearest[:], nearness[:], least = NONE, -np.inf, np.float32(-np.inf)
        for cell in range(centers.shape[0]):
            # Nearest to the vector at unit length.
            product = unit * np.float32(product_of_bytes(centers, cell * dim, values, i * dim, dim))
            near = product - length * halves[cell]
            if near > least:
                insert(nearest, nearness, cell, near)
                least = nearness[-1]
        # An entry that is not a centroid's: what promises as much or less does not come in.
        probed[:], promises[:], least = NONE, floors[i], floors[i]
        for cell in nearest:
            for place in range(lists.shape[1]):
                centroid = lists[cell, place]
                if place + AHEAD < lists.shape[1]:
                    prefetch(codes, lists[cell, place + AHEAD] * dim)
                    prefetch(codes, lists[cell, place + AHEAD] * dim + 64)
                if compared[centroid] != i:
                    compared[centroid] = i
                    product = unit * np.float32(product_of_bytes(codes, centroid * dim, values, i * dim, dim))
                    promise = product + reach * length * radii[centroid]
                    if promise > least:
                        insert(probed, promises, centroid, promise)
                        least = promises[-1]
        for j in range(probed.shape[0]):
            if probed[j] == NONE:
                probed[j], promises[j] = 0, -np.inf
            out.products[i, j] = promises[j] - reach * length * radii[probed[j]]


def best_probes(
    centroids: ByteCentroids,
    vectors: NDArray[np.float32],
    probes: int,
    reach: float,
    floors: NDArray[np.float32] | None = None,
) -> Probes:
    """The centroids whose document vectors are worth comparing with each vector.

    A vector near υ need not have the centroid nearest to υ: document vectors lie about a centroid at the distance of
    its radius, so a centroid promises υ·c + reach·|υ|·radius(c). Of the centroids in the lists of the :data:`CELLS`
    cells nearest to υ, those that promise most are given.

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
    >>> codes = (np.array([[50], [40], [10]]) * axis).astype(np.int8)
    >>> radii, lists = np.array([0.1, 0.6, 0.1], np.float32), np.array([[0, 1, 2]], np.uint16)
    >>> halves, steps = np.array([0.125], np.float32), np.full(16, 0.01, np.float32)
    >>> best_probes(ByteCentroids(codes, steps, radii, codes[:1], halves, lists), axis, 2, 0.4).centroids.tolist()
    [[1, 0]]
    """
    check_dim(vectors.shape[1])
    shape = (len(vectors), min(probes, len(centroids.codes)))
    out = Probes(np.empty(shape, np.int64), np.empty(shape, np.float32), np.empty(shape, np.float32))
    if floors is None:
        floors = np.full(len(vectors), -np.inf, np.float32)
    scaled = vectors * centroids.steps
    # Numbers of 16 bits, whose products with bytes stay below 2**31 together.
    largest = min((1 << 15) - 1, ((1 << 31) - 1) // (127 * vectors.shape[1]))
    units = np.maximum(np.abs(scaled).max(axis=1), np.float32(1e-30)) / np.float32(largest)
    values = np.rint(scaled / units[:, None]).astype(np.int16)
    _probe(centroids, values, units, np.linalg.norm(vectors, axis=1), np.float32(reach), floors, out)
    return out
