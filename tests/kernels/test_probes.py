"""The centroids to probe, found through the cells, against comparing with all."""

from __future__ import annotations

import numpy as np
import pytest

from colbert_prf.kernels.compiled import compiled
from colbert_prf.kernels.probes import CELLS, ByteCentroids, best_probes
from colbert_prf.kernels.simd import product_of_bytes


def byte_centroids(num_centroids: int, num_cells: int, dim: int, list_length: int) -> ByteCentroids:
    """Random centroids; the lists have the first numbers, those of cell i begin at i."""
    random = np.random.default_rng(8)
    codes = random.integers(-127, 128, (num_centroids, dim)).astype(np.int8)
    steps = (random.random(dim) / 50 + 0.001).astype(np.float32)
    centers = random.integers(-127, 128, (num_cells, dim)).astype(np.int8)
    halves = (np.square(centers * steps).sum(axis=1) / 2).astype(np.float32)
    lists = (np.arange(num_cells)[:, None] + np.arange(list_length)) % num_centroids
    return ByteCentroids(
        codes, steps, random.random(num_centroids).astype(np.float32), centers, halves, lists.astype(np.uint16)
    )


SHAPES = [(3, 1, 5, 16), (9, 3, 1, 32), (203, 5, 24, 48), (64, 17, 37, 128), (4, 4, 17, 128)]


@pytest.mark.parametrize(("num_centroids", "num_cells", "num_vectors", "dim"), SHAPES)
@pytest.mark.parametrize("part", [1.0, 0.4])
def test_the_centroids_to_probe_are_those_of_the_nearest_cells_that_promise_most(
    num_centroids, num_cells, num_vectors, dim, part
):
    centroids = byte_centroids(num_centroids, num_cells, dim, max(1, int(part * num_centroids)))
    vectors = (np.random.default_rng(9).standard_normal((num_vectors, dim)) / 4).astype(np.float32)
    found = best_probes(centroids, vectors, 7, 0.5)
    products = vectors @ (centroids.codes * centroids.steps).T
    lengths = np.linalg.norm(vectors, axis=1)[:, None]
    promises = products + 0.5 * lengths * centroids.radii
    centers = centroids.centers * centroids.steps
    distances = np.square(vectors[:, None] / lengths[:, None] - centers).sum(axis=2)
    for i, nearest in enumerate(np.argsort(distances, axis=1)[:, :CELLS]):
        listed = np.unique(centroids.lists[nearest]).astype(np.int64)
        expected = listed[np.argsort(-promises[i, listed])[:7]]
        count = len(expected)
        assert found.centroids[i, :count].tolist() == expected.tolist()
        assert np.isneginf(found.promises[i, count:]).all()
        assert found.promises[i, :count] == pytest.approx(promises[i, expected], abs=1e-3)
        assert found.products[i, :count] == pytest.approx(products[i, expected], abs=1e-3)


def test_a_centroid_that_promises_no_more_than_the_floor_is_not_probed():
    codes = np.array([[90], [50], [20], [70], [10]], np.int8) * np.eye(1, 16, dtype=np.int8)
    steps, lists = np.full(16, 0.01, np.float32), np.arange(5, dtype=np.uint16)[None]
    centroids = ByteCentroids(codes, steps, np.zeros(5, np.float32), codes[:1], np.array([0.4], np.float32), lists)
    vectors, floors = np.repeat(np.eye(1, 16, dtype=np.float32), 2, axis=0), np.array([0.6, 0.95], np.float32)
    found = best_probes(centroids, vectors, 3, 0.5, floors)
    assert found.centroids[0, :2].tolist() == [0, 3]
    assert np.isneginf(found.promises).tolist() == [[False, False, True], [True, True, True]]


def test_vectors_that_are_not_filled_up_are_refused():
    with pytest.raises(ValueError, match="multiple of 16, found 24"):
        best_probes(byte_centroids(3, 1, 24, 3), np.ones((2, 24), np.float32), 2, 0.5)


@compiled()
def _products(rows, values, out):
    dim = rows.shape[1]
    for i in range(rows.shape[0]):
        out[i] = product_of_bytes(rows, i * dim, values, i * dim, dim)


@pytest.mark.parametrize("dim", [16, 48, 128, 768])
def test_a_product_of_bytes_and_shorts_is_exact_up_to_the_largest(dim):
    random = np.random.default_rng(4)
    rows = random.integers(-127, 128, (5, dim)).astype(np.int8)
    values = random.integers(-32767, 32768, (5, dim)).astype(np.int16)
    rows[3], values[3], values[4] = -127, 2700, -32767 // (1 + dim // 512)
    found = np.empty(5, np.int64)
    _products(rows, values, found)
    assert found.tolist() == (rows.astype(np.int64) * values).sum(axis=1).tolist()
