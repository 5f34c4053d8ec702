from __future__ import annotations

import numpy as np
import pytest

from colbert_prf.kernels.interaction import byte_table, centroid_scores, interact, interact_definition


@pytest.mark.parametrize("num_centroids", [1, 2, 3, 4, 23, 100])
def test_scores_are_products_padded_with_zeros(query, num_query_vectors, num_centroids):
    centroids, (queries, _) = query(num_centroids, 48)[0], query(num_query_vectors, 48)
    scores = centroid_scores(centroids, queries)
    assert scores.shape == (num_centroids, -(-num_query_vectors // 16) * 16)
    assert scores[:, :num_query_vectors] == pytest.approx(centroids @ queries.T, abs=1e-5)
    assert not scores[:, num_query_vectors:].any()


def test_scores_of_centroids_in_bytes():
    centroids = np.random.default_rng(0).integers(-127, 128, (50, 48), dtype=np.int8)
    queries = np.random.default_rng(1).integers(-9, 10, (20, 48)).astype(np.float32)  # no product is rounded
    assert np.array_equal(centroid_scores(centroids, queries)[:, :20], centroids.astype(np.float32) @ queries.T)


def test_a_score_does_not_depend_on_what_else_is_multiplied(query, num_query_vectors, pool):
    """Bit by bit: the vectors of feedback are scored without those of the query, and an index on any machine."""
    centroids, (queries, _) = query(20_000, 48)[0], query(num_query_vectors, 48)
    scores = centroid_scores(centroids, queries)
    assert np.array_equal(centroid_scores(centroids, queries, threads=3, executor=pool), scores)
    assert np.array_equal(centroid_scores(centroids[77:], queries), scores[77:])
    for i in (0, num_query_vectors - 1):
        assert np.array_equal(centroid_scores(centroids, queries[i:])[:, 0], scores[:, i])


def test_bytes_are_the_scores_to_half_a_step(query):
    scores = centroid_scores(query(50, 64)[0], query(9, 64)[0])
    table = byte_table(scores)
    assert np.abs(table.low + table.step * table.values - scores).max() <= 0.51 * table.step


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("documents", [None, np.arange(0, 37, 3)])
def test_interaction_equals_its_definition(collection, query, num_query_vectors, documents, threads, pool):
    _, centroids, _, store, everything = collection(48, 2)
    queries, weights = query(num_query_vectors, 48)
    table = byte_table(centroid_scores(centroids, queries))
    chosen = everything if documents is None else documents
    expected = interact_definition(table, weights, store.codes, store.offsets, chosen)
    scores = interact(table, weights, store.codes, store.offsets, documents, threads=threads, executor=pool)
    assert scores == pytest.approx(expected, rel=1e-5, abs=1e-5)
    assert np.isneginf(scores[0])  # the first document is empty


def test_wide_codes_give_the_same(collection, query):
    _, centroids, _, store, _ = collection(48, 2)
    queries, weights = query(9, 48)
    table = byte_table(centroid_scores(centroids, queries))
    narrow = interact(table, weights, store.codes, store.offsets)
    assert np.array_equal(interact(table, weights, store.codes.astype(np.uint32), store.offsets), narrow)
