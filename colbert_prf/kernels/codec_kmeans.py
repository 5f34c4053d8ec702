"""k-means of the codec: centroids for millions of vectors in seconds.

It is Lloyd's algorithm, but a vector is compared only with the centroids that vectors near it have chosen. The k-means
of feedback, for some hundreds of vectors, is :mod:`.kmeans`.
"""

from __future__ import annotations

from concurrent.futures import Executor

import numpy as np
from numpy.typing import NDArray

from colbert_prf.kernels.assignment import Cells, assign, assign_in_cells, make_cells

__all__ = ["find_centroids", "update_centroids"]

ITERATIONS = 5
LIST_LENGTH = 512
"""Centroids a vector is compared with; 96 of 100 vectors find their nearest among 4,096."""
EXHAUSTIVE_PER_CENTROID = 16
"""Vectors per centroid that are compared with all centroids, once, to learn the lists of the cells."""
CENTER_ITERATIONS, CENTER_SAMPLE = 5, 64


def update_centroids(
    vectors: NDArray[np.float32], codes: NDArray[np.integer], previous: NDArray[np.float32], random: np.random.Generator
) -> NDArray[np.float32]:
    """The mean of the vectors of each centroid; a centroid without vectors becomes a random vector.

    >>> vectors = np.array([[0, 2], [0, 4], [5, 5]], np.float32)
    >>> update_centroids(vectors, np.array([1, 1, 0]), np.zeros((2, 2), np.float32), np.random.default_rng(0)).tolist()
    [[5.0, 5.0], [0.0, 3.0]]
    """
    order = np.argsort(codes, kind="stable")
    counts = np.bincount(codes, minlength=len(previous))
    starts = np.cumsum(counts) - counts
    filled = counts > 0
    means = np.empty_like(previous)
    means[filled] = np.add.reduceat(vectors[order], starts[filled], axis=0) / counts[filled, None]
    means[~filled] = vectors[random.integers(0, len(vectors), int((~filled).sum()))]
    return means


def find_centroids(
    sample: NDArray[np.float32],
    num_centroids: int,
    *,
    seed: int = 0,
    iterations: int = ITERATIONS,
    threads: int = 1,
    executor: Executor | None = None,
) -> tuple[NDArray[np.float32], Cells]:
    """Find centroids of a sample by k-means.

    The first step compares vectors with every centroid, and notes for each cell of the space which centroids its
    vectors choose; the other steps compare with these only. The result depends on sample and seed, not on the threads.

    Parameters
    ----------
    sample : float32 of shape (num_samples, dim), in random order
    num_centroids : int
        At most ``num_samples``.
    seed : int
        Chooses the first centroids.

    Returns
    -------
    centroids : float32 of shape (num_centroids, dim)
    cells : Cells
        Through which :func:`~.assignment.assign_in_cells` finds them quickly.
    """
    random = np.random.default_rng(seed)
    centers = _centers(sample, num_centroids, random, threads, executor)
    centroids = sample[random.choice(len(sample), num_centroids, replace=False)]
    assigned = sample[: EXHAUSTIVE_PER_CENTROID * num_centroids]
    codes = assign(assigned, centroids, threads=threads, executor=executor)
    centroids = update_centroids(assigned, codes, centroids, random)
    codes = assign(assigned, centroids, threads=threads, executor=executor)
    for _ in range(iterations):
        cells = make_cells(assigned, codes, centroids, centers, LIST_LENGTH, threads=threads, executor=executor)
        codes = assign_in_cells(sample, centroids, cells, threads=threads, executor=executor)
        assigned = sample
        centroids = update_centroids(sample, codes, centroids, random)
    cells = make_cells(assigned, codes, centroids, centers, LIST_LENGTH, threads=threads, executor=executor)
    codes = assign_in_cells(sample, centroids, cells, threads=threads, executor=executor)
    cells = make_cells(sample, codes, centroids, centers, LIST_LENGTH, threads=threads, executor=executor)
    return centroids, cells


def _centers(
    sample: NDArray[np.float32],
    num_centroids: int,
    random: np.random.Generator,
    threads: int,
    executor: Executor | None,
) -> NDArray[np.float32]:
    """Coarse centres of the cells: some three times the square root of the number of centroids."""
    count = min(max(16, round(2 ** (np.log2(num_centroids) / 2 + 1.5))), len(sample))
    centers = sample[:count].copy()
    part = sample[: count * CENTER_SAMPLE]
    for _ in range(CENTER_ITERATIONS):
        centers = update_centroids(part, assign(part, centers, threads=threads, executor=executor), centers, random)
    return centers
