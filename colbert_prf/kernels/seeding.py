"""Greedy k-means++: starting vectors far apart, each the best of a few drawn by squared distance to those before it.

Arthur and Vassilvitskii (SODA 2007), with the ``2 + ln k`` trials a step that they mention and scikit-learn uses.
Random numbers come in as an array of uniform draws, so that the kernels have no generator and no state.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from colbert_prf.kernels.compiled import Array, compiled
from colbert_prf.kernels.simd import COLUMNS

__all__ = ["check_clustering", "choose_seeds", "choose_seeds_definition", "draw_uniforms"]


def check_clustering(num_vectors: int, num_clusters: int, num_starts: int, max_iterations: int) -> None:
    """Refuse what no start can do: more clusters than vectors, no start, no iteration."""
    if not 1 <= num_clusters <= num_vectors:
        raise ValueError(f"cannot make {num_clusters} clusters of {num_vectors} vectors: ask for 1 to {num_vectors}")
    if num_starts < 1 or max_iterations < 1:
        raise ValueError(
            f"clustering needs at least one start and one iteration, found {num_starts} and {max_iterations}"
        )


@lru_cache(maxsize=16)
def draw_uniforms(seed: int, num_starts: int, num_clusters: int) -> NDArray[np.float64]:
    """The draws of every start, of shape (num_starts, 1 + (num_clusters - 1) * num_trials), read-only.

    The draws of a start do not depend on how many starts follow it. They are kept: a generator takes a tenth of the
    time of a clustering to make, and every search makes the same.
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
        left = np.flatnonzero(closest)
        if not len(left):
            seeds.append(next(i for i in range(len(distances)) if i not in seeds))
            continue
        cumulative = np.cumsum(closest[left])
        places = np.searchsorted(cumulative, draws * cumulative[-1], side="right")
        candidates = left[np.minimum(places, len(left) - 1)]
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


@compiled(fastmath={"reassoc", "nsz"})
def _sums_of_blocks(values: Array, sums: Array) -> float:
    """``sums[b]`` is the sum of the first b + 1 blocks of ``values``; the result is that of all.

    Each block is summed by itself: no addition waits for those of the blocks before it.
    """
    total = 0.0
    for block in range(len(sums)):
        part = 0.0
        for i in range(block * COLUMNS, (block + 1) * COLUMNS):
            part += values[i]
        total += part
        sums[block] = total
    return total


@compiled()
def _place(values: Array, sums: Array, target: float) -> int:
    """The first place up to which ``values`` add up to more than ``target``, or the last of all."""
    block: Any = 0
    for i in range(len(sums) - 1):  # all of them: a search would branch, and guess wrong every second time
        block += sums[i] <= target
    total, first, place = sums[block - 1] if block else 0.0, block * COLUMNS, 0
    for i in range(first, first + COLUMNS):  # likewise
        total += values[i]
        place += total <= target
    return int(min(first + place, len(values) - 1))


@compiled()
def _unused(seeds: Array, count: int) -> int:
    """The first vector that is not among ``seeds[:count]``."""
    candidate = 0
    while True:
        used = False
        for c in range(count):
            used |= seeds[c] == candidate
        if not used:
            return candidate
        candidate += 1


@compiled()
def choose_seeds(distances: Array, uniforms: Array, seeds: Array) -> None:
    """Fill ``seeds`` with the numbers of distinct starting vectors.

    Parameters
    ----------
    distances : float32 of shape (num_vectors, width)
        From :func:`~colbert_prf.kernels.distances.squared_distances`.
    uniforms : float64 of shape (1 + (num_seeds - 1) * num_trials,)
        Draws from [0, 1).
    seeds : int64 of shape (num_seeds,), with ``num_seeds <= num_vectors``
        Where the result goes. Equal vectors are chosen only when no other is left; then the first unused follow.
    """
    num_vectors, num_seeds = len(distances), len(seeds)
    num_trials = (len(uniforms) - 1) // max(num_seeds - 1, 1)
    sums, candidates = np.empty(distances.shape[1] // COLUMNS, np.float64), np.empty(num_trials, np.int64)
    seeds[0] = int(uniforms[0] * num_vectors)
    closest = distances[seeds[0]].copy()
    for c in range(1, num_seeds):
        total = _sums_of_blocks(closest, sums)
        if total == 0:
            seeds[c] = _unused(seeds, c)
            continue
        for trial in range(num_trials):
            target = uniforms[1 + (c - 1) * num_trials + trial] * total
            candidate = min(_place(closest, sums, target), num_vectors - 1)
            while closest[candidate] == 0:  # rounding may point past the last vector that is still apart
                candidate -= 1
            candidates[trial] = candidate
        lowest = np.inf
        for drawn in candidates:
            potential = _potential(closest, distances[drawn])
            if potential < lowest:
                lowest = potential
                seeds[c] = drawn
        row = distances[seeds[c]]
        for i in range(len(closest)):
            closest[i] = row[i] if row[i] < closest[i] else closest[i]
