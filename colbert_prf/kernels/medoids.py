"""k-medoids of some hundreds of feedback vectors: clusters around vectors that are there, not around means.

A start first alternates, as scikit-learn-extra's ``KMedoids`` does by default and the paper's variant with it: each
vector goes to its nearest medoid, each cluster takes the member with the smallest sum of distances as its medoid. That
stops early in a poor place. Swaps follow: a medoid and another vector change roles whenever that lowers the cost, until
no pair does (FasterPAM; Schubert and Rousseeuw, Information Systems 2021). So the result is never worse than
alternating from the same start, and the first start is the one of scikit-learn-extra.
"""

from __future__ import annotations

from concurrent.futures import Executor
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from colbert_prf.kernels.compiled import Array, compiled
from colbert_prf.kernels.distances import copy_row, squared_distances
from colbert_prf.kernels.parallel import run
from colbert_prf.kernels.seeding import check_clustering, choose_seeds, draw_uniforms

__all__ = ["Medoids", "Metric", "alternate", "alternate_definition", "central_vectors", "kmedoids", "swap"]

Metric = Literal["euclidean", "cosine"]

ROUNDING = 1e-7
"""A swap that lowers the cost by a smaller part of it is taken for rounding."""


class Medoids(NamedTuple):
    """The result of :func:`kmedoids`: ``indices`` int64 (num_clusters,), ``labels`` int64 (num_vectors,), ``cost``."""

    indices: NDArray[np.int64]
    labels: NDArray[np.int64]
    cost: float


def central_vectors(distances: NDArray[np.float32], num_clusters: int) -> NDArray[np.int64]:
    """The vectors with the smallest sums of distances, scikit-learn-extra's ``heuristic`` start; ties to the first.

    >>> central_vectors(np.array([[0, 1, 9], [1, 0, 8], [9, 8, 0]], np.float32), 2).tolist()
    [1, 0]
    """
    return np.argsort(distances.sum(axis=1, dtype=np.float64), kind="stable")[:num_clusters]


def alternate_definition(
    distances: NDArray[np.floating], medoids: NDArray[np.int64], max_iterations: int = 300
) -> NDArray[np.int64]:
    """The definition of :func:`alternate`: the medoids where alternating stops."""
    medoids = medoids.copy()
    for _ in range(max_iterations):
        before = medoids.copy()
        labels = distances[medoids].argmin(axis=0)
        for cluster, medoid in enumerate(before):
            members = np.flatnonzero(labels == cluster)
            if len(members):
                costs = distances[np.ix_(members, members)].sum(axis=1, dtype=np.float64)
                if costs.min() < distances[medoid, members].sum(dtype=np.float64):
                    medoids[cluster] = members[costs.argmin()]
        if np.array_equal(medoids, before):
            break
    return medoids


@compiled()
def alternate(distances: Array, medoids: Array, max_iterations: int) -> None:
    """Alternate between nearest medoids and central members until the medoids stay; changes ``medoids``."""
    num_vectors = distances.shape[0]
    labels, members = np.empty(num_vectors, np.int64), np.empty(num_vectors, np.int64)
    for _ in range(max_iterations):
        changed = False
        for i in range(num_vectors):
            row, labels[i] = distances[i], 0
            for k in range(1, len(medoids)):
                if row[medoids[k]] < row[medoids[labels[i]]]:
                    labels[i] = k
        for k in range(len(medoids)):
            size = 0
            for i in range(num_vectors):
                if labels[i] == k:
                    members[size] = i
                    size += 1
            lowest = _cost_around(distances[medoids[k]], members[:size])
            for candidate in members[:size]:
                cost = _cost_around(distances[candidate], members[:size])
                if cost < lowest:
                    lowest, medoids[k], changed = cost, candidate, True
        if not changed:
            break


@compiled()
def _cost_around(row: Array, members: Array) -> float:
    total = 0.0
    for i in members:
        total += row[i]
    return total


@compiled()
def _two_nearest(distances: Array, medoids: Array, nearest: Array, first: Array, second: Array) -> float:
    """The nearest medoid of each vector, the distances to it and to the next; the result is the sum of the former."""
    cost = 0.0
    for i in range(len(nearest)):
        nearest[i], first[i], second[i] = -1, np.inf, np.inf
        for k in range(len(medoids)):
            distance = distances[i, medoids[k]]
            if distance < first[i]:
                nearest[i], first[i], second[i] = k, distance, first[i]
            elif distance < second[i]:
                second[i] = distance
        cost += first[i]
    return cost


@compiled()
def _losses(nearest: Array, first: Array, second: Array, out: Array) -> None:
    """How much the cost grows when a medoid is taken away: its vectors go to the next."""
    out[:] = 0
    for i in range(len(nearest)):
        out[nearest[i]] += second[i] - first[i]


