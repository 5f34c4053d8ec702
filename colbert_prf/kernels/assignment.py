"""Assign vectors to centroids: exhaustively, or through cells in a fraction of the time.

The nearest centroid maximises v·c - |c|²/2. A *cell* is the neighbourhood of a coarse centre; it keeps a list of the
centroids that vectors of the cell chose when a sample was assigned exhaustively (most frequent first, then nearest to
the centre). A vector is compared with the coarse centres, then with the list of its cell. Choosing the lists by what
the sample did matters: by distance alone half as many vectors find their nearest centroid.
"""

from __future__ import annotations

from concurrent.futures import Executor
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from colbert_prf.kernels.compiled import Array, compiled
from colbert_prf.kernels.simd.float_tile import float_tile
from colbert_prf.kernels.simd.layout import COLUMNS, ROWS
from colbert_prf.kernels.workers import run

__all__ = ["Cells", "assign", "assign_in_cells", "make_cells", "nearest_definition"]

_BATCH = 32
"""Vectors compared with a block of sixteen centroids while both are in the first-level cache."""


class Cells(NamedTuple):
    """Coarse ``centers`` (num_cells, dim) and ``lists`` (num_cells, list_length) of centroid numbers, int32."""

    centers: NDArray[np.float32]
    lists: NDArray[np.int32]


def nearest_definition(vectors: NDArray[np.float32], centroids: NDArray[np.float32]) -> NDArray[np.int64]:
    """The definition of :func:`assign`: the nearest centroid of each vector, the first of equals."""
    return np.asarray(np.argmax(vectors @ centroids.T - np.square(centroids).sum(axis=1) / 2, axis=1), dtype=np.int64)


def _blocks(centroids: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Sixteen centroids a block, transposed: (num_blocks, dim, 16), and |c|²/2, infinite for padding."""
    num_centroids, dim = centroids.shape
    num_blocks = -(-num_centroids // COLUMNS)
    padded = np.zeros((num_blocks * COLUMNS, dim), np.float32)
    padded[:num_centroids] = centroids
    half_norms = np.full(len(padded), np.inf, np.float32)
    half_norms[:num_centroids] = np.square(centroids).sum(axis=1) / 2
    return np.ascontiguousarray(padded.reshape(num_blocks, COLUMNS, dim).transpose(0, 2, 1)), half_norms


@compiled()
def _nearest(
    vectors: Array, order: Array, start: int, stop: int, blocks: Array, half_norms: Array, numbers: Array, out: Array
) -> None:
    """For i in ``order[start:stop]``: ``out[i] = numbers[c]``, c the column of the blocks nearest to ``vectors[i]``."""
    dim = vectors.shape[1]
    batch = np.zeros((_BATCH, dim), np.float32)
    products = np.empty((ROWS, COLUMNS), np.float32)
    best, nearest = np.empty(_BATCH, np.float32), np.empty(_BATCH, np.int64)
    for first in range(start, stop, _BATCH):
        count = min(_BATCH, stop - first)
        for t in range(count):
            batch[t] = vectors[order[first + t]]
        best[:] = -np.inf
        nearest[:] = 0
        for block in range(blocks.shape[0]):
            norms = half_norms[block * COLUMNS : (block + 1) * COLUMNS]
            for row in range(0, count, ROWS):
                float_tile(batch, row, dim, blocks, block * dim * COLUMNS, COLUMNS, products, 0, COLUMNS)
                for r in range(ROWS):
                    # Only the maximum becomes vector instructions, so the place is looked for where it is needed.
                    product, highest = products[r], np.float32(-np.inf)
                    for j in range(COLUMNS):
                        product[j] -= norms[j]
                    for j in range(COLUMNS):
                        highest = max(highest, product[j])
                    if highest > best[row + r]:
                        best[row + r] = highest
                        for j in range(COLUMNS):
                            if product[j] == highest:
                                nearest[row + r] = block * COLUMNS + j
                                break
        for t in range(count):
            out[order[first + t]] = numbers[nearest[t]]


def assign(
    vectors: NDArray[np.float32], centroids: NDArray[np.float32], *, threads: int = 1, executor: Executor | None = None
) -> NDArray[np.int32]:
    """The nearest centroid of each vector, by comparing with all.

    Parameters
    ----------
    vectors : array of shape (num_vectors, dim)
    centroids : array of shape (num_centroids, dim)

    Returns
    -------
    array of shape (num_vectors,), int32

    Examples
    --------
    >>> assign(np.eye(3, 16, dtype=np.float32), np.eye(2, 16, k=1, dtype=np.float32)).tolist()
    [0, 0, 1]
    """
    blocks, half_norms = _blocks(centroids)
    numbers = np.arange(len(half_norms), dtype=np.int32)
    order = np.arange(len(vectors))
    out = np.empty(len(vectors), np.int32)
    run(
        lambda start, stop: _nearest(vectors, order, start, stop, blocks, half_norms, numbers, out),
        len(vectors),
        threads=threads,
        executor=executor,
    )
    return out


def make_cells(
    sample: NDArray[np.float32],
    sample_codes: NDArray[np.int32],
    centroids: NDArray[np.float32],
    centers: NDArray[np.float32],
    list_length: int,
    *,
    threads: int = 1,
    executor: Executor | None = None,
) -> Cells:
    """Lists of likely centroids for the cells around ``centers``, learned from an assigned sample.

    Parameters
    ----------
    sample : array of shape (num_samples, dim)
    sample_codes : int32 of shape (num_samples,)
        The nearest centroid of each sample vector.
    centroids : array of shape (num_centroids, dim)
    centers : array of shape (num_cells, dim)
        Coarse centres, for example a k-means of the sample.
    list_length : int
        Centroids compared with each vector; a multiple of 16 wastes nothing.
    """
    list_length = min(list_length, len(centroids))
    cells = assign(sample, centers, threads=threads, executor=executor).astype(np.int64)
    visits = np.bincount(cells * len(centroids) + sample_codes, minlength=len(centers) * len(centroids))
    nearness = centers @ centroids.T - np.square(centroids).sum(axis=1) / 2
    # Nearness only breaks ties of the counts: scale it into (-1/2, 1/2).
    nearness /= 2 * np.abs(nearness).max() + 1e-9
    priority = visits.reshape(len(centers), len(centroids)) + nearness
    lists = np.argpartition(-priority, list_length - 1, axis=1)[:, :list_length]
    return Cells(centers, np.sort(lists, axis=1).astype(np.int32))


def assign_in_cells(
    vectors: NDArray[np.float32],
    centroids: NDArray[np.float32],
    cells: Cells,
    *,
    threads: int = 1,
    executor: Executor | None = None,
) -> NDArray[np.int32]:
    """The nearest centroid among the list of a vector's cell: nearly :func:`assign`, in a fraction of the time."""
    cell_of = assign(vectors, cells.centers, threads=threads, executor=executor)
    order = np.argsort(cell_of, kind="stable")
    bounds = np.searchsorted(cell_of, np.arange(len(cells.centers) + 1), sorter=order)
    out = np.empty(len(vectors), np.int32)

    def assign_cells(start: int, stop: int) -> None:
        for cell in range(start, stop):
            if bounds[cell] < bounds[cell + 1]:
                numbers = cells.lists[cell]
                blocks, half_norms = _blocks(centroids[numbers])
                _nearest(vectors, order, bounds[cell], bounds[cell + 1], blocks, half_norms, numbers, out)

    run(assign_cells, len(cells.centers), threads=threads, executor=executor)
    return out
