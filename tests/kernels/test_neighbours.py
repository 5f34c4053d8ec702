"""Nearest document vectors through the inverted lists, against comparing with all."""

from __future__ import annotations

import numpy as np
import pytest

from colbert_prf.index.codec import Codec
from colbert_prf.kernels.neighbours import (
    CERTAIN,
    compare_all,
    nearest_definition,
    nearest_sketches,
    settle,
)
from colbert_prf.kernels.probes import Neighbours, Probes
from colbert_prf.kernels.residuals import levels_of, pack
from colbert_prf.kernels.sketches import (
    Sketches,
    dims_of,
    rows_by_code,
    scale_unit,
    sketch_codec,
    sketch_packed,
    sketch_vectors,
)

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
            codes, vectors = columns["codes"], columns["vectors"]
            return sketch_vectors(vectors, codec.centroids, codes, codec.residuals, rows, starts)
        return sketch_packed(columns["residuals"], columns["scales"], codec.residuals, rows, starts)

    def decode(self) -> np.ndarray:
        """The vectors as the sketches have them, by the definition of the codec, in the order of the rows."""
        sketches, bits, dim = self.sketches, self.residuals.bits, self.codec.centroids.shape[1]
        if self.residuals.trellis:
            packed = sketches.packed.transpose(0, 2, 1, 3).reshape(-1, dim // 4)[:400]
            return self.decoded_from(packed[np.argsort(sketches.rows)])
        planes = [(sketches.packed >> np.uint8(plane * bits)) & ((1 << bits) - 1) for plane in range(8 // bits)]
        # (blocks, chunks, 16, planes, 4) to (blocks, 16, chunks, planes, 4)
        codes = np.stack(planes, axis=3).transpose(0, 2, 1, 3, 4).reshape(-1, dims_of(dim, bits))
        assert not codes[:, dim:].any()
        levels = np.empty((400, dim), np.uint8)
        levels[sketches.rows] = codes[:400, :dim]
        return self.decoded_from(pack(levels, bits))

    def decoded_from(self, packed: np.ndarray) -> np.ndarray:
        """The scales and gains of sketches are bytes, in units of their own."""
        sketches, codec = self.sketches, self.residuals
        scale, gain = np.empty((2, 400), np.float32)
        scale[sketches.rows], gain[sketches.rows] = sketches.scales[:400], sketches.gains[:400] / 512 + 0.875
        levels = 2 * levels_of(packed, codec).astype(np.float32) - codec.top
        centroids = self.codec.centroids[self.columns["codes"]]
        return gain[:, None] * (centroids + (scale * scale_unit(codec))[:, None] * levels * codec.steps)

    def nearest(self, probed, promises=1.0, *, token_ids=None, known=None) -> Neighbours:
        products = np.take_along_axis(self.wanted @ self.codec.centroids.T, probed, axis=1)
        probes = Probes(probed, np.broadcast_to(np.float32(promises), probed.shape).copy(), products)
        nothing = np.full((len(self.wanted), COUNT), -1, np.int32), np.full((len(self.wanted), COUNT), -np.inf)
        tokens, near = nothing if known is None else known
        return nearest_sketches(
            self.wanted,
            probes,
            self.sketches,
            self.residuals,
            self.skipped,
            np.arange(400, dtype=np.uint16) if token_ids is None else token_ids,
            tokens,
            near.astype(np.float32),
            KEPT,
        )


@pytest.fixture(scope="module", params=[(2, 48), (4, 32), (16, 20), (4, 128)])
def store(request) -> Store:
    return Store(*request.param)


def test_a_sketch_points_where_the_vector_does(store):
    stored = store.codec.pad(store.codec.decode(store.columns))
    cosines = np.sum(stored * store.decoded, axis=1) / np.linalg.norm(store.decoded, axis=1)
    assert cosines.mean() > 0.95
    if store.codec.bits == 2:
        # All the same but for a scale and a gain of four bits, which are given in steps of their own.
        assert store.decoded == pytest.approx(stored, abs=3e-3)


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


def test_where_nearly_all_tokens_are_the_same_no_further_centroid_is_looked_at(store):
    probed = np.tile(np.arange(store.codec.num_centroids), (len(store.wanted), 1))
    everything = store.nearest(probed)
    alike = store.nearest(probed, token_ids=np.zeros(400, np.uint16))
    codes, live = store.columns["codes"], store.live_rows
    sizes = np.cumsum([np.count_nonzero((codes == c) & live) for c in probed[0]])
    last = max(CERTAIN - 1, int(np.searchsorted(sizes, COUNT)))
    for rows in alike.rows:
        assert set(rows[rows >= 0]) <= set(np.flatnonzero(live & (codes <= last)))
    # Of the nearest ten one may have another token, two may not.
    for others, clear in ((1, True), (2, False)):
        token_ids = np.arange(400, dtype=np.uint16)
        token_ids[(codes <= last) & live] = 1000
        first = store.nearest(probed[:, : last + 1], token_ids=token_ids).rows[0, :others]
        token_ids[first] = 2000 + np.arange(others)
        found = store.nearest(probed, token_ids=token_ids)
        assert np.array_equal(found.rows[0], everything.rows[0]) != clear or last + 1 == store.codec.num_centroids


def test_what_is_known_to_be_near_is_kept_among_what_is_found(store):
    probed = np.tile(np.arange(store.codec.num_centroids), (len(store.wanted), 1))
    found = store.nearest(probed)
    shape = (len(store.wanted), COUNT)
    tokens, near = np.full(shape, -1, np.int32), np.full(shape, -np.inf, np.float32)
    tokens[:, :2], near[:, 0], near[:, 1] = 77, 9.0, found.similarities[:, 3] - 1e-6
    mixed = store.nearest(probed, known=(tokens, near))
    assert (mixed.rows[:, 0] == -2).all()
    assert (mixed.rows[:, 5] == -3).all()
    assert np.array_equal(mixed.rows[:, 1:5], found.rows[:, :4])
    assert np.array_equal(mixed.rows[:, 6:], found.rows[:, 4 : KEPT - 2])


def test_tokens_settle_in_the_order_of_their_nearness():
    random = np.random.default_rng(3)
    known, near = np.full((4, 12), -1, np.int32), np.full((4, 12), -np.inf, np.float32)
    token_ids = random.permutation(300).astype(np.uint16)
    parts = [(np.arange(30) + 100 * part, random.standard_normal((4, 30)).astype(np.float32)) for part in range(3)]
    for numbers, products in parts:
        rows = np.tile(numbers, (4, 1))
        rows[:, 7] = -1
        largest = settle(rows, products, token_ids, known, near)
        assert token_ids[rows].max() >= largest >= max(token_ids[rows[i, products[i].argmax()]] for i in (0, 3))
    rows, products = np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts], axis=1)
    products[:, 7::30] = -np.inf
    order = np.argsort(-products, axis=1)[:, :12]
    assert np.array_equal(known, token_ids[rows[order]])
    assert np.array_equal(near, np.take_along_axis(products, order, axis=1))


@pytest.mark.parametrize("num_stored", [1, 3, 4, 7, 40])
@pytest.mark.parametrize("num_vectors", [1, 24, 37])
def test_a_few_stored_vectors_are_all_compared(num_stored, num_vectors):
    random = np.random.default_rng(num_stored)
    vectors, stored = (random.standard_normal((count, 32)).astype(np.float32) for count in (num_vectors, num_stored))
    found, expected = compare_all(vectors, stored, 5), nearest_definition(vectors, stored, 5)
    assert np.array_equal(found.rows, expected.rows)
    assert found.similarities == pytest.approx(expected.similarities, abs=1e-5)


@pytest.mark.parametrize("count", [1, 10, 16, 17, 40])
def test_the_nearest_of_many_are_found_however_they_are_ordered(count):
    """Products fall, rise, or are equal: groups of every sixteenth then are as unlike each other as can be."""
    random = np.random.default_rng(count)
    vectors = np.eye(3, 16, dtype=np.float32)
    stored = np.zeros((150, 16), np.float32)
    stored[:, 0], stored[:, 1] = np.arange(150), -np.arange(150)
    stored[:, 2] = random.integers(0, 4, 150)
    found, expected = compare_all(vectors, stored, count), nearest_definition(vectors, stored, count)
    assert np.array_equal(found.rows, expected.rows)
    assert np.array_equal(found.similarities, expected.similarities)


def test_products_with_stored_rows_are_those_of_the_decoded_vectors(store):
    vectors = store.wanted[:, : store.codec.dim]
    rows = np.array([[0, 399, -1], [7, 7, 250]])
    found = store.codec.products(vectors[:2], store.columns, rows)
    decoded = store.codec.decode(store.columns)
    expected = np.einsum("nd,ncd->nc", vectors[:2], decoded[rows])
    assert np.isneginf(found[0, 2])
    assert found[rows >= 0] == pytest.approx(expected[rows >= 0], abs=1e-6)
