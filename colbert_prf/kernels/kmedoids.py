"""k-medoids of some hundreds of feedback vectors: clusters around some of the vectors instead of around means.

A start first alternates, as scikit-learn-extra's ``KMedoids`` does by default and the paper's variant with it: each
vector goes to its nearest medoid, each cluster takes the member with the smallest sum of distances as its medoid. That
stops early in a poor local minimum. Swaps follow: a medoid and another vector change roles whenever that lowers the
cost, until no pair does (FasterPAM; Schubert and Rousseeuw, Information Systems 2021). So the result is never worse
than alternating from the same start, and the first start is the one of scikit-learn-extra.
"""

from __future__ import annotations

from concurrent.futures import Executor
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from colbert_prf.kernels.compiled import Array, compiled
from colbert_prf.kernels.seeding import check_clustering, choose_seeds, copy_row, draw_uniforms, squared_distances
from colbert_prf.kernels.workers import run

__all__ = ["Medoids", "Metric", "alternate", "alternate_definition", "central_vectors", "kmedoids", "swap"]

Metric = Literal["euclidean", "cosine"]

ROUNDING = 1e-7
"""No swap lowers the cost by a smaller part of it: that may be rounding."""


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
        previous = medoids.copy()
        labels = distances[medoids].argmin(axis=0)
        for cluster, medoid in enumerate(previous):
            members = np.flatnonzero(labels == cluster)
            if len(members):
                costs = distances[np.ix_(members, members)].sum(axis=1, dtype=np.float64)
                if costs.min() < distances[medoid, members].sum(dtype=np.float64):
                    medoids[cluster] = members[costs.argmin()]
        if np.array_equal(medoids, previous):
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


class _Nearest(NamedTuple):
    """For each vector its nearest ``medoid``, the ``distance`` to it, and the distance to the ``second`` nearest."""

    medoid: NDArray[np.int64]
    distance: NDArray[np.float32]
    second: NDArray[np.float32]


@compiled()
def _find_nearest(distances: Array, medoids: Array, near: _Nearest, losses: Array) -> float:
    """Fill ``near``, and ``losses`` (num_clusters,): how much the cost grows without each medoid. Return the cost.

    Without its medoid, a vector goes to the second nearest.
    """
    cost = 0.0
    losses[:] = 0
    for i in range(len(near.medoid)):
        nearest, first, second = 0, np.float32(np.inf), np.float32(np.inf)
        for k in range(len(medoids)):
            distance = distances[i, medoids[k]]
            if distance < first:
                nearest, first, second = k, distance, first
            elif distance < second:
                second = distance
        near.medoid[i], near.distance[i], near.second[i] = nearest, first, second
        losses[nearest] += second - first
        cost += float(first)
    return cost


@compiled()
def _best_swap(row: Array, near: _Nearest, losses: Array, changes: Array) -> tuple[int, float]:
    """The medoid to give up for the vector with this row of distances, and by how much the cost changes."""
    gained = 0.0  # by vectors that are nearer to the candidate, whichever medoid leaves
    copy_row(losses, changes)
    for i in range(len(near.medoid)):
        distance = row[i]
        if distance < near.second[i]:  # true of few; the losses hold for the others
            if distance < near.distance[i]:
                gained += distance - near.distance[i]
                distance = near.distance[i]
            changes[near.medoid[i]] += distance - near.second[i]
    leaving = np.argmin(changes)
    return int(leaving), float(gained + changes[leaving])


@compiled()
def swap(distances: Array, medoids: Array, max_iterations: int) -> float:
    """Swap medoids for other vectors while that lowers the cost; changes ``medoids``, the result is the cost.

    Parameters
    ----------
    distances : float32 of shape (num_vectors, at least num_vectors)
    medoids : int64 of shape (num_clusters,), distinct
    max_iterations : int
        Passes over all vectors.
    """
    num_vectors, num_clusters = distances.shape[0], len(medoids)
    losses, changes = np.empty(num_clusters, np.float64), np.empty(num_clusters, np.float64)
    first, second = np.empty(num_vectors, np.float32), np.empty(num_vectors, np.float32)
    near = _Nearest(np.empty(num_vectors, np.int64), first, second)
    cost = _find_nearest(distances, medoids, near, losses)
    is_medoid = np.zeros(num_vectors, np.bool_)
    for medoid in medoids:
        is_medoid[medoid] = True
    tried = 0  # vectors since the last swap; with one medoid, alternating has found the best
    for attempt in range(max_iterations * num_vectors if num_clusters > 1 else 0):
        candidate = attempt % num_vectors
        tried += 1
        if not is_medoid[candidate]:
            leaving, change = _best_swap(distances[candidate], near, losses, changes)
            if change < -ROUNDING * cost:
                is_medoid[medoids[leaving]], is_medoid[candidate] = False, True
                medoids[leaving] = candidate
                cost = _find_nearest(distances, medoids, near, losses)
                tried = 0
        if tried == num_vectors:
            break
    return cost


@compiled()
def _run_starts(
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
    for s in range(start, stop):
        if s:
            choose_seeds(squared, uniforms[s - 1], medoids[s])
        alternate(distances, medoids[s], max_iterations)
        costs[s] = swap(distances, medoids[s], max_iterations)


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
        As in :func:`colbert_prf.kernels.workers.run`; they do not change the result.

    Returns
    -------
    Medoids
        Distinct indices, ascending; labels of the nearest medoid, the first of equals, save that a medoid has its own.

    Examples
    --------
    >>> points = np.array([[0, 0], [0, 1], [0, 2], [9, 0]], np.float32)
    >>> medoids = kmedoids(points, 2, seed=0)
    >>> medoids.indices.tolist(), medoids.labels.tolist(), medoids.cost
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
        lambda start, stop: _run_starts(squared, distances, uniforms, max_iterations, start, stop, medoids, costs),
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
