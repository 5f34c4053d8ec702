"""The centroids to probe, against the definition."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from colbert_prf import EncodedDocument, Index
from colbert_prf.index.codec import NEIGHBOURS
from colbert_prf.kernels.probes import ByteCentroids, best_probes, near_probes, neighbours_of_all


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


@pytest.mark.parametrize("num_centroids", [4, 5, 70])
def test_the_neighbours_of_a_centroid_are_those_that_promise_it_most(num_centroids):
    centroids = byte_centroids(num_centroids, 32)
    found = neighbours_of_all(centroids, 6, 0.5)
    assert found.dtype == np.uint16
    assert found.tolist() == best_probes(centroids, centroids.codes * centroids.steps, 6, 0.5).centroids.tolist()


def test_neighbours_do_not_depend_on_threads():
    centroids = byte_centroids(600, 16)
    with ThreadPoolExecutor(3) as executor:
        shared = neighbours_of_all(centroids, 9, 0.6, threads=3, executor=executor)
    assert np.array_equal(shared, neighbours_of_all(centroids, 9, 0.6))


@pytest.mark.parametrize("dim", [16, 48, 128])
def test_near_probes_are_the_best_of_the_entries_and_their_neighbours(dim):
    centroids, random = byte_centroids(200, dim), np.random.default_rng(dim)
    vectors = (random.standard_normal((30, dim)) / 4).astype(np.float32)
    table = random.integers(0, 200, (200, 5)).astype(np.uint16)
    entries = random.integers(-1, 200, (30, 4))
    entries[:, 3] = entries[:, 0]
    products = vectors @ (centroids.codes * centroids.steps).T
    promises = products + 0.5 * np.linalg.norm(vectors, axis=1)[:, None] * centroids.radii
    floors = np.quantile(promises, 0.2, axis=1).astype(np.float32)
    found = near_probes(centroids, table, entries, vectors, 7, 0.5, floors)
    for i, own in enumerate(entries):
        own = own[own >= 0]
        near = np.unique([*own, *table[own].ravel()]).astype(int)
        near = near[promises[i, near] > floors[i]]
        expected = near[np.argsort(-promises[i, near])][:7]
        count = len(expected)
        assert found.centroids[i, :count].tolist() == expected.tolist()
        assert found.promises[i, :count] == pytest.approx(promises[i, expected], abs=1e-4)
        assert found.products[i, :count] == pytest.approx(products[i, expected], abs=1e-4)
        assert np.isneginf(found.promises[i, count:]).all()


def test_a_vector_without_entries_has_no_probes():
    centroids = byte_centroids(8, 16)
    table, floors = np.zeros((8, 2), np.uint16), np.full(1, -np.inf, np.float32)
    found = near_probes(centroids, table, np.array([[-1, -1]]), np.ones((1, 16), np.float32), 3, 0.5, floors)
    assert np.isneginf(found.promises).all()
    assert found.centroids.tolist() == [[0, 0, 0]]


@pytest.mark.parametrize("num_centroids", [1, 3, 40])
def test_the_neighbours_a_codec_keeps_are_centroids_it_has(tmp_path, num_centroids):
    vectors = np.eye(num_centroids, 48, dtype=np.float32)
    documents = [("d", EncodedDocument(np.zeros(num_centroids, np.int32), vectors))]
    index = Index.create_from_vectors(tmp_path / "i", documents, bits=4, vocabulary_size=9, progress=False)
    codec = index.snapshot.codec
    assert codec.neighbours.shape[1] == min(NEIGHBOURS, max(4, codec.num_centroids))
    assert codec.neighbours[: codec.num_centroids].max() < codec.num_centroids
