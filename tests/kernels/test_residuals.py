from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from colbert_prf.kernels.residuals import decode, decode_definition, pack, unpack

LARGEST_ERROR = {2: 0.12, 4: 0.02}
"""Squared error of decoding over that of the centroids alone; a normal variable has .091 in a trellis and .012."""


def test_packing_by_hand():
    # One byte holds the dimensions 0 and 2, the other 1 and 3, each from the lowest bits up.
    assert pack(np.array([[1, 2, 3, 4]], np.uint8)).tolist() == [[1 + 16 * 3, 2 + 16 * 4]]


@given(width=st.integers(1, 9), num_vectors=st.integers(0, 5), seed=st.integers(0, 99))
def test_unpacking_undoes_packing(width, num_vectors, seed):
    levels = np.random.default_rng(seed).integers(0, 16, (num_vectors, 2 * width)).astype(np.uint8)
    assert np.array_equal(unpack(pack(levels)), levels)


@pytest.mark.parametrize("bits", [2, 4])
def test_decoding_equals_its_definition_and_is_close_to_the_vectors(collection, dim, bits):
    vectors, centroids, codec, store, _ = collection(dim, bits)
    decoded = decode(store.packed, store.scales, store.codes, centroids, codec)
    definition = decode_definition(store.packed, store.scales, store.codes, centroids, codec)
    assert decoded == pytest.approx(definition, abs=2e-6)
    lost = np.square(decoded - vectors).sum() / np.square(vectors - centroids[store.codes]).sum()
    assert lost < LARGEST_ERROR[bits]


@pytest.mark.parametrize("bits", [2, 4])
def test_some_rows_decode_to_what_they_are_among_all(collection, bits):
    _, centroids, codec, store, _ = collection(48, bits)
    rows = np.array([7, 3, 3, 100])
    everything = decode(store.packed, store.scales, store.codes, centroids, codec)
    some = decode(store.packed, store.scales, store.codes, centroids, codec, rows)
    assert np.array_equal(some, everything[rows])


def test_decoded_vectors_keep_their_length(collection):
    _, centroids, codec, store, _ = collection(128, 2)
    decoded = decode(store.packed, store.scales, store.codes, centroids, codec)
    assert np.linalg.norm(decoded, axis=1) == pytest.approx(1, abs=0.02)
