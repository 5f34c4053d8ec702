"""Squared distances between all pairs of some hundreds of vectors: all that the clustering of feedback looks at."""

from __future__ import annotations

from concurrent.futures import Executor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from colbert_prf.kernels.compiled import Array, compiled
from colbert_prf.kernels.parallel import run
from colbert_prf.kernels.simd import COLUMNS, ROWS, float_tile

__all__ = ["MAX_VECTORS", "copy_row", "squared_distances", "squared_distances_definition"]

MAX_VECTORS = 10_000
"""More would take over 400 MB; the feedback of three passages is 100 to 600 vectors."""
WORTH_A_THREAD = 32
"""Blocks of sixteen vectors that take as long as waking a thread does."""


def squared_distances_definition(vectors: NDArray[np.float32]) -> NDArray[np.float64]:
    """The definition of :func:`squared_distances`, without the padding: of shape (num_vectors, num_vectors)."""
    exact = vectors.astype(np.float64)
    return np.asarray(np.square(exact[:, None] - exact[None]).sum(axis=2))


@compiled()
def copy_row(source: Array, target: Array) -> None:
    """``target[:] = source``, which itself takes numba four seconds to compile, for the text of an error message."""
    for i in range(len(source)):
        target[i] = source[i]


@compiled()
def _prepare(vectors: Array) -> Any:
    """Subtract the mean, lay sixteen vectors a block side by side, and take squares: of these whether all are finite.

    The result is (finite, vectors, blocks, squares); after the last vector there are zeros up to a whole block.
    """
    num_vectors, dim = vectors.shape
    width = -(-num_vectors // COLUMNS) * COLUMNS
    centred, blocks = np.empty((width, dim), np.float32), np.empty((width // COLUMNS, dim, COLUMNS), np.float32)
    squares = np.empty(width, np.float32)
    total, mean = np.zeros(dim, np.float64), np.empty(dim, np.float32)
    for i in range(num_vectors):
        for d in range(dim):
            total[d] += vectors[i, d]
    for d in range(dim):
        mean[d] = total[d] / num_vectors
    for i in range(num_vectors):
        block, row = blocks[i // COLUMNS], centred[i]
        for d in range(dim):
            row[d] = vectors[i, d] - mean[d]
            block[d, i % COLUMNS] = row[d]
    for i in range(num_vectors, width):
        for d in range(dim):
            centred[i, d] = blocks[-1, d, i % COLUMNS] = 0
    tile = np.empty((ROWS, COLUMNS), np.float32)
    for row in range(0, width, ROWS):
        first = row // COLUMNS * COLUMNS
        float_tile(centred, row, dim, blocks, first * dim, COLUMNS, tile, 0, COLUMNS)
        for r in range(ROWS):
            squares[row + r] = tile[r, row + r - first]
    finite = True
    for square in squares:
        finite &= np.isfinite(square)
    return finite, centred, blocks, squares


@compiled()
def _distances(
    vectors: Array, blocks: Array, squares: Array, num_vectors: int, start: int, stop: int, out: Array
) -> None:
    """``out[i, j] = out[j, i] = |v_i|² + |v_j|² - 2 v_i·v_j`` for the blocks of i in ``[start, stop)`` and i <= j.

    What is not of two of the ``num_vectors`` is zero. Squares are products of the same kernel, so that equal vectors
    are at distance zero exactly.
    """
    width, dim = vectors.shape
    tile = np.empty((ROWS, COLUMNS), np.float32)
    for row in range(start * COLUMNS, stop * COLUMNS, ROWS):
        for first in range(row // COLUMNS * COLUMNS, width, COLUMNS):
            float_tile(vectors, row, dim, blocks, first * dim, COLUMNS, tile, 0, COLUMNS)
            for r in range(ROWS):
                for j in range(COLUMNS):
                    distance = squares[row + r] + squares[first + j] - np.float32(2) * tile[r, j]
                    tile[r, j] = out[row + r, first + j] = max(distance, np.float32(0))
            if first > row:  # to the right of the diagonal
                for j in range(COLUMNS):
                    for r in range(ROWS):
                        out[first + j, row + r] = tile[r, j]
        for i in range(row, row + ROWS):
            for j in range(num_vectors, width):
                out[i, j] = 0


def squared_distances(
    vectors: NDArray[np.float32], *, threads: int = 1, executor: Executor | None = None
) -> NDArray[np.float32]:
    """Squared Euclidean distances between all pairs of vectors, in rows of whole registers.

    The mean is subtracted first, which changes no distance and keeps rounding small. Equal vectors are at distance zero
    exactly, and the matrix is symmetric exactly.

    Parameters
    ----------
    vectors : array of shape (num_vectors, dim)

    Returns
    -------
    array of shape (num_vectors, width)
        The width is ``num_vectors`` rounded up to a multiple of 16; the columns past ``num_vectors`` are zero.

    Examples
    --------
    >>> squared_distances(np.array([[0, 0], [3, 4]], np.float32))[:, :2].tolist()
    [[0.0, 25.0], [25.0, 0.0]]
    """
    num_vectors = len(vectors)
    if num_vectors > MAX_VECTORS:
        raise ValueError(
            f"cannot cluster {num_vectors} vectors by all their distances: at most {MAX_VECTORS}; give fewer passages"
        )
    finite, centred, blocks, squares = _prepare(vectors)
    if not finite:
        raise ValueError("cannot cluster vectors with values that are not finite (NaN, infinity or too large)")
    out = np.empty((len(centred), len(centred)), np.float32)
    run(
        lambda start, stop: _distances(centred, blocks, squares, num_vectors, start, stop, out),
        len(blocks),
        threads=threads,
        executor=executor,
        shortest=WORTH_A_THREAD,
    )
    return out[:num_vectors]
