"""Centroids for millions of vectors in seconds: Lloyd's algorithm that compares a vector with likely centroids only.

This is the k-means of the codec; that of feedback, for some hundreds of vectors, is :mod:`colbert_prf.kernels.lloyd`.
"""

from __future__ import annotations

from concurrent.futures import Executor
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from colbert_prf.kernels.centroids import Cells, assign, assign_in_cells, make_cells

__all__ = ["Clustering", "cluster", "mean_vectors"]

ITERATIONS = 5
LIST_LENGTH = 512
"""Centroids a vector is compared with; 96 of 100 vectors find their nearest among 4,096."""
EXHAUSTIVE_PER_CENTROID = 16
"""Vectors per centroid that are compared with all centroids, once, to learn the lists of the cells."""
CENTER_ITERATIONS, CENTER_SAMPLE = 5, 64


class Clustering(NamedTuple):
    """``centroids`` (num_centroids, dim) and the ``cells`` that find them quickly."""

    centroids: NDArray[np.float32]
    cells: Cells


def mean_vectors(
    vectors: NDArray[np.float32], codes: NDArray[np.integer], previous: NDArray[np.float32], random: np.random.Generator
) -> NDArray[np.float32]:
    """The mean of the vectors of each centroid; a centroid without vectors becomes a random vector.

    >>> vectors = np.array([[0, 2], [0, 4], [5, 5]], np.float32)
    >>> mean_vectors(vectors, np.array([1, 1, 0]), np.zeros((2, 2), np.float32), np.random.default_rng(0)).tolist()
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


def cluster(
    sample: NDArray[np.float32],
    num_centroids: int,
    *,
    seed: int = 0,
    iterations: int = ITERATIONS,
    threads: int = 1,
    executor: Executor | None = None,
) -> Clustering:
    """Find centroids of a sample by k-means.

    The first step compares vectors with every centroid and so learns, for each cell of the space, which centroids its
    vectors choose; the others compare with those alone. The result depends on sample and seed, not on the threads.

    Parameters
    ----------
    sample : float32 of shape (num_samples, dim), in random order
    num_centroids : int
        At most ``num_samples``.
    seed : int
        Chooses the first centroids.
    """
    random = np.random.default_rng(seed)
    centers = _centers(sample, num_centroids, random, threads, executor)
    centroids = sample[random.choice(len(sample), num_centroids, replace=False)]
    known = sample[: EXHAUSTIVE_PER_CENTROID * num_centroids]
    codes = assign(known, centroids, threads=threads, executor=executor)
    centroids = mean_vectors(known, codes, centroids, random)
    codes = assign(known, centroids, threads=threads, executor=executor)
    for _ in range(iterations):
        cells = make_cells(known, codes, centroids, centers, LIST_LENGTH, threads=threads, executor=executor)
        codes = assign_in_cells(sample, centroids, cells, threads=threads, executor=executor)
        known = sample
        centroids = mean_vectors(sample, codes, centroids, random)
    cells = make_cells(known, codes, centroids, centers, LIST_LENGTH, threads=threads, executor=executor)
    codes = assign_in_cells(sample, centroids, cells, threads=threads, executor=executor)
    cells = make_cells(sample, codes, centroids, centers, LIST_LENGTH, threads=threads, executor=executor)
    return Clustering(centroids, cells)


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
        centers = mean_vectors(part, assign(part, centers, threads=threads, executor=executor), centers, random)
    return centers
