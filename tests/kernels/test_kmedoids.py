from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from colbert_prf.kernels.kmedoids import alternate, alternate_definition, central_vectors, kmedoids, swap
from colbert_prf.kernels.seeding import squared_distances, squared_distances_definition


@pytest.fixture(scope="module")
def clumps() -> np.ndarray:
    """Two hundred unit vectors around thirty directions."""
    random = np.random.default_rng(0)
    centers = random.standard_normal((30, 48))
    rows = centers[random.integers(0, 30, 200)] + 0.7 * random.standard_normal((200, 48))
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def euclidean(vectors: np.ndarray) -> np.ndarray:
    return np.sqrt(squared_distances_definition(vectors))


def cost_of(distances: np.ndarray, medoids: np.ndarray) -> float:
    return float(distances[medoids].min(axis=0).sum())


@pytest.mark.parametrize("num_vectors", range(3, 9))
@pytest.mark.parametrize("num_clusters", [1, 2, 3])
@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_the_optimum_of_tiny_sets(num_vectors, num_clusters, metric):
    for seed in range(10):
        vectors = np.random.default_rng(seed).standard_normal((num_vectors, 3)).astype(np.float32)
        units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        distances = euclidean(vectors) if metric == "euclidean" else 1 - units @ units.T
        choices = map(list, combinations(range(num_vectors), num_clusters))
        lowest = min(cost_of(distances, choice) for choice in choices)
        medoids = kmedoids(vectors, num_clusters, seed=0, metric=metric, num_starts=20)
        assert medoids.cost == pytest.approx(lowest, abs=1e-5)
        assert cost_of(distances, medoids.indices) == pytest.approx(lowest, abs=1e-5)


@pytest.mark.parametrize("num_clusters", [1, 2, 24, 200])
def test_alternating_equals_its_definition(clumps, num_clusters):
    distances = np.sqrt(squared_distances(clumps))
    for seed in range(5):
        medoids = np.random.default_rng(seed).choice(200, num_clusters, replace=False)
        expected = alternate_definition(distances[:, :200], medoids)
        alternate(distances, medoids, 300)
        assert medoids.tolist() == expected.tolist()


@pytest.mark.parametrize("num_clusters", [2, 24])
def test_no_swap_improves_the_result(clumps, num_clusters):
    distances = euclidean(clumps)
    medoids = kmedoids(clumps, num_clusters, seed=0, num_starts=1)
    for leaving in range(num_clusters):
        kept = np.delete(medoids.indices, leaving)
        costs = np.minimum(distances[kept].min(axis=0), distances).sum(axis=1)
        assert costs.min() > medoids.cost - 1e-4


@pytest.mark.parametrize("num_clusters", [1, 5, 24, 150])
def test_never_worse_than_alternating(clumps, num_clusters):
    distances = euclidean(clumps)
    alternated = alternate_definition(distances, central_vectors(distances, num_clusters))
    assert kmedoids(clumps, num_clusters, seed=0).cost <= cost_of(distances, alternated) + 1e-4
    for seed in range(5):
        drawn = np.random.default_rng(seed).choice(200, num_clusters, replace=False)
        alternated = alternate_definition(distances, drawn)
        before = cost_of(distances, alternated)
        after = swap(np.sqrt(squared_distances(clumps)), alternated, 300)
        assert after <= before + 1e-4
        assert after == pytest.approx(cost_of(distances, alternated), rel=1e-5)


def test_swapping_escapes_where_alternating_stops(clumps):
    distances = euclidean(clumps)
    alternated = cost_of(distances, alternate_definition(distances, central_vectors(distances, 24)))
    assert kmedoids(clumps, 24, seed=0, num_starts=1).cost < 0.95 * alternated


def test_by_hand():
    points = np.array([[0], [1], [3], [20], [21], [40]], np.float32)
    medoids = kmedoids(points, 3, seed=0)
    assert medoids.indices.tolist() in ([1, 3, 5], [1, 4, 5])
    assert medoids.labels.tolist() == [0, 0, 0, 1, 1, 2]
    assert medoids.cost == pytest.approx(1 + 2 + 1, rel=1e-5)


def test_the_same_for_a_seed_whatever_the_threads(clumps, pool):
    alone = kmedoids(clumps, 24, seed=3, num_starts=8)
    shared = kmedoids(clumps, 24, seed=3, num_starts=8, threads=4, executor=pool)
    assert all(np.array_equal(a, b) for a, b in zip(alone, shared, strict=True))


def test_more_starts_are_never_worse(clumps):
    costs = [kmedoids(clumps, 24, seed=0, num_starts=count).cost for count in (1, 2, 4, 16)]
    assert costs == sorted(costs, reverse=True)
    assert costs[-1] < costs[0]


@given(rows=st.lists(st.integers(0, 4), min_size=1, max_size=30), seed=st.integers(0, 99), data=st.data())
def test_duplicates_never_break_it(rows, seed, data):
    num_clusters = data.draw(st.integers(1, len(rows)))
    vectors = np.random.default_rng(1).standard_normal((5, 4)).astype(np.float32)[rows]
    medoids = kmedoids(vectors, num_clusters, seed=seed)
    assert len(set(medoids.indices.tolist())) == num_clusters
    assert medoids.labels[medoids.indices].tolist() == list(range(num_clusters))
    assert medoids.cost == pytest.approx(cost_of(euclidean(vectors), medoids.indices), abs=1e-4)
    if num_clusters >= len(set(rows)):
        assert medoids.cost == 0


def test_the_length_of_a_vector_does_not_change_its_cosine(clumps):
    lengths = np.random.default_rng(0).uniform(0.5, 2, (200, 1)).astype(np.float32)
    units, others = (kmedoids(v, 24, seed=0, metric="cosine") for v in (clumps, clumps * lengths))
    assert units.cost == pytest.approx(others.cost, rel=1e-4)
    nearest = (clumps @ clumps[units.indices].T).argmax(axis=1)
    assert np.array_equal(units.labels, nearest)


def test_the_wrapper_refuses_what_cannot_be_done():
    vectors = np.eye(3, dtype=np.float32)
    with pytest.raises(ValueError, match="4 clusters of 3 vectors"):
        kmedoids(vectors, 4, seed=0)
    with pytest.raises(ValueError, match="unknown metric 'manhattan'"):
        kmedoids(vectors, 2, seed=0, metric="manhattan")
    with pytest.raises(ValueError, match="no cosine"):
        kmedoids(np.zeros((3, 2), np.float32), 2, seed=0, metric="cosine")
