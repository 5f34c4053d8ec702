from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from colbert_prf.kernels import residuals
from colbert_prf.kernels.byte_query import byte_query
from colbert_prf.kernels.exact import (
    maxsim_definition,
    maxsim_of_packed,
    maxsim_of_vectors,
    similarities_definition,
)
from colbert_prf.kernels.interaction import centroid_scores

ROUNDED_QUERY = 0.012
"""Largest error of one similarity when the query is rounded to int8: half a step of 1/127 in each of the dimensions."""


@pytest.mark.parametrize("bits", [2, 4])
def test_packed_maxsim_equals_its_definition(collection, query, num_query_vectors, dim, bits, pool):
    _, centroids, codec, store, documents = collection(dim, bits)
    queries, weights = query(num_query_vectors, dim)
    decoded = residuals.decode_definition(store.packed, store.scales, store.codes, centroids, codec)
    expected = maxsim_definition(queries, weights, decoded, store.offsets, documents)
    table = centroid_scores(centroids, queries)
    found = maxsim_of_packed(byte_query(queries, table, codec), weights, store, documents)
    assert found == pytest.approx(expected, abs=float(ROUNDED_QUERY * weights.sum()))
    again = maxsim_of_packed(byte_query(queries, table, codec), weights, store, documents, threads=3, executor=pool)
    assert np.array_equal(again, found)


@pytest.mark.parametrize("bits", [2, 4])
def test_packed_maxsim_is_that_of_the_rounded_query(collection, query, num_query_vectors, dim, bits):
    _, centroids, codec, store, documents = collection(dim, bits)
    queries, weights = query(num_query_vectors, dim)
    table = centroid_scores(centroids, queries)
    found = maxsim_of_packed(byte_query(queries, table, codec), weights, store, documents)
    for document in documents:
        similarities = similarities_definition(queries, table, codec, store, document)
        expected = float(weights @ similarities.max(axis=0)) if len(similarities) else -np.inf
        assert found[document] == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("any_dim", [1, 7, 48, 128])
def test_maxsim_of_stored_vectors_equals_its_definition(query, num_query_vectors, any_dim, dtype, threads, pool):
    vectors = query(30, any_dim)[0].astype(dtype)
    queries, weights = query(num_query_vectors, any_dim)
    offsets, documents = np.array([0, 0, 1, 6, 30, 30]), np.array([4, 3, 0, 1, 2])
    expected = maxsim_definition(queries, weights, vectors.astype(np.float32), offsets, documents)
    found = maxsim_of_vectors(queries, weights, vectors, offsets, documents, threads=threads, executor=pool)
    assert found == pytest.approx(expected, rel=1e-4, abs=1e-4)


def test_negative_similarities_stay_negative():
    one = np.full((1, 16), 0.25, np.float32)
    found = maxsim_of_vectors(one, np.ones(1, np.float32), -one, np.array([0, 1]), np.array([0]))
    assert found == pytest.approx([-1])


def test_a_dim_that_does_not_fit_is_refused(collection, query):
    _, centroids, codec, _, _ = collection(48, 2)
    queries, _ = query(3, 40)
    with pytest.raises(ValueError, match="multiple of 16, found 40"):
        byte_query(queries, centroids, codec)


def test_many_threads_at_once_agree_with_one(collection, query, pool):
    _, centroids, codec, store, documents = collection(128, 4)

    def search(num_vectors: int) -> np.ndarray:
        queries, weights = query(num_vectors, 128)
        table = centroid_scores(centroids, queries, threads=2, executor=pool)
        return maxsim_of_packed(byte_query(queries, table, codec), weights, store, documents, threads=2, executor=pool)

    alone = [search(number) for number in range(1, 41)]
    with ThreadPoolExecutor(6) as callers:
        for one, other in zip(alone, callers.map(search, range(1, 41)), strict=True):
            assert np.array_equal(one, other)
