from __future__ import annotations

import numpy as np
import pytest

from colbert_prf.kernels.residual_encoding import encode, encode_definition, train
from colbert_prf.kernels.residuals import decode, levels_of


@pytest.mark.parametrize("bits", [2, 4])
def test_encoding_equals_its_definition(collection, dim, bits):
    vectors, centroids, codec, store, _ = collection(dim, bits)
    packed, scales = np.empty_like(store.packed), np.empty_like(store.scales)
    encode(vectors, centroids, store.codes, codec, packed, scales, 0, len(vectors))
    fast, slow = (levels_of(bytes_, codec).astype(int) for bytes_ in (packed, store.packed))
    # Sums of float32 in another order move a value over a boundary now and then.
    assert bits == 2 or np.abs(fast - slow).max() <= 1
    assert np.mean(fast != slow) < 1e-3
    same = (fast == slow).all(axis=1)
    lowest = (1 << codec.scale_bits) - 1
    for part in (lambda numbers: numbers & lowest, lambda numbers: numbers >> codec.scale_bits):
        assert np.abs(part(scales[same]).astype(int) - part(store.scales[same])).max() <= 1


@pytest.mark.parametrize("dim", [16, 128])
def test_a_vector_unlike_the_sample_is_not_kept_too_long(dim):
    """A codec of vectors near one axis, and vectors in all directions: a vector kept too long would rank too high."""
    random = np.random.default_rng(dim)
    axis, codes = np.eye(1, dim, dtype=np.float32), np.zeros(2000, np.uint16)
    sample, others = (axis + noise * random.standard_normal((2000, dim)).astype(np.float32) for noise in (0.02, 10))
    sample, others = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True) for vectors in (sample, others))
    codec = train(sample, axis, codes, 2)
    packed, scales = encode_definition(others, axis, codes, codec)
    fast, fast_scales = np.empty_like(packed), np.empty_like(scales)
    encode(others, axis, codes, codec, fast, fast_scales, 0, len(others))
    assert np.mean(fast_scales == scales) > 0.98
    lengths = np.linalg.norm(decode(packed, scales, codes, axis, codec), axis=1)
    assert np.median(lengths) < 1.05
    assert lengths.max() < 1.2


def test_other_bits_are_refused():
    with pytest.raises(ValueError, match="bits must be one of"):
        train(np.ones((4, 16), np.float32), np.zeros((1, 16), np.float32), np.zeros(4, np.int64), 3)
