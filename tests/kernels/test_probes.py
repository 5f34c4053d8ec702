"""The centroids to probe, against the definition."""

from __future__ import annotations

import numpy as np
import pytest

from colbert_prf import EncodedDocument, Index
from colbert_prf.kernels import probes
from colbert_prf.kernels.probes import ByteCentroids, best_probes


def byte_centroids(num_centroids: int, dim: int) -> ByteCentroids:
    random = np.random.default_rng(8)
    codes = random.integers(-127, 128, (num_centroids, dim)).astype(np.int8)
    steps = (random.random(dim) / 50 + 0.001).astype(np.float32)
    return with_sums(codes, steps, random.random(num_centroids).astype(np.float32))


def with_sums(codes, steps, radii) -> ByteCentroids:
    return ByteCentroids(codes, codes.sum(axis=1, dtype=np.int32), steps, radii)


SHAPES = [(4, 5, 16), (9, 1, 32), (203, 24, 48), (64, 37, 128), (4, 17, 128), (5, 70, 16)]


@pytest.mark.parametrize(("num_centroids", "num_vectors", "dim"), SHAPES)
def test_the_centroids_to_probe_are_those_that_promise_most(num_centroids, num_vectors, dim):
    centroids = byte_centroids(num_centroids, dim)
    vectors = (np.random.default_rng(9).standard_normal((num_vectors, dim)) / 4).astype(np.float32)
    found = best_probes(centroids, vectors, 7, 0.5)
    # Vectors are rounded to 127 levels, each by itself.
    scaled = vectors * centroids.steps
    units = np.abs(scaled).max(axis=1, keepdims=True) / 63
    products = (np.rint(scaled / units) * units) @ centroids.codes.T.astype(np.float32)
    promises = products + 0.5 * np.linalg.norm(vectors, axis=1)[:, None] * centroids.radii
    expected = np.argsort(-promises, axis=1)[:, :7]
    assert found.centroids.tolist() == expected.tolist()
    assert found.promises == pytest.approx(np.take_along_axis(promises, expected, axis=1), abs=1e-4)
    assert found.products == pytest.approx(np.take_along_axis(products, expected, axis=1), abs=1e-4)


def test_rounding_costs_little():
    centroids = byte_centroids(64, 128)
    vectors = (np.random.default_rng(9).standard_normal((37, 128)) / 11).astype(np.float32)
    found = best_probes(centroids, vectors, 64, 0.5)
    exact = vectors @ (centroids.codes * centroids.steps).T
    lengths = np.linalg.norm(centroids.codes * centroids.steps, axis=1)
    missed = found.products - np.take_along_axis(exact, found.centroids, axis=1)
    assert np.abs(missed / lengths[found.centroids]).max() < 0.03


def test_a_centroid_that_promises_no_more_than_the_floor_is_not_probed():
    codes = np.array([[90], [50], [20], [70], [10]], np.int8) * np.eye(1, 16, dtype=np.int8)
    centroids = with_sums(codes, np.full(16, 0.01, np.float32), np.zeros(5, np.float32))
    vectors, floors = np.repeat(np.eye(1, 16, dtype=np.float32), 2, axis=0), np.array([0.6, 0.95], np.float32)
    found = best_probes(centroids, vectors, 3, 0.5, floors)
    assert found.centroids[0, :2].tolist() == [0, 3]
    assert np.isneginf(found.promises).tolist() == [[False, False, True], [True, True, True]]


@pytest.mark.parametrize("num_centroids", [1, 2, 3, 5])
def test_a_codec_of_few_centroids_is_filled_up_with_some_that_are_never_probed(tmp_path, num_centroids):
    vectors = np.eye(num_centroids, 16, dtype=np.float32)
    documents = [("d", EncodedDocument(np.zeros(num_centroids, np.int32), vectors))]
    index = Index.create_from_vectors(tmp_path / "i", documents, bits=4, vocabulary_size=9, progress=False)
    codec = index.snapshot.codec
    assert len(codec.byte_centroids.codes) == max(4, codec.num_centroids)
    found = best_probes(codec.byte_centroids, np.concatenate([vectors, 0 * vectors[:1]]), 9, 0.5)
    probed = found.centroids[np.isfinite(found.promises)]
    assert set(probed.tolist()) == set(range(codec.num_centroids))


def test_vectors_that_are_not_filled_up_are_refused():
    with pytest.raises(ValueError, match="multiple of 16, found 24"):
        best_probes(byte_centroids(4, 24), np.ones((2, 24), np.float32), 2, 0.5)


def test_one_vector_or_many_are_compiled_once():
    """A column of one row is contiguous, one of many is not."""
    centroids, vectors = byte_centroids(20, 16), np.eye(3, 16, dtype=np.float32)
    floors = np.full((3, 4), -1, np.float32)
    best_probes(centroids, vectors, 2, 0.5, floors[:, -1])
    compiled = len(probes._probe.overloads)
    best_probes(centroids, vectors[:1], 2, 0.5, floors[:1, -1])
    assert len(probes._probe.overloads) == compiled
