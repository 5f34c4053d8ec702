"""k-means of some hundreds of feedback vectors, from many starts, in about a millisecond.

:mod:`colbert_prf.kernels.clustering` is for millions of vectors and thousands of centroids. Here there are fewer
vectors than numbers in all the centroids together, so centroids are never formed while the algorithm runs. The squared
distances between all pairs, computed once and shared by all starts, say everything:

    |x - mean(C)|² = mean over y in C of |x - y|²  -  half the mean over y, z in C of |y - z|²

A vector that moves from one cluster to another costs two additions of a row. Of 300 vectors few move after the first
iteration, so that an iteration costs some microseconds where a product with 24 centroids of 128 dimensions costs fifty.
"""

from __future__ import annotations

from concurrent.futures import Executor
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from colbert_prf.kernels.compiled import Array, compiled
from colbert_prf.kernels.distances import copy_row, squared_distances
from colbert_prf.kernels.parallel import run
from colbert_prf.kernels.seeding import check_clustering, choose_seeds, draw_uniforms

__all__ = ["Clusters", "kmeans", "lloyd", "lloyd_definition"]

ROUNDING = 1e-5
"""Differences below this part of the mean squared distance are taken for rounding: no vector moves for so little."""

WORTH_A_THREAD = 4000
"""Vectors, of all starts of a thread, that take as long to cluster as waking it does."""


class Clusters(NamedTuple):
    """The result of :func:`kmeans`: ``centroids`` (num_clusters, dim), ``labels`` int64 (num_vectors,), ``inertia``."""

    centroids: NDArray[np.float32]
    labels: NDArray[np.int64]
    inertia: float


