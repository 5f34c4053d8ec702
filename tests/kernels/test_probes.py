"""The centroids to probe, found in bytes, against comparing with all in float32."""

from __future__ import annotations

import numpy as np
import pytest

from colbert_prf.kernels.code_tile import byte_tile
from colbert_prf.kernels.compiled import compiled
from colbert_prf.kernels.probes import LARGEST, LEVELS, best_probes, coarse

SHAPES = [(3, 5, 16), (9, 1, 32), (203, 24, 48), (64, 37, 128), (4, 17, 128)]


@pytest.mark.parametrize(("num_centroids", "num_vectors", "dim"), SHAPES)
def test_the_centroids_to_probe_are_those_that_promise_most(num_centroids, num_vectors, dim):
    random = np.random.default_rng(8)
    centroids = random.standard_normal((num_centroids, dim)).astype(np.float32)
    radii = random.random(num_centroids).astype(np.float32)
    vectors = (random.standard_normal((num_vectors, dim)) / 4).astype(np.float32)
    found = best_probes(coarse(centroids, radii), vectors, 7, 0.5)
    products = vectors @ centroids.T
    promises = products + 0.5 * np.linalg.norm(vectors, axis=1)[:, None] * radii
    expected = np.argsort(-promises, axis=1)[:, :7]
    assert np.array_equal(found.centroids, expected)
    assert found.promises == pytest.approx(np.take_along_axis(promises, expected, axis=1), abs=1e-5)
    assert found.products == pytest.approx(np.take_along_axis(products, expected, axis=1), abs=1e-5)


def test_a_centroid_that_promises_less_than_the_floor_is_not_probed():
    axis = np.eye(1, 16, dtype=np.float32)
    centroids = np.array([[0.9], [0.5], [0.2], [0.7], [0.1]], np.float32) * axis
    floors = np.array([0.6, 0.95], np.float32)
    found = best_probes(coarse(centroids, np.zeros(5, np.float32)), np.repeat(axis, 2, axis=0), 3, 0.5, floors)
    assert found.centroids[0, :2].tolist() == [0, 3]
    assert np.isneginf(found.promises).tolist() == [[False, False, True], [True, True, True]]


def test_a_rounded_centroid_is_no_further_off_than_half_a_level_unless_it_lies_far_out():
    centroids = np.random.default_rng(2).standard_normal((500, 16)).astype(np.float32) * np.arange(1, 17)
    rounded = coarse(centroids.astype(np.float32), np.zeros(500, np.float32))
    back = rounded.low + rounded.step * rounded.codes
    inside = np.abs(centroids - centroids.mean(axis=0)) < 3 * centroids.std(axis=0)
    assert (np.abs(back - centroids) <= 0.501 * rounded.step)[inside].all()
    assert inside.mean() > 0.99
    assert rounded.codes.max() == LEVELS


def test_a_tile_of_bytes_is_a_product_of_integers_up_to_the_largest():
    @compiled()
    def tile_of(codes, row, dim, values, ones, width, column, out):
        byte_tile(codes, row, dim, values, ones, width, column, out)

    random = np.random.default_rng(4)
    for dim in (16, 32, 48, 128):
        codes = random.integers(0, LEVELS + 1, (6, dim)).astype(np.uint8)
        queries = random.integers(-LARGEST, LARGEST + 1, (32, dim)).astype(np.int8)
        codes[3], queries[20], queries[21] = LEVELS, LARGEST, -LARGEST
        values = np.ascontiguousarray(queries.reshape(32, dim // 4, 4).transpose(1, 0, 2))
        out = np.empty((4, 16), np.int32)
        tile_of(codes, 2, dim, values, np.ones(16, np.int16), 32, 16, out)
        assert np.array_equal(out, codes[2:6].astype(np.int32) @ queries[16:].T.astype(np.int32))
