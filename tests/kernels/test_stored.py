from __future__ import annotations

import numpy as np
import pytest

from colbert_prf.kernels.maxsim import maxsim
from colbert_prf.kernels.stored import stored_kernel
from colbert_prf.kernels.workers import WorkQueue


def stored_maxsim(queries, weights, vectors, offsets, documents, **workers) -> np.ndarray:
    scores = np.full(len(documents), -np.inf, np.float32)
    WorkQueue([stored_kernel(queries, weights, vectors, offsets, documents, scores)], **workers).finish()
    return scores


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("any_dim", [1, 7, 48, 128])
def test_maxsim_of_stored_vectors_equals_its_definition(query, num_query_vectors, any_dim, dtype, threads, pool):
    vectors = query(30, any_dim)[0].astype(dtype)
    queries, weights = query(num_query_vectors, any_dim)
    offsets, documents = np.array([0, 0, 1, 6, 30, 30]), np.array([4, 3, 0, 1, 2])
    expected = maxsim(queries, weights, vectors.astype(np.float32), offsets)[documents]
    scores = stored_maxsim(queries, weights, vectors, offsets, documents, threads=threads, executor=pool)
    assert scores == pytest.approx(expected, rel=1e-4, abs=1e-4)


def test_negative_similarities_stay_negative():
    vector = np.full((1, 16), 0.25, np.float32)
    assert stored_maxsim(vector, np.ones(1, np.float32), -vector, np.array([0, 1]), np.array([0])) == [-1]
