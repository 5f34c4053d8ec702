"""Nearest document vectors through the inverted lists, against comparing with all."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from colbert_prf.index.codec import Codec
from colbert_prf.kernels.exact import PackedVectors
from colbert_prf.kernels.neighbours import (
    Lists,
    Neighbours,
    nearest_definition,
    nearest_packed,
    nearest_stored,
    rows_by_code,
)

COUNT = 10


class Store:
    """Four hundred vectors, of which some are passed over."""

    def __init__(self, bits: int) -> None:
        random = np.random.default_rng(5)
        vectors = random.standard_normal((400, 32)).astype(np.float32)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        vectors[7] = vectors[3]
        self.codec = Codec.train(vectors, num_vectors_expected=400, bits=bits)
        self.columns = self.codec.encode(vectors)
        self.decoded = self.codec.decode(self.columns)
        self.lists = Lists(
            *rows_by_code(self.columns["codes"], self.codec.num_centroids), np.array([[0, 3], [200, 230]])
        )
        self.live_rows = np.ones(400, dtype=np.bool_)
        self.live_rows[0:3] = self.live_rows[200:230] = False
        self.wanted = (random.standard_normal((6, 32)) / 5).astype(np.float32)
        self.wanted[0] = vectors[3]

    def nearest(self, probed, **workers) -> Neighbours:
        codes = self.columns["codes"]
        if self.codec.bits == 16:
            stored = self.columns["vectors"]
            return nearest_stored(self.wanted, probed, stored, self.lists, COUNT, **workers)
        scores = np.take_along_axis(self.wanted @ self.codec.centroids.T, probed, axis=1)
        packed = PackedVectors(codes, self.columns["residuals"], self.columns["scales"], np.array([0, 400]))
        return nearest_packed(self.wanted, probed, scores, self.codec.residuals, packed, self.lists, COUNT, **workers)


@pytest.fixture(scope="module", params=[1, 2, 4, 8, 16])
def store(request) -> Store:
    return Store(request.param)


def test_with_every_centroid_probed_it_is_the_definition(store):
    probed = np.tile(np.arange(store.codec.num_centroids), (len(store.wanted), 1))
    found = store.nearest(probed)
    rows = np.flatnonzero(store.live_rows)
    expected = nearest_definition(store.wanted, store.decoded[rows], COUNT)
    assert np.array_equal(found.rows, rows[expected.rows])
    assert found.similarities == pytest.approx(expected.similarities, abs=3e-5)


def test_only_vectors_of_the_probed_centroids_are_found(store):
    probed = np.arange(2 * len(store.wanted)).reshape(-1, 2) % store.codec.num_centroids
    found = store.nearest(probed)
    for mine, rows in zip(probed, found.rows, strict=True):
        members = np.flatnonzero(np.isin(store.columns["codes"], mine) & store.live_rows)
        assert set(rows[rows >= 0]) <= set(members)
        assert np.count_nonzero(rows >= 0) == min(COUNT, len(members))


def test_threads_change_nothing(store):
    probed = np.tile(np.arange(0, store.codec.num_centroids, 2), (len(store.wanted), 1))
    alone = store.nearest(probed)
    with ThreadPoolExecutor(3) as executor:
        together = store.nearest(probed, threads=3, executor=executor)
    assert np.array_equal(alone.rows, together.rows)


def test_of_equal_similarities_the_smaller_row_comes_first():
    stored = np.array([[0, 1], [1, 0], [0, 1], [1, 0]], np.float32)
    found = nearest_definition(np.array([[1, 0]], np.float32), stored, 5)
    assert found.rows.tolist() == [[1, 3, 0, 2, -1]]
    assert found.similarities.tolist() == [[1, 1, 0, 0, -np.inf]]
