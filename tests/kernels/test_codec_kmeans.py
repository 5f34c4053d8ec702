from __future__ import annotations

import numpy as np
import pytest

from colbert_prf.kernels.assignment import assign_in_cells, nearest_definition
from colbert_prf.kernels.codec_kmeans import find_centroids, update_centroids


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
    means = update_centroids(vectors, np.array([0, 0]), np.zeros((3, 2), np.float32), np.random.default_rng(0))
    assert means[0].tolist() == [0.5, 0.5]
    assert all(mean.tolist() in vectors.tolist() for mean in means[1:])


def test_as_good_as_plain_kmeans(blobs):
    random = np.random.default_rng(0)
    plain = blobs[random.choice(len(blobs), 64, replace=False)]
    for _ in range(6):
        plain = update_centroids(blobs, nearest_definition(blobs, plain), plain, random)
    assert inertia(blobs, find_centroids(blobs, 64, seed=0)[0]) < 1.1 * inertia(blobs, plain)


def test_vectors_find_their_centroid_through_the_cells(blobs):
    centroids, cells = find_centroids(blobs, 64, seed=1)
    assert np.array_equal(assign_in_cells(blobs, centroids, cells), nearest_definition(blobs, centroids))


def test_the_same_for_a_seed_whatever_the_threads(blobs, pool):
    (alone, cells), (shared, shared_cells) = (
        find_centroids(blobs, 32, seed=5, **workers) for workers in ({}, {"threads": 3, "executor": pool})
    )
    assert np.array_equal(alone, shared)
    assert np.array_equal(cells.lists, shared_cells.lists)
    assert not np.array_equal(alone, find_centroids(blobs, 32, seed=6)[0])


@pytest.mark.parametrize("count", [1, 2, 5, 2000])
def test_few_and_many_centroids(blobs, count):
    assert find_centroids(blobs, count)[0].shape == (count, 32)
