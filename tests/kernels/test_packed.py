from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from colbert_prf.kernels.interaction import centroid_scores
from colbert_prf.kernels.maxsim import maxsim
from colbert_prf.kernels.packed import byte_query, packed_kernel, similarities_definition
from colbert_prf.kernels.residuals import decode_definition
from colbert_prf.kernels.workers import WorkQueue

ROUNDED_QUERY = 0.012
"""Largest error of one similarity when the query is rounded to int8: half a step of 1/127 in each of the dimensions."""


def packed_maxsim(queries, weights, collection, **workers) -> np.ndarray:
    _, centroids, codec, store, documents = collection
    table, scores = centroid_scores(centroids, queries), np.full(len(documents), -np.inf, np.float32)
    kernel = packed_kernel(byte_query(queries, table, codec), weights, store, documents, scores)
    WorkQueue([kernel], **workers).finish()
    return scores


@pytest.mark.parametrize("bits", [2, 4])
def test_packed_maxsim_equals_its_definition(collection, query, num_query_vectors, dim, bits, pool):
    _, centroids, codec, store, _ = stored = collection(dim, bits)
    queries, weights = query(num_query_vectors, dim)
    decoded = decode_definition(store.packed, store.scales, store.codes, centroids, codec)
    scores = packed_maxsim(queries, weights, stored)
    expected = maxsim(queries, weights, decoded, store.offsets)
    assert scores == pytest.approx(expected, abs=float(ROUNDED_QUERY * weights.sum()))
    assert np.array_equal(packed_maxsim(queries, weights, stored, threads=3, executor=pool), scores)


@pytest.mark.parametrize("bits", [2, 4])
def test_packed_maxsim_is_that_of_the_rounded_query(collection, query, num_query_vectors, dim, bits):
    _, centroids, codec, store, documents = stored = collection(dim, bits)
    queries, weights = query(num_query_vectors, dim)
    scores = packed_maxsim(queries, weights, stored)
    for document in documents:
        similarities = similarities_definition(queries, centroid_scores(centroids, queries), codec, store, document)
        expected = float(weights @ similarities.max(axis=0)) if len(similarities) else -np.inf
        assert scores[document] == pytest.approx(expected, abs=1e-4)


def test_a_dim_that_does_not_fit_is_refused(collection, query):
    _, centroids, codec, _, _ = collection(48, 2)
    queries, _ = query(3, 40)
    with pytest.raises(ValueError, match="multiple of 16, found 40"):
        byte_query(queries, centroids, codec)


def test_many_threads_at_once_agree_with_one(collection, query, pool):
    def search(num_vectors: int) -> np.ndarray:
        return packed_maxsim(*query(num_vectors, 128), collection(128, 4), threads=2, executor=pool)

    alone = [search(number) for number in range(1, 41)]
    with ThreadPoolExecutor(6) as callers:
        for expected, scores in zip(alone, callers.map(search, range(1, 41)), strict=True):
            assert np.array_equal(expected, scores)
