from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from colbert_prf.kernels import residuals

LARGEST_ERROR = {2: 0.12, 4: 0.02}
"""Squared error of decoding over that of the centroids alone; a normal variable has .091 in a trellis and .012."""


def test_packing_by_hand():
    # One byte holds the dimensions 0 and 2, the other 1 and 3, each from the lowest bits up.
    assert residuals.pack(np.array([[1, 2, 3, 4]], np.uint8), 4).tolist() == [[1 + 16 * 3, 2 + 16 * 4]]
    assert residuals.pack(np.array([[1, 0, 3, 2]], np.uint8), 2).tolist() == [[1 + 4 * 0 + 16 * 3 + 64 * 2]]


@given(bits=st.sampled_from([2, 4]), width=st.integers(1, 9), rows=st.integers(0, 5), seed=st.integers(0, 99))
def test_unpacking_undoes_packing(bits, width, rows, seed):
    codes = np.random.default_rng(seed).integers(0, 1 << bits, (rows, width * 8 // bits)).astype(np.uint8)
    assert np.array_equal(residuals.unpack(residuals.pack(codes, bits), bits), codes)


@pytest.mark.parametrize("bits", [2, 4])
def test_encoding_equals_its_definition(collection, dim, bits):
    vectors, centroids, codec, store, _ = collection(dim, bits)
    packed, scales = np.empty_like(store.packed), np.empty_like(store.scales)
    residuals.encode(vectors, centroids, store.codes, codec, packed, scales, 0, len(vectors))
    fast, slow = (residuals.levels_of(bytes_, codec).astype(int) for bytes_ in (packed, store.packed))
    # Sums of float32 in another order move a value over a boundary now and then.
    assert codec.trellis or np.abs(fast - slow).max() <= 1
    assert np.mean(fast != slow) < 1e-3
    same = (fast == slow).all(axis=1)
    lowest = (1 << codec.half) - 1
    for part in (lambda numbers: numbers & lowest, lambda numbers: numbers >> codec.half):
        assert np.abs(part(scales[same]).astype(int) - part(store.scales[same])).max() <= 1


@pytest.mark.parametrize("bits", [2, 4])
def test_decoding_equals_its_definition_and_is_close_to_the_vectors(collection, dim, bits):
    vectors, centroids, codec, store, _ = collection(dim, bits)
    decoded = residuals.decode(store.packed, store.scales, store.codes, centroids, codec)
    definition = residuals.decode_definition(store.packed, store.scales, store.codes, centroids, codec)
    assert decoded == pytest.approx(definition, abs=2e-6)
    lost = np.square(decoded - vectors).sum() / np.square(vectors - centroids[store.codes]).sum()
    assert lost < LARGEST_ERROR[bits]


def test_decoded_vectors_keep_their_length(collection):
    _, centroids, codec, store, _ = collection(128, 2)
    decoded = residuals.decode(store.packed, store.scales, store.codes, centroids, codec)
    assert np.linalg.norm(decoded, axis=1) == pytest.approx(1, abs=0.02)


@pytest.mark.parametrize("dim", [16, 128])
def test_a_vector_unlike_the_sample_is_not_kept_too_long(dim):
    """A codec of vectors near one axis, and vectors in all directions: what is too long is found for its length."""
    random = np.random.default_rng(dim)
    axis, codes = np.eye(1, dim, dtype=np.float32), np.zeros(2000, np.uint16)
    sample, others = (axis + noise * random.standard_normal((2000, dim)).astype(np.float32) for noise in (0.02, 10))
    sample, others = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True) for vectors in (sample, others))
    codec = residuals.train(sample, axis, codes, 2)
    packed, scales = residuals.encode_definition(others, axis, codes, codec)
    fast, fast_scales = np.empty_like(packed), np.empty_like(scales)
    residuals.encode(others, axis, codes, codec, fast, fast_scales, 0, len(others))
    assert np.mean(fast_scales == scales) > 0.98
    lengths = np.linalg.norm(residuals.decode(packed, scales, codes, axis, codec), axis=1)
    assert np.median(lengths) < 1.05
    assert lengths.max() < 1.2


def test_other_bits_are_refused():
    with pytest.raises(ValueError, match="bits must be one of"):
        residuals.train(np.ones((4, 16), np.float32), np.zeros((1, 16), np.float32), np.zeros(4, np.int64), 3)
