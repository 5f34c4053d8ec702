"""The centroids whose document vectors are worth comparing with given vectors.

Which are near each centroid is found out once, by comparing all with all in bytes: products that are right to a
hundredth or two are enough to choose by. A vector is then compared with those near a few centroids that are known to be
near it, some ninety of thousands.
"""

from __future__ import annotations

from concurrent.futures import Executor
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from colbert_prf.kernels.byte_products import byte_tile_once, largest_digits, round_to_digits, wide_byte_tile_once
from colbert_prf.kernels.compiled import Array, compiled
from colbert_prf.kernels.parallel import run
from colbert_prf.kernels.simd import COLUMNS, ROWS, check_dim, prefetch

__all__ = [
    "NONE",
    "REACH",
    "ByteCentroids",
    "Neighbours",
    "Probes",
    "best_probes",
    "insert",
    "near_probes",
    "neighbours_of_all",
]

NONE = -1
"""In place of a row or a centroid where there is none."""
REACH = 0.6
"""Of a centroid's radius, how much it counts for what the centroid promises where feedback is learned."""
_AT_ONCE = 256
"""Centroids whose neighbours are looked for together, at most: their digits stay in a cache."""


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


@compiled()
def _any_promised(products: Array, reaches: Array, radius: np.float32, least: Array, column: int) -> bool:
    """Whether ``products[i] + radius * reaches[i] > least[i]`` for some i of sixteen from ``column`` on."""
    promised = False
    for i in range(column, column + COLUMNS):  # all of them, so that there is no branch
        promised |= products[i] + radius * reaches[i] > least[i]
    return promised


@compiled()
def _take_off_reach(out: Probes, reaches: Array, radii: Array) -> None:
    """Make products of promises; where there is no centroid, it becomes 0."""
    for i in range(out.centroids.shape[0]):
        for j in range(out.centroids.shape[1]):
            if out.centroids[i, j] == NONE:
                out.centroids[i, j] = 0
            out.products[i, j] = out.promises[i, j] - reaches[i] * radii[out.centroids[i, j]]


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
                if not _any_promised(products, reaches, radius, least, column):
                    continue
                for i in range(column, min(column + COLUMNS, num_vectors)):
                    promise = products[i] + reaches[i] * radius
                    if promise > least[i]:
                        insert(out.centroids[i], out.promises[i], centroid, promise)
                        least[i] = max(least[i], out.promises[i, -1])
    _take_off_reach(out, reaches, radii)
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


def neighbours_of_all(
    centroids: ByteCentroids, count: int, reach: float, *, threads: int = 1, executor: Executor | None = None
) -> NDArray[np.uint16]:
    """The ``count`` centroids that promise most to each centroid, itself among them or not, of shape (n, count).

    Parameters
    ----------
    centroids, reach
        As in :func:`best_probes`; no more than 65,536 centroids.
    count : int
        Of each, or all if there are fewer.
    """
    out = np.empty((len(centroids.codes), min(count, len(centroids.codes))), np.uint16)

    def of_range(start: int, stop: int) -> None:
        out[start:stop] = best_probes(centroids, centroids.codes[start:stop] * centroids.steps, count, reach).centroids

    run(of_range, len(out), threads=threads, executor=executor, ranges=-(-len(out) // _AT_ONCE))
    return out


@compiled(fastmath={"contract", "reassoc", "nsz"})
def _product(codes: Array, scaled: Array) -> np.float32:
    total = np.float32(0)
    for d in range(scaled.shape[0]):
        total += np.float32(codes[d]) * scaled[d]
    return total


@compiled()
def _gather(entries: Array, table: Array, codes: Array, number: int, compared: Array, out: Array) -> int:
    """Put the entries and their neighbours into ``out``, each once, and have their codes fetched; say how many."""
    count = 0
    for place in range(entries.shape[0]):
        entry, again = entries[place], False
        for before in range(place):
            again |= entries[before] == entry
        if again or entry == NONE:
            continue
        for j in range(NONE, table.shape[1]):
            centroid = entry if j == NONE else np.int64(table[entry, j])
            if compared[centroid] != number:
                compared[centroid] = number
                out[count] = centroid
                count += 1
                for line in range(0, codes.shape[1], 64):
                    prefetch(codes, centroid * codes.shape[1] + line)
    return count


@compiled()
def _probe_near(
    centroids: ByteCentroids,
    table: Array,
    entries: Array,
    vectors: Array,
    probes: int,
    reach: np.float32,
    floors: Array,
) -> Probes:
    codes, radii = centroids.codes, centroids.radii
    num_vectors, dim = vectors.shape
    shape = (num_vectors, min(probes, codes.shape[0]))
    out = Probes(np.full(shape, NONE), np.full(shape, np.float32(-np.inf)), np.empty(shape, np.float32))
    reaches, scaled = np.empty(num_vectors, np.float32), np.empty(dim, np.float32)
    compared = np.full(codes.shape[0], np.int32(NONE))
    near = np.empty(entries.shape[1] * (table.shape[1] + 1), np.int64)
    for i in range(num_vectors):
        count = _gather(entries[i], table, codes, i, compared, near)
        square, least = np.float32(0), floors[i]
        for d in range(dim):
            square += vectors[i, d] * vectors[i, d]
            scaled[d] = vectors[i, d] * centroids.steps[d]
        reaches[i] = reach * np.sqrt(square)
        for centroid in near[:count]:
            promise = _product(codes[centroid], scaled) + reaches[i] * radii[centroid]
            if promise > least:
                insert(out.centroids[i], out.promises[i], centroid, promise)
                least = max(least, out.promises[i, -1])
    _take_off_reach(out, reaches, radii)
    return out


def near_probes(
    centroids: ByteCentroids,
    table: NDArray[np.uint16],
    entries: NDArray[np.int64],
    vectors: NDArray[np.float32],
    probes: int,
    reach: float,
    floors: NDArray[np.float32],
) -> Probes:
    """As :func:`best_probes`, of some centroids known to be near each vector and the neighbours of these.

    Parameters
    ----------
    centroids, vectors, probes, reach, floors
        As in :func:`best_probes`.
    table : uint16 of shape (num_centroids, count)
        The neighbours, as :func:`neighbours_of_all` gives them.
    entries : int64 of shape (num_vectors, num_entries)
        The centroids known to be near; -1 for none.

    Examples
    --------
    >>> axis = np.eye(1, 16, dtype=np.float32)
    >>> codes = (np.array([[50], [40], [10], [0]]) * axis).astype(np.int8)
    >>> radii, steps = np.zeros(4, np.float32), np.full(16, 0.01, np.float32)
    >>> centroids = ByteCentroids(codes, codes.sum(axis=1, dtype=np.int32), steps, radii)
    >>> table, floors = np.array([[1], [0], [1], [2]], np.uint16), np.zeros(1, np.float32)
    >>> near_probes(centroids, table, np.array([[2]]), axis, 2, 0.4, floors).centroids
    array([[1, 2]])
    """
    found: Probes = _probe_near(
        centroids, table, entries, vectors, probes, np.float32(reach), np.ascontiguousarray(floors)
    )
    return found
