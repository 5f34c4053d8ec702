"""Squared distances between all pairs of some hundreds of vectors: all that the clustering of feedback looks at."""

from __future__ import annotations

from concurrent.futures import Executor

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
def _squares(vectors: Array, blocks: Array, out: Array) -> None:
    """``out[i] = |vectors[i]|²``, rounded exactly as in :func:`_distances`."""
    dim = vectors.shape[1]
    products = np.empty((ROWS, COLUMNS), np.float32)
    for row in range(0, len(vectors), ROWS):
        block = row // COLUMNS
        float_tile(vectors, row, dim, blocks, block * dim * COLUMNS, COLUMNS, products, 0, COLUMNS)
        for r in range(ROWS):
            out[row + r] = products[r, row + r - block * COLUMNS]


@compiled()
def _distances(vectors: Array, blocks: Array, squares: Array, start: int, stop: int, out: Array) -> None:
    """``out[i, j] = out[j, i] = |v_i|² + |v_j|² - 2 v_i·v_j`` for the blocks of i in ``[start, stop)`` and i <= j."""
    num_vectors, dim = len(out), vectors.shape[1]
    tile = np.empty((ROWS, COLUMNS), np.float32)
    zero = np.float32(0)
    for row in range(start * COLUMNS, min(stop * COLUMNS, num_vectors), ROWS):
        height = min(ROWS, num_vectors - row)
        for block in range(row // COLUMNS, len(blocks)):
            first = block * COLUMNS
            float_tile(vectors, row, dim, blocks, first * dim, COLUMNS, tile, 0, COLUMNS)
            norms = squares[first:]
            for r in range(height):
                products, place, square = tile[r], out[row + r, first:], squares[row + r]
                for j in range(COLUMNS):
                    value = square + norms[j] - (products[j] + products[j])
                    products[j] = value if value > zero else zero
                    place[j] = products[j]
            if first > row:  # to the right of the diagonal: the mirror image is not computed
                for j in range(min(COLUMNS, num_vectors - first)):
                    for r in range(height):
                        out[first + j, row + r] = tile[r, j]


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
    num_vectors, dim = vectors.shape
    if num_vectors > MAX_VECTORS:
        raise ValueError(
            f"cannot cluster {num_vectors} vectors by all their distances: at most {MAX_VECTORS}; give fewer passages"
        )
    width = -(-num_vectors // COLUMNS) * COLUMNS
    centred = np.zeros((width, dim), np.float32)
    with np.errstate(invalid="ignore", over="ignore"):  # what is not finite is refused below
        np.subtract(vectors, vectors.mean(axis=0, dtype=np.float32), out=centred[:num_vectors])
    blocks = np.ascontiguousarray(centred.reshape(-1, COLUMNS, dim).transpose(0, 2, 1))
    squares = np.empty(width, np.float32)
    _squares(centred, blocks, squares)
    if not np.isfinite(squares).all():
        raise ValueError("cannot cluster vectors with values that are not finite (NaN, infinity or too large)")
    out = np.empty((num_vectors, width), np.float32)
    run(
        lambda start, stop: _distances(centred, blocks, squares, start, stop, out),
        len(blocks),
        threads=threads,
        executor=executor,
        shortest=WORTH_A_THREAD,
    )
    out[:, num_vectors:] = 0
    return out
