"""Nearest document vectors through the inverted lists, against comparing with all."""

from __future__ import annotations

import numpy as np
import pytest

from colbert_prf.index.codec import Codec
from colbert_prf.kernels.neighbours import nearest_definition, nearest_of, nearest_sketches
from colbert_prf.kernels.probes import Neighbours, Probes
from colbert_prf.kernels.residuals import decode_definition
from colbert_prf.kernels.sketches import Sketches, rows_by_code, sketch_codec, sketch_packed, sketch_vectors

COUNT, KEPT = 10, 20


class Store:
    """Four hundred vectors, of which some are passed over."""

    def __init__(self, bits: int, dim: int) -> None:
        random = np.random.default_rng(5)
        vectors = random.standard_normal((400, dim)).astype(np.float32)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        self.codec = Codec.train(vectors, num_vectors_expected=400, bits=bits)
        self.columns = self.codec.encode(vectors)
        self.residuals = sketch_codec(self.codec.residuals)
        self.sketches = self.sketch()
        self.decoded = self.decode()
        self.skipped = np.array([[0, 3], [200, 230]])
        self.live_rows = np.ones(400, dtype=np.bool_)
        self.live_rows[0:3] = self.live_rows[200:230] = False
        self.wanted = self.codec.pad((random.standard_normal((6, dim)) / 5).astype(np.float32))

    def sketch(self) -> Sketches:
        codec, columns = self.codec, self.columns
        rows, starts = rows_by_code(columns["codes"], codec.num_centroids)
        if codec.bits == 16:
            packed, scales = sketch_vectors(
                columns["vectors"], codec.centroids, columns["codes"], codec.residuals, rows
            )
        else:
            packed, scales = sketch_packed(columns["residuals"], codec.residuals, rows), columns["scales"][rows]
        return Sketches(rows, starts, packed, scales)

    def decode(self) -> np.ndarray:
        """The vectors as the sketches have them, by the definition of the codec, in the order of the rows."""
        width = self.codec.centroids.shape[1] * self.residuals.bits // 8
        packed, scales = np.empty((400, width), np.uint8), np.empty((400, 2), np.uint8)
        packed[self.sketches.rows], scales[self.sketches.rows] = self.sketches.packed[:, :width], self.sketches.scales
        return decode_definition(packed, scales, self.columns["codes"], self.codec.centroids, self.residuals)

    def nearest(self, probed, promises=1.0) -> Neighbours:
        products = np.take_along_axis(self.wanted @ self.codec.centroids.T, probed, axis=1)
        probes = Probes(probed, np.broadcast_to(np.float32(promises), probed.shape).copy(), products)
        return nearest_sketches(self.wanted, probes, self.residuals, self.sketches, self.skipped, COUNT, KEPT)


@pytest.fixture(scope="module", params=[(1, 32), (2, 48), (4, 32), (8, 32), (16, 20), (4, 128)])
def store(request) -> Store:
    return Store(*request.param)


def test_a_sketch_points_where_the_vector_does(store):
    stored = store.codec.pad(store.codec.decode(store.columns))
    cosines = np.sum(stored * store.decoded, axis=1) / np.linalg.norm(store.decoded, axis=1)
    assert cosines.mean() > (0.9 if store.residuals.bits == 1 else 0.95)
    if store.codec.bits <= 2:
        assert store.decoded == pytest.approx(stored, abs=1e-6)


def test_with_every_centroid_probed_it_is_the_definition(store):
    probed = np.tile(np.arange(store.codec.num_centroids), (len(store.wanted), 1))
    found = store.nearest(probed)
    rows = np.flatnonzero(store.live_rows)
    expected = nearest_definition(store.wanted, store.decoded[rows], KEPT)
    # The vector is rounded to bytes: two neighbours may change places where they are nearly as near.
    assert found.similarities == pytest.approx(expected.similarities, abs=4e-3)
    exact = np.take_along_axis(store.wanted @ store.decoded.T, found.rows, axis=1)
    assert found.similarities == pytest.approx(exact, abs=4e-3)
    assert store.live_rows[found.rows].all()
    assert all(len(set(mine)) == KEPT for mine in found.rows.tolist())


def test_only_vectors_of_the_probed_centroids_are_found(store):
    probed = np.arange(2 * len(store.wanted)).reshape(-1, 2) % store.codec.num_centroids
    found = store.nearest(probed)
    for mine, rows in zip(probed, found.rows, strict=True):
        members = np.flatnonzero(np.isin(store.columns["codes"], mine) & store.live_rows)
        assert set(rows[rows >= 0]) <= set(members)
        assert np.count_nonzero(rows >= 0) == min(KEPT, len(members))


def test_a_centroid_that_promises_less_than_is_found_is_passed_over(store):
    probed = np.tile(np.arange(store.codec.num_centroids), (len(store.wanted), 1))
    found = store.nearest(probed, promises=-1.0)
    for rows in found.rows:
        codes = store.columns["codes"][rows[rows >= 0]]
        # As soon as there are COUNT neighbours, the rest is not looked at; the first two centroids are in any case.
        sizes = np.cumsum([np.count_nonzero((store.columns["codes"] == c) & store.live_rows) for c in probed[0]])
        assert codes.max() <= max(1, np.searchsorted(sizes, COUNT))


def test_of_equal_similarities_the_smaller_row_comes_first():
    stored = np.array([[0, 1], [1, 0], [0, 1], [1, 0]], np.float32)
    found = nearest_definition(np.array([[1, 0]], np.float32), stored, 5)
    assert found.rows.tolist() == [[1, 3, 0, 2, -1]]
    assert found.similarities.tolist() == [[1, 1, 0, 0, -np.inf]]


def test_the_nearest_of_given_similarities_are_those_of_the_definition():
    similarities = np.random.default_rng(3).integers(0, 9, (4, 30)).astype(np.float32)
    found = nearest_of(similarities, 12)
    order = np.argsort(-similarities, axis=1, kind="stable")[:, :12]
    assert np.array_equal(found.rows, order)
    assert np.array_equal(found.similarities, np.take_along_axis(similarities, order, axis=1))


def test_products_with_stored_rows_are_those_of_the_decoded_vectors(store):
    vectors = store.wanted[:, : store.codec.dim]
    rows = np.array([[0, 399, -1], [7, 7, 250]])
    found = store.codec.products(vectors[:2], store.columns, rows)
    decoded = store.codec.decode(store.columns)
    expected = np.einsum("nd,ncd->nc", vectors[:2], decoded[rows])
    assert np.isneginf(found[0, 2])
    assert found[rows >= 0] == pytest.approx(expected[rows >= 0], abs=1e-6)
