from __future__ import annotations

import numpy as np
import pytest

from colbert_prf.kernels.centroids import assign_in_cells, nearest_definition
from colbert_prf.kernels.clustering import cluster, mean_vectors


@pytest.fixture(scope="module")
def blobs() -> np.ndarray:
    """Two thousand vectors around twenty well separated unit vectors."""
    random = np.random.default_rng(0)
    centers = np.eye(20, 32, dtype=np.float32)
    rows = centers[random.integers(0, 20, 2000)] + 0.05 * random.standard_normal((2000, 32)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def inertia(vectors: np.ndarray, centroids: np.ndarray) -> float:
    return float(np.square(vectors - centroids[nearest_definition(vectors, centroids)]).sum())


def test_a_centroid_without_vectors_becomes_one_of_them():
    vectors = np.array([[1, 0], [0, 1]], np.float32)
    means = mean_vectors(vectors, np.array([0, 0]), np.zeros((3, 2), np.float32), np.random.default_rng(0))
    assert means[0].tolist() == [0.5, 0.5]
    assert all(mean.tolist() in vectors.tolist() for mean in means[1:])


def test_as_good_as_plain_kmeans(blobs):
    random = np.random.default_rng(0)
    plain = blobs[random.choice(len(blobs), 64, replace=False)]
    for _ in range(6):
        plain = mean_vectors(blobs, nearest_definition(blobs, plain), plain, random)
    assert inertia(blobs, cluster(blobs, 64, seed=0).centroids) < 1.1 * inertia(blobs, plain)


def test_vectors_find_their_centroid_through_the_cells(blobs):
    clustering = cluster(blobs, 64, seed=1)
    exact = nearest_definition(blobs, clustering.centroids)
    assert np.array_equal(assign_in_cells(blobs, clustering.centroids, clustering.cells), exact)


def test_the_same_for_a_seed_whatever_the_threads(blobs, pool):
    one, other = cluster(blobs, 32, seed=5), cluster(blobs, 32, seed=5, threads=3, executor=pool)
    assert np.array_equal(one.centroids, other.centroids)
    assert np.array_equal(one.cells.lists, other.cells.lists)
    assert not np.array_equal(one.centroids, cluster(blobs, 32, seed=6).centroids)


@pytest.mark.parametrize("count", [1, 2, 5, 2000])
def test_few_and_many_centroids(blobs, count):
    assert cluster(blobs, count).centroids.shape == (count, 32)