@compiled()
def swap(distances: Array, medoids: Array, max_iterations: int) -> float:
    """Swap medoids with other vectors while that lowers the cost; changes ``medoids``, the result is the cost.

    Parameters
    ----------
    distances : float32 of shape (num_vectors, at least num_vectors)
    medoids : int64 of shape (num_clusters,), distinct
    max_iterations : int
        Passes over all vectors.
    """
    num_vectors, num_clusters = distances.shape[0], len(medoids)
    nearest = np.empty(num_vectors, np.int64)
    first, second = np.empty(num_vectors, np.float32), np.empty(num_vectors, np.float32)
    cost = _two_nearest(distances, medoids, nearest, first, second)
    losses, changes = np.empty(num_clusters, np.float64), np.empty(num_clusters, np.float64)
    _losses(nearest, first, second, losses)
    is_medoid = np.zeros(num_vectors, np.bool_)
    for medoid in medoids:
        is_medoid[medoid] = True
    idle = 0  # vectors tried since the last swap; one medoid alone was placed best by alternating
    for attempt in range(max_iterations * num_vectors if num_clusters > 1 else 0):
        candidate = attempt % num_vectors
        idle += 1
        if not is_medoid[candidate]:
            row = distances[candidate]
            joint = 0.0
            copy_row(losses, changes)
            for i in range(num_vectors):
                distance = row[i]
                if distance < second[i]:  # true of few: the others would go to their second medoid, as the losses say
                    if distance < first[i]:
                        joint += distance - first[i]
                        distance = first[i]
                    changes[nearest[i]] += distance - second[i]
            leaving = np.argmin(changes)
            if joint + changes[leaving] < -ROUNDING * cost:
                is_medoid[medoids[leaving]], is_medoid[candidate] = False, True
                medoids[leaving] = candidate
                cost = _two_nearest(distances, medoids, nearest, first, second)
                _losses(nearest, first, second, losses)
                idle = 0
        if idle == num_vectors:
            break
    return cost


@compiled()
def _starts(
    squared: Array,
    distances: Array,
    uniforms: Array,
    max_iterations: int,
    start: int,
    stop: int,
    medoids: Array,
    costs: Array,
) -> None:
    """Run the starts in ``[start, stop)``; ``medoids[0]`` has the seeds of the first, the others are drawn."""
    for number in range(start, stop):
        if number:
            choose_seeds(squared, uniforms[number - 1], medoids[number])
        alternate(distances, medoids[number], max_iterations)
        costs[number] = swap(distances, medoids[number], max_iterations)


def kmedoids(
    vectors: NDArray[np.float32],
    num_clusters: int,
    *,
    seed: int,
    metric: Metric = "euclidean",
    num_starts: int = 4,
    max_iterations: int = 300,
    threads: int = 1,
    executor: Executor | None = None,
) -> Medoids:
    """The vectors to which the sum of distances from all vectors is small: the best of several starts.

    Parameters
    ----------
    vectors : array of shape (num_vectors, dim)
    num_clusters : int
        From 1 to ``num_vectors``.
    seed : int
        Of the starts after the first, which begins with the most central vectors; they begin with greedy k-means++.
    metric : {"euclidean", "cosine"}
        Of the distances that are summed; ``cosine`` is one minus the cosine.
    num_starts : int
        Starts, of which the one of lowest cost is kept; the first of equals.
    max_iterations : int
        Of alternating, and passes of swaps, in each start.
    threads, executor
        As in :func:`colbert_prf.kernels.parallel.run`; they do not change the result.

    Returns
    -------
    Medoids
        Distinct indices, ascending; labels of the nearest medoid, the first of equals, save that a medoid has its own.

    Examples
    --------
    >>> points = np.array([[0, 0], [0, 1], [0, 2], [9, 0]], np.float32)
    >>> found = kmedoids(points, 2, seed=0)
    >>> found.indices.tolist(), found.labels.tolist(), found.cost
    ([1, 3], [0, 0, 0, 1], 2.0)
    """
    vectors = np.ascontiguousarray(vectors, np.float32)
    check_clustering(len(vectors), num_clusters, num_starts, max_iterations)
    squared, distances = _matrices(vectors, metric, threads, executor)
    uniforms = draw_uniforms(seed, num_starts - 1, num_clusters)
    medoids = np.empty((num_starts, num_clusters), np.int64)
    medoids[0] = central_vectors(distances, num_clusters)
    costs = np.empty(num_starts, np.float64)
    run(
        lambda start, stop: _starts(squared, distances, uniforms, max_iterations, start, stop, medoids, costs),
        num_starts,
        threads=threads,
        executor=executor,
    )
    best = int(np.argmin(costs))
    indices = np.sort(medoids[best])
    labels = distances[:, indices].argmin(axis=1)
    labels[indices] = np.arange(num_clusters)
    return Medoids(indices, labels, float(costs[best]))


def _matrices(
    vectors: NDArray[np.float32], metric: Metric, threads: int, executor: Executor | None
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Squared Euclidean distances, for the seeds, and the distances of the metric."""
    if metric == "cosine":
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        if not norms.all():
            raise ValueError("a vector of length zero has no cosine: use metric='euclidean' or leave it out")
        squared = squared_distances(vectors / norms, threads=threads, executor=executor)
        return squared, squared * np.float32(0.5)  # |x - y|² = 2 - 2 cos for unit vectors
    if metric != "euclidean":
        raise ValueError(f"unknown metric {metric!r}: use 'euclidean' or 'cosine'")
    squared = squared_distances(vectors, threads=threads, executor=executor)
    distances = np.empty_like(squared)
    np.sqrt(squared, out=distances)
    return squared, distances
