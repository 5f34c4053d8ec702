from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from colbert_prf.kernels import maxsim as module
from colbert_prf.kernels.maxsim import maxsim


def by_hand(query, weights, documents):
    """Score one document after the other, straight from the formula."""
    return [
        sum(w * max(float(np.dot(q, d)) for d in document) for q, w in zip(query, weights, strict=True))
        for document in documents
    ]


def test_numbers_worked_out_by_hand():
    query = np.array([[1, 0], [0, 1]], dtype=np.float32)
    weights = np.array([1, 2], dtype=np.float32)
    vectors = np.array([[0.8, 0.6], [0, 1], [1, 0], [-0.6, -0.8]], dtype=np.float32)
    # d0 = rows 0, 1: 1 * .8 + 2 * 1;  d1 = row 2: 1 * 1 + 2 * 0;  d2 = row 3: 1 * -.6 + 2 * -.8
    scores = maxsim(query, weights, vectors, np.array([0, 2, 3, 4]))
    assert scores == pytest.approx([2.8, 1.0, -2.2])


def test_a_negative_maximum_is_not_lifted_to_zero():
    query = np.array([[1, 0]], dtype=np.float32)
    vectors = np.array([[-1, 0], [-0.6, 0.8]], dtype=np.float32)
    assert maxsim(query, np.ones(1, np.float32), vectors, np.array([0, 2])) == pytest.approx([-0.6])


def test_a_document_without_vectors_scores_minus_infinity_wherever_it_stands():
    query = np.array([[1, 0]], dtype=np.float32)
    vectors = np.array([[0.6, 0.8], [0.8, 0.6]], dtype=np.float32)
    scores = maxsim(query, np.ones(1, np.float32), vectors, np.array([0, 0, 1, 1, 2, 2]))
    assert scores.tolist() == pytest.approx([-np.inf, 0.6, -np.inf, 0.8, -np.inf])


@given(
    lengths=st.lists(st.integers(1, 7), min_size=1, max_size=12),
    num_query_vectors=st.integers(1, 6),
    chunk=st.integers(1, 20),
    seed=st.integers(0, 1000),
)
def test_equals_the_formula_whatever_the_chunks(lengths, num_query_vectors, chunk, seed):
    random = np.random.default_rng(seed)
    query = random.standard_normal((num_query_vectors, 8), dtype=np.float32)
    weights = random.random(num_query_vectors, dtype=np.float32)
    offsets = np.cumsum([0, *lengths])
    vectors = random.standard_normal((offsets[-1], 8), dtype=np.float32)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "CHUNK_VECTORS", chunk)
        scores = maxsim(query, weights, vectors, offsets)
    documents = np.split(vectors, offsets[1:-1])
    assert scores == pytest.approx(by_hand(query, weights, documents), abs=1e-4)
