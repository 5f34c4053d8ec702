from __future__ import annotations

import numpy as np
import pytest

from colbert_prf.kernels.distances import MAX_VECTORS, squared_distances, squared_distances_definition


@pytest.mark.parametrize("num_vectors", [1, 2, 15, 16, 17, 130])
@pytest.mark.parametrize("threads", [1, 3])
def test_distances_equal_their_definition(query, num_vectors, dim, pool, threads):
    vectors = query(num_vectors, dim)[0]
    found = squared_distances(vectors, threads=threads, executor=pool)
    np.testing.assert_allclose(found[:, :num_vectors], squared_distances_definition(vectors), atol=3e-6)
    assert found.shape[1] % 16 == 0
    assert not found[:, num_vectors:].any()


def test_symmetric_and_zero_between_equals_exactly():
    vectors = np.random.default_rng(0).standard_normal((50, 33)).astype(np.float32)
    vectors[[7, 20, 49]] = vectors[3]
    found = squared_distances(vectors)[:, :50]
    assert np.array_equal(found, found.T)
    assert not found[np.ix_([3, 7, 20, 49], [3, 7, 20, 49])].any()
    assert found.min() == 0


def test_far_from_the_origin_distances_stay_as_they_are():
    vectors = np.random.default_rng(0).integers(-4, 5, (40, 16)).astype(np.float32)
    np.testing.assert_allclose(squared_distances(vectors + 1000), squared_distances(vectors), rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e30])
def test_values_that_are_not_finite_are_refused(value):
    vectors = np.eye(5, 16, dtype=np.float32)
    vectors[2, 3] = value
    with pytest.raises(ValueError, match="not finite"):
        squared_distances(vectors)


def test_too_many_vectors_are_refused():
    with pytest.raises(ValueError, match=f"{MAX_VECTORS + 1} vectors .* at most {MAX_VECTORS}"):
        squared_distances(np.zeros((MAX_VECTORS + 1, 1), np.float32))
