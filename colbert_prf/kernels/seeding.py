"""Where k-means and k-medoids of feedback start: squared distances between all pairs of vectors, and seeds far apart.

The seeds are those of greedy k-means++ (Arthur and Vassilvitskii, SODA 2007), with the ``2 + ln k`` trials a step that
they mention and scikit-learn uses: of some vectors drawn by squared distance to the seeds so far, the best is kept.
Random numbers come in as an array of uniform draws, so that the kernels have no generator and no state.
"""

from __future__ import annotations

from concurrent.futures import Executor
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from colbert_prf.kernels.compiled import Array, compiled
from colbert_prf.kernels.simd.float_tile import float_tile
from colbert_prf.kernels.simd.layout import COLUMNS, ROWS
from colbert_prf.kernels.workers import run

__all__ = [
    "MAX_VECTORS",
    "check_clustering",
    "choose_seeds",
    "choose_seeds_definition",
    "copy_row",
    "draw_uniforms",
    "squared_distances",
    "squared_distances_definition",
]

MAX_VECTORS = 10_000
"""More would take over 400 MB; the feedback of three passages is 100 to 600 vectors."""
WORTH_A_THREAD = 32
"""Computing so many blocks of sixteen vectors takes as long as waking a thread does."""


def check_clustering(num_vectors: int, num_clusters: int, num_starts: int, max_iterations: int) -> None:
    """Refuse what no start can do: more clusters than vectors, no start, no iteration."""
    if not 1 <= num_clusters <= num_vectors:
        raise ValueError(f"cannot make {num_clusters} clusters of {num_vectors} vectors: ask for 1 to {num_vectors}")
    if num_starts < 1 or max_iterations < 1:
        raise ValueError(
            f"clustering needs at least one start and one iteration, found {num_starts} and {max_iterations}"
        )


def squared_distances_definition(vectors: NDArray[np.float32]) -> NDArray[np.float64]:
    """The definition of :func:`squared_distances`, without the padding: of shape (num_vectors, num_vectors)."""
    exact = vectors.astype(np.float64)
    return np.asarray(np.square(exact[:, None] - exact[None]).sum(axis=2))


@compiled()
def copy_row(source: Array, target: Array) -> None:
    """``target[:] = source``: numba needs four seconds to compile the assignment, for its error message."""
    for i in range(len(source)):
        target[i] = source[i]


@compiled()
def _prepare(vectors: Array) -> Any:
    """Subtract the mean, lay sixteen vectors a block side by side, and square: (is_finite, vectors, blocks, squares).

    After the last vector there are zeros up to a whole block.
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
    is_finite = True
    for square in squares:
        is_finite &= np.isfinite(square)
    return is_finite, centred, blocks, squares


@compiled()
def _distances(
    vectors: Array, blocks: Array, squares: Array, num_vectors: int, start: int, stop: int, out: Array
) -> None:
    """``out[i, j] = out[j, i] = |v_i|² + |v_j|² - 2 v_i·v_j`` for the blocks of i in ``[start, stop)`` and i <= j.

    Beyond the ``num_vectors`` the distances are zero. Squares are products of the same kernel, so that equal vectors
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
    is_finite, centred, blocks, squares = _prepare(vectors)
    if not is_finite:
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


@lru_cache(maxsize=16)
def draw_uniforms(seed: int, num_starts: int, num_clusters: int) -> NDArray[np.float64]:
    """The draws of every start, of shape (num_starts, 1 + (num_clusters - 1) * num_trials), read-only.

    The draws of a start do not depend on how many starts follow it. They are cached: making a generator takes a tenth
    of the time of a clustering, and every search makes the same one.
    """
    num_trials = 2 + int(np.log(num_clusters))
    uniforms = np.random.default_rng(seed).random((num_starts, 1 + (num_clusters - 1) * num_trials))
    uniforms.flags.writeable = False
    return uniforms


def choose_seeds_definition(
    distances: NDArray[np.floating], num_clusters: int, uniforms: NDArray[np.float64]
) -> NDArray[np.int64]:
    """The definition of :func:`choose_seeds`, over squared distances of shape (num_vectors, num_vectors)."""
    seeds = [int(uniforms[0] * len(distances))]
    closest = distances[seeds[0]].astype(np.float64)
    for draws in uniforms[1:].reshape(num_clusters - 1, -1) if num_clusters > 1 else ():
        apart = np.flatnonzero(closest)
        if not len(apart):
            seeds.append(next(i for i in range(len(distances)) if i not in seeds))
            continue
        cumulative = np.cumsum(closest[apart])
        drawn = np.searchsorted(cumulative, draws * cumulative[-1], side="right")
        candidates = apart[np.minimum(drawn, len(apart) - 1)]
        trials = np.minimum(closest, distances[candidates])
        best = int(np.argmin(trials.sum(axis=1)))
        seeds.append(int(candidates[best]))
        closest = trials[best]
    return np.array(seeds, np.int64)


@compiled(fastmath={"reassoc", "nsz"})
def _potential(closest: Array, row: Array) -> float:
    """The sum of squared distances to the nearest seed if the vector with this row of distances became one."""
    total = 0.0
    for i in range(len(closest)):
        total += row[i] if row[i] < closest[i] else closest[i]
    return total


@compiled()
def _unused(seeds: Array, count: int) -> int:
    """The first vector that is not among ``seeds[:count]``."""
    candidate = 0
    while True:
        is_used = False
        for c in range(count):
            is_used |= seeds[c] == candidate
        if not is_used:
            return candidate
        candidate += 1


@compiled()
def choose_seeds(distances: Array, uniforms: Array, seeds: Array) -> None:
    """Fill ``seeds`` with the numbers of distinct starting vectors.

    Parameters
    ----------
    distances : float32 of shape (num_vectors, width)
        From :func:`squared_distances`.
    uniforms : float64 of shape (1 + (num_seeds - 1) * num_trials,)
        Draws from [0, 1).
    seeds : int64 of shape (num_seeds,), with ``num_seeds <= num_vectors``
        Where the result goes. Equal vectors are chosen only when no other is left; then the first unused follow.
    """
    num_vectors, num_seeds = len(distances), len(seeds)
    num_trials = (len(uniforms) - 1) // max(num_seeds - 1, 1)
    cumulative = np.empty(num_vectors, np.float64)
    seeds[0] = int(uniforms[0] * num_vectors)
    closest = distances[seeds[0]].copy()
    for c in range(1, num_seeds):
        total, lowest = 0.0, np.inf
        for i in range(num_vectors):
            total += closest[i]
            cumulative[i] = total
        if total == 0:
            seeds[c] = _unused(seeds, c)
            continue
        for trial in range(num_trials):
            target = uniforms[1 + (c - 1) * num_trials + trial] * total
            candidate = min(np.searchsorted(cumulative, target, side="right"), num_vectors - 1)
            while closest[candidate] == 0:  # rounding may lead past the last vector that is still apart
                candidate -= 1
            potential = _potential(closest, distances[candidate])
            if potential < lowest:
                lowest, seeds[c] = potential, candidate
        row = distances[seeds[c]]
        for i in range(len(closest)):
            closest[i] = row[i] if row[i] < closest[i] else closest[i]
