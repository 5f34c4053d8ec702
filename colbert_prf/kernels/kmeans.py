"""k-means of some hundreds of feedback vectors, from many starts, in about a millisecond.

:mod:`.codec_kmeans` is for millions of vectors and thousands of centroids. Here there are fewer vectors than numbers in
all the centroids together, so centroids are never formed while the algorithm runs. The squared distances between all
pairs, computed once and shared by all starts, are enough::

    |x - mean(C)|² = mean over y in C of |x - y|²  -  variance of C
    variance of C  = half the mean over y, z in C of |y - z|²

A vector that moves from one cluster to another costs two additions of a row. Of 300 vectors few move after the first
iteration, so that an iteration costs some microseconds where a product with 24 centroids of 128 dimensions costs fifty.
"""

from __future__ import annotations

from concurrent.futures import Executor
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from colbert_prf.kernels.compiled import Array, compiled
from colbert_prf.kernels.seeding import check_clustering, choose_seeds, copy_row, draw_uniforms, squared_distances
from colbert_prf.kernels.workers import run

__all__ = ["Clusters", "kmeans", "lloyd", "lloyd_definition"]

ROUNDING = 1e-5
"""No vector moves for a difference below this part of the mean squared distance: that may be rounding."""
WORTH_A_THREAD = 4000
"""Clustering so many vectors, those of each start counted, takes as long as waking a thread does."""


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
    rows = np.arange(len(exact))
    for _ in range(max_iterations):
        to_centroids = np.square(exact[:, None] - centroids[None]).sum(axis=2)
        nearest = to_centroids.argmin(axis=1)
        gain = to_centroids[rows, labels] - to_centroids[rows, nearest]
        proposed = np.where((labels < 0) | (gain > margin), nearest, labels)
        if np.array_equal(proposed, labels):
            break
        labels, previous = proposed, centroids.copy()
        distances = to_centroids[rows, labels]
        empty = np.setdiff1d(np.arange(len(seeds)), labels)
        for cluster in empty:
            is_shared = np.bincount(labels, minlength=len(seeds))[labels] > 1
            farthest = np.where(is_shared, distances, -1).argmax()
            centroids[cluster] = exact[farthest]
            if distances[farthest] > margin:
                labels[farthest] = cluster
        for cluster in np.unique(labels):
            centroids[cluster] = exact[labels == cluster].mean(axis=0)
        if not len(empty) and np.square(centroids - previous).sum() <= tolerance * spread / exact.shape[1]:
            break
    return labels, centroids


class _State(NamedTuple):
    """What a run keeps of its clusters.

    ``sums[k]`` is the sum of ``distances[i]`` over the vectors i of cluster k, and ``totals[k]`` that of ``sums[k, i]``
    over them; ``counts[k]`` is their number. So the squared distance of vector i to the centroid of cluster k is
    ``sums[k, i] * inverse_counts[k] - variances[k]``. The centroid of a cluster without vectors is a vector: its sum is
    the row of that vector and counts as a mean.
    """

    sums: NDArray[np.float32]
    totals: NDArray[np.float64]
    counts: NDArray[np.int64]
    inverse_counts: NDArray[np.float32]
    variances: NDArray[np.float32]


@compiled(fastmath={"contract"})
def _find_nearest(state: _State, nearest: Array, to_nearest: Array) -> None:
    """The centroid nearest to each vector, the first of equals, and its squared distance.

    The loop goes over one centroid after the other and has no branches, so that it becomes vector instructions.
    """
    for i in range(len(nearest)):
        to_nearest[i] = np.inf
    for k in range(len(state.counts)):
        row, inverse, variance = state.sums[k], state.inverse_counts[k], state.variances[k]
        for i in range(len(nearest)):
            distance = row[i] * inverse - variance
            is_nearer = distance < to_nearest[i]
            to_nearest[i] = distance if is_nearer else to_nearest[i]
            nearest[i] = np.int32(k) if is_nearer else nearest[i]