def lloyd_definition(
    vectors: NDArray[np.float32], seeds: NDArray[np.int64], max_iterations: int = 300, tolerance: float = 1e-4
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The definition of :func:`lloyd`: labels and centroids of one run that starts at the vectors ``seeds``."""
    exact = vectors.astype(np.float64)
    centroids, labels = exact[seeds], np.full(len(exact), -1)
    spread = np.square(exact - exact.mean(axis=0)).sum(axis=1).mean()
    margin = 2 * ROUNDING * spread
    everyone = np.arange(len(exact))
    for _ in range(max_iterations):
        to_centroids = np.square(exact[:, None] - centroids[None]).sum(axis=2)
        nearest = to_centroids.argmin(axis=1)
        gain = to_centroids[everyone, labels] - to_centroids[everyone, nearest]
        proposed = np.where((labels < 0) | (gain > margin), nearest, labels)
        if np.array_equal(proposed, labels):
            break
        labels, previous = proposed, centroids.copy()
        apart = to_centroids[everyone, labels]
        empty = np.setdiff1d(np.arange(len(seeds)), labels)
        for cluster in empty:
            shared = np.bincount(labels, minlength=len(seeds))[labels] > 1
            farthest = np.where(shared, apart, -1).argmax()
            centroids[cluster] = exact[farthest]
            if apart[farthest] > margin:
                labels[farthest] = cluster
        for cluster in np.unique(labels):
            centroids[cluster] = exact[labels == cluster].mean(axis=0)
        if not len(empty) and np.square(centroids - previous).sum() <= tolerance * spread / exact.shape[1]:
            break
    return labels, centroids


@compiled(fastmath={"contract"})
def _find_nearest(sums: Array, scales: Array, halves: Array, apart: Array, nearest: Array) -> None:
    """The centroid nearest to each vector, of equals the first, and how far it is: ``sums[k] * scales[k] - halves[k]``.

    One centroid after the other, and without branches: such a loop becomes vector instructions.
    """
    for i in range(len(apart)):
        apart[i] = np.inf
    for k in range(len(scales)):
        row, scale, half = sums[k], scales[k], halves[k]
        for i in range(len(apart)):
            distance = row[i] * scale - half
            nearer = distance < apart[i]
            apart[i] = distance if nearer else apart[i]
            nearest[i] = np.int32(k) if nearer else nearest[i]


@compiled()
def _assign(
    sums: Array, scales: Array, halves: Array, margin: float, labels: Array, counts: Array, apart: Array, nearest: Array
) -> int:
    """Move vectors to the nearest centroid, and say how many moved; ``apart`` becomes their distances to it."""
    _find_nearest(sums, scales, halves, apart, nearest)
    moved = 0
    for i in range(len(labels)):
        own = labels[i]
        if own == nearest[i]:
            continue
        if own >= 0:
            distance = sums[own, i] * scales[own] - halves[own]
            if distance - apart[i] <= margin:
                apart[i] = distance
                continue
            counts[own] -= 1
        counts[nearest[i]] += 1
        labels[i] = nearest[i]
        moved += 1
    return moved


@compiled()
def _fill_empty(counts: Array, apart: Array, margin: float, labels: Array, places: Array) -> int:
    """Give each empty cluster the vector farthest from its centroid, if it is apart; say how many were empty."""
    num_empty = 0
    for k in range(len(counts)):
        if counts[k]:
            continue
        num_empty += 1
        farthest, distance = -1, -np.inf
        for i in range(len(labels)):
            if counts[labels[i]] > 1 and apart[i] > distance:
                farthest, distance = i, apart[i]
        places[k] = farthest
        if distance > margin:
            counts[labels[farthest]] -= 1
            labels[farthest], counts[k] = k, 1
    return num_empty


@compiled()
def _update(
    distances: Array, old: Array, labels: Array, places: Array, sums: Array, totals: Array, before: Array, counts: Array
) -> None:
    """Bring what is known of clusters from the old labels to the new.

    ``sums[k]`` is the sum of ``distances[i]`` over the vectors i of cluster k, and ``totals[k]`` that of ``sums[k, i]``
    over them. ``before`` and ``counts`` are the sizes of the clusters under either.
    """
    for k in range(len(counts)):
        if before[k] == 0:  # what is there stands for a centroid without vectors, or is rounding
            sums[k] = 0
            totals[k] = 0
    for i in range(len(labels)):
        if labels[i] == old[i]:
            continue
        row, target = distances[i], sums[labels[i]]
        totals[labels[i]] += 2 * float(target[i])
        for j in range(len(row)):
            target[j] += row[j]
        if old[i] >= 0:
            source = sums[old[i]]
            totals[old[i]] -= 2 * float(source[i])
            for j in range(len(row)):
                source[j] -= row[j]
    for k in range(len(counts)):
        if counts[k] == 0:
            copy_row(distances[places[k]], sums[k])
            totals[k] = 0


@compiled()
def lloyd(distances: Array, spread: float, limit: float, max_iterations: int, places: Array, labels: Array) -> float:
    """One run of Lloyd's algorithm; the result is its inertia.

    Parameters
    ----------
    distances : float32 of shape (num_vectors, width)
        From :func:`~colbert_prf.kernels.distances.squared_distances`.
    spread : float
        The mean squared distance to the mean of all vectors.
    limit : float
        Stop once the centroids move by no more than this, squared and summed.
    max_iterations : int
    places : int64 of shape (num_clusters,)
        The starting vectors; afterwards, for a cluster without vectors, the vector where its centroid is.
    labels : int64 of shape (num_vectors,)
        Where the result goes.
    """
    num_vectors, width = distances.shape
    num_clusters = len(places)
    margin = 2 * ROUNDING * spread
    sums = np.empty((num_clusters, width), np.float32)
    for k in range(num_clusters):
        copy_row(distances[places[k]], sums[k])
    # A cluster without vectors has a centroid all the same: its sum is the row of one vector, and counts as a mean.
    before, counts = np.zeros(num_clusters, np.int64), np.zeros(num_clusters, np.int64)
    scales, halves = np.ones(num_clusters, np.float32), np.zeros(num_clusters, np.float32)
    totals, gone = np.zeros(num_clusters, np.float64), np.empty(num_clusters, np.float64)
    apart, nearest = np.empty(width, np.float32), np.empty(width, np.int32)
    old = np.empty(num_vectors, np.int64)
    labels[:] = -1
    inertia = np.inf
    for _ in range(max_iterations):
        copy_row(labels, old)
        copy_row(counts, before)
        if _assign(sums, scales, halves, margin, labels, counts, apart, nearest) == 0:
            break
        num_empty = _fill_empty(counts, apart, margin, labels, places)
        _update(distances, old, labels, places, sums, totals, before, counts)
        # A centroid moves by, squared, the mean squared distance of its vectors to the old place less that to the new.
        gone[:] = 0
        for i in range(num_vectors):
            gone[labels[i]] += apart[i]
        travelled, inertia = 0.0, 0.0
        for k in range(num_clusters):
            part = 1.0 / max(counts[k], 1)
            half = 0.5 * part * part * totals[k]
            scales[k], halves[k] = part, half
            inertia += counts[k] * half
            travelled += gone[k] * part - half
        if num_empty == 0 and travelled <= limit:
            break
    return inertia


@compiled()
def _starts(
    distances: Array,
    uniforms: Array,
    spread: float,
    limit: float,
    max_iterations: int,
    start: int,
    stop: int,
    places: Array,
    labels: Array,
    inertias: Array,
) -> None:
    """Seed and run the starts in ``[start, stop)``, each with its row of ``uniforms`` and of the results."""
    for number in range(start, stop):
        choose_seeds(distances, uniforms[number], places[number])
        inertias[number] = lloyd(distances, spread, limit, max_iterations, places[number], labels[number])


@compiled(fastmath={"reassoc", "nsz"})
def _total(distances: Array) -> float:
    """The sum of all distances, in a fifth of the time NumPy takes."""
    total = 0.0
    for i in range(distances.shape[0]):
        part = np.float32(0)
        for j in range(distances.shape[1]):
            part += distances[i, j]
        total += float(part)
    return total


@compiled(fastmath={"contract", "reassoc", "nsz"})
def _best_start(vectors: Array, all_labels: Array, all_places: Array, inertias: Array) -> Any:
    """The centroids of the start of lowest inertia, as means of the vectors themselves, its labels, and its inertia.

    A product with BLAS would do, but its threads take milliseconds to wake on a busy machine.
    """
    best = np.argmin(inertias)
    labels, places, dim = all_labels[best].copy(), all_places[best], vectors.shape[1]
    centroids = np.empty((len(places), dim), np.float32)
    sums, counts = np.zeros(centroids.shape, np.float64), np.zeros(len(centroids), np.int64)
    for i in range(len(labels)):
        counts[labels[i]] += 1
        total = sums[labels[i]]
        for d in range(dim):
            total[d] += vectors[i, d]
    for k in range(len(centroids)):
        for d in range(dim):
            centroids[k, d] = sums[k, d] / counts[k] if counts[k] else vectors[places[k], d]
    inertia = 0.0
    for i in range(len(labels)):
        for d in range(dim):
            difference = float(vectors[i, d]) - centroids[labels[i], d]
            inertia += difference * difference
    return centroids, labels, inertia


def kmeans(
    vectors: NDArray[np.float32],
    num_clusters: int,
    *,
    seed: int,
    num_starts: int = 10,
    max_iterations: int = 300,
    tolerance: float = 1e-4,
    threads: int = 1,
    executor: Executor | None = None,
) -> Clusters:
    """The best of several runs of k-means: greedy k-means++, then Lloyd's algorithm, as in scikit-learn's ``KMeans``.

    Parameters
    ----------
    vectors : array of shape (num_vectors, dim)
    num_clusters : int
        From 1 to ``num_vectors``.
    seed : int
        Start ``s`` uses row ``s`` of the uniform draws of ``numpy.random.default_rng(seed)``: the result is the same
        for any number of threads, and more starts never make it worse.
    num_starts : int
        Runs, of which the one of lowest inertia is kept; the first of equals.
    max_iterations : int
        A run stops after so many.
    tolerance : float
        It also stops when the centroids move, squared and summed, by at most this times the mean variance of a
        dimension.
    threads, executor
        As in :func:`colbert_prf.kernels.parallel.run`.

    Returns
    -------
    Clusters
        Each centroid is the mean of the vectors of its label, and unless a run was stopped early, each vector has the
        label of its nearest centroid, up to rounding. With fewer distinct vectors than clusters some centroids
        coincide, each with a vector; of those only one has vectors, the labels of the others do not occur.

    Examples
    --------
    >>> points = np.array([[0, 0], [0, 2], [9, 0], [9, 2]], np.float32)
    >>> found = kmeans(points, 2, seed=0)
    >>> sorted(found.centroids.tolist()), found.inertia
    ([[0.0, 1.0], [9.0, 1.0]], 4.0)
    """
    vectors = np.ascontiguousarray(vectors, np.float32)
    num_vectors, dim = vectors.shape
    check_clustering(num_vectors, num_clusters, num_starts, max_iterations)
    distances = squared_distances(vectors, threads=threads, executor=executor)
    spread = _total(distances) / (2 * num_vectors**2)
    uniforms, limit = draw_uniforms(seed, num_starts, num_clusters), tolerance * spread / dim
    places = np.empty((num_starts, num_clusters), np.int64)
    labels, inertias = np.empty((num_starts, num_vectors), np.int64), np.empty(num_starts, np.float64)

    def of_starts(start: int, stop: int) -> None:
        _starts(distances, uniforms, spread, limit, max_iterations, start, stop, places, labels, inertias)

    run(of_starts, num_starts, threads=threads, executor=executor, shortest=max(2, WORTH_A_THREAD // num_vectors))
    return Clusters(*_best_start(vectors, labels, places, inertias))