@compiled()
def _assign(state: _State, margin: float, labels: Array, nearest: Array, to_nearest: Array) -> int:
    """Move vectors to their nearest centroid; return how many moved.

    ``to_nearest`` becomes the distance to the centroid of the label: a vector stays for less than ``margin``.
    """
    _find_nearest(state, nearest, to_nearest)
    num_moved = 0
    for i in range(len(labels)):
        label = labels[i]
        if label == nearest[i]:
            continue
        if label >= 0:
            distance = state.sums[label, i] * state.inverse_counts[label] - state.variances[label]
            if distance - to_nearest[i] <= margin:
                to_nearest[i] = distance
                continue
            state.counts[label] -= 1
        state.counts[nearest[i]] += 1
        labels[i] = nearest[i]
        num_moved += 1
    return num_moved


@compiled()
def _fill_empty(counts: Array, to_nearest: Array, margin: float, labels: Array, seeds: Array) -> int:
    """Give each empty cluster the vector farthest from its centroid, if it is apart; return how many were empty."""
    num_empty = 0
    for k in range(len(counts)):
        if counts[k]:
            continue
        num_empty += 1
        farthest, distance = -1, -np.inf
        for i in range(len(labels)):
            if counts[labels[i]] > 1 and to_nearest[i] > distance:
                farthest, distance = i, to_nearest[i]
        seeds[k] = farthest
        if distance > margin:
            counts[labels[farthest]] -= 1
            labels[farthest], counts[k] = k, 1
    return num_empty


@compiled()
def _update(distances: Array, old_labels: Array, labels: Array, seeds: Array, state: _State, old_counts: Array) -> None:
    """Bring ``sums`` and ``totals`` from the old labels to the new; ``counts`` are those of the new already."""
    sums, totals, counts = state.sums, state.totals, state.counts
    for k in range(len(counts)):
        if old_counts[k] == 0:  # the row of the vector that stood for the centroid, or rounding
            sums[k] = 0
            totals[k] = 0
    for i in range(len(labels)):
        if labels[i] == old_labels[i]:
            continue
        row, target = distances[i], sums[labels[i]]
        totals[labels[i]] += 2 * float(target[i])
        for j in range(len(row)):
            target[j] += row[j]
        if old_labels[i] >= 0:
            source = sums[old_labels[i]]
            totals[old_labels[i]] -= 2 * float(source[i])
            for j in range(len(row)):
                source[j] -= row[j]
    for k in range(len(counts)):
        if counts[k] == 0:
            copy_row(distances[seeds[k]], sums[k])
            totals[k] = 0


@compiled()
def _first_state(distances: Array, seeds: Array) -> _State:
    """Clusters without vectors, whose centroids are the seeds."""
    num_clusters = len(seeds)
    sums = np.empty((num_clusters, distances.shape[1]), np.float32)
    for k in range(num_clusters):
        copy_row(distances[seeds[k]], sums[k])
    totals, counts = np.zeros(num_clusters, np.float64), np.zeros(num_clusters, np.int64)
    return _State(sums, totals, counts, np.ones(num_clusters, np.float32), np.zeros(num_clusters, np.float32))


@compiled()
def lloyd(distances: Array, spread: float, limit: float, max_iterations: int, seeds: Array, labels: Array) -> float:
    """One run of Lloyd's algorithm; the result is its inertia.

    Parameters
    ----------
    distances : float32 of shape (num_vectors, width)
        From :func:`~.seeding.squared_distances`.
    spread : float
        The mean squared distance to the mean of all vectors.
    limit : float
        Stop once the centroids move by no more than this, squared and summed.
    max_iterations : int
    seeds : int64 of shape (num_clusters,)
        The starting vectors; afterwards, for a cluster without vectors, the vector where its centroid is.
    labels : int64 of shape (num_vectors,)
        Where the result goes.
    """
    (num_vectors, width), num_clusters = distances.shape, len(seeds)
    margin, state = 2 * ROUNDING * spread, _first_state(distances, seeds)
    old_labels, old_counts = np.empty(num_vectors, np.int64), np.empty(num_clusters, np.int64)
    nearest, to_nearest = np.empty(width, np.int32), np.empty(width, np.float32)
    to_old_centroid = np.empty(num_clusters, np.float64)
    labels[:] = -1
    inertia = np.inf
    for _ in range(max_iterations):
        copy_row(labels, old_labels)
        copy_row(state.counts, old_counts)
        if _assign(state, margin, labels, nearest, to_nearest) == 0:
            break
        num_empty = _fill_empty(state.counts, to_nearest, margin, labels, seeds)
        _update(distances, old_labels, labels, seeds, state, old_counts)
        to_old_centroid[:] = 0
        for i in range(num_vectors):
            to_old_centroid[labels[i]] += to_nearest[i]
        shift, inertia = 0.0, 0.0
        for k in range(num_clusters):
            inverse = 1.0 / max(state.counts[k], 1)
            variance = 0.5 * inverse * inverse * state.totals[k]
            state.inverse_counts[k], state.variances[k] = inverse, variance
            inertia += state.counts[k] * variance
            # Squared shift of a centroid: mean squared distance of its vectors to the old one less their variance.
            shift += to_old_centroid[k] * inverse - variance
        if num_empty == 0 and shift <= limit:
            break
    return inertia


@compiled()
def _run_starts(
    distances: Array,
    uniforms: Array,
    spread: float,
    limit: float,
    max_iterations: int,
    start: int,
    stop: int,
    seeds: Array,
    labels: Array,
    inertias: Array,
) -> None:
    """Seed and run the starts in ``[start, stop)``, each with its row of ``uniforms`` and of the results."""
    for s in range(start, stop):
        choose_seeds(distances, uniforms[s], seeds[s])
        inertias[s] = lloyd(distances, spread, limit, max_iterations, seeds[s], labels[s])


@compiled(fastmath={"contract", "reassoc", "nsz"})
def _centroids(vectors: Array, labels: Array, seeds: Array) -> Any:
    """The means of the vectors of each label, or the seed where there are none, and the inertia, in float64."""
    (num_vectors, dim), num_clusters = vectors.shape, len(seeds)
    centroids = np.empty((num_clusters, dim), np.float32)
    sums, counts = np.zeros((num_clusters, dim), np.float64), np.zeros(num_clusters, np.int64)
    for i in range(num_vectors):
        counts[labels[i]] += 1
        total = sums[labels[i]]
        for d in range(dim):
            total[d] += vectors[i, d]
    for k in range(num_clusters):
        for d in range(dim):
            centroids[k, d] = sums[k, d] / counts[k] if counts[k] else vectors[seeds[k], d]
    inertia = 0.0
    for i in range(num_vectors):
        for d in range(dim):
            difference = float(vectors[i, d]) - centroids[labels[i], d]
            inertia += difference * difference
    return centroids, inertia


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
    num_starts, max_iterations : int
        The run of lowest inertia is kept, the first of equals; each stops after ``max_iterations``.
    tolerance : float
        A run also stops when the centroids move, squared and summed, by at most this times the mean variance of a
        dimension.
    threads, executor
        As in :func:`~.workers.run`.

    Returns
    -------
    Clusters
        Each centroid is the mean of the vectors of its label, and unless a run was stopped early, each vector has the
        label of its nearest centroid, up to rounding. With fewer distinct vectors than clusters some centroids
        coincide, each with a vector; of those only one has vectors, the labels of the others do not occur.

    Examples
    --------
    >>> points = np.array([[0, 0], [0, 2], [9, 0], [9, 2]], np.float32)
    >>> clusters = kmeans(points, 2, seed=0)
    >>> sorted(clusters.centroids.tolist()), clusters.inertia
    ([[0.0, 1.0], [9.0, 1.0]], 4.0)
    """
    vectors = np.ascontiguousarray(vectors, np.float32)
    num_vectors, dim = vectors.shape
    check_clustering(num_vectors, num_clusters, num_starts, max_iterations)
    distances = squared_distances(vectors, threads=threads, executor=executor)
    spread = float(distances.sum()) / (2 * num_vectors**2)
    uniforms, limit = draw_uniforms(seed, num_starts, num_clusters), tolerance * spread / dim
    seeds = np.empty((num_starts, num_clusters), np.int64)
    labels, inertias = np.empty((num_starts, num_vectors), np.int64), np.empty(num_starts, np.float64)

    def run_starts(start: int, stop: int) -> None:
        _run_starts(distances, uniforms, spread, limit, max_iterations, start, stop, seeds, labels, inertias)

    run(run_starts, num_starts, threads=threads, executor=executor, shortest=max(2, WORTH_A_THREAD // num_vectors))
    best = int(np.argmin(inertias))
    centroids, inertia = _centroids(vectors, labels[best], seeds[best])
    return Clusters(centroids, labels[best].copy(), inertia)
