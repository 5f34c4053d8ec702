from __future__ import annotations

import numpy as np
import pytest

from colbert_prf.kernels.assignment import assign, assign_in_cells, make_cells, nearest_definition

NUM_CENTROIDS, NUM_CELLS = 37, 3


@pytest.fixture(params=[1, 31, 200])
def vectors(request, query):
    return query(request.param, 48)[0]


@pytest.fixture
def centroids(query):
    return 0.7 * query(NUM_CENTROIDS, 48)[0]


def test_the_nearest_is_by_distance_not_by_product():
    centroids = np.array([[3, 0], [1, 0.5]], np.float32)
    assert nearest_definition(np.array([[1, 0]], np.float32), centroids).tolist() == [1]


@pytest.mark.parametrize("threads", [1, 3])
def test_assigning_equals_its_definition(vectors, centroids, pool, threads):
    codes = assign(vectors, centroids, threads=threads, executor=pool)
    assert np.array_equal(codes, nearest_definition(vectors, centroids))


def test_cells_with_full_lists_lose_nothing(vectors, centroids, pool):
    exact = nearest_definition(vectors, centroids)
    cells = make_cells(vectors, exact.astype(np.int32), centroids, centroids[:NUM_CELLS], NUM_CENTROIDS)
    assert np.array_equal(assign_in_cells(vectors, centroids, cells, threads=2, executor=pool), exact)


def test_cells_choose_the_nearest_of_their_list(vectors, centroids):
    exact = nearest_definition(vectors, centroids).astype(np.int32)
    cells = make_cells(vectors, exact, centroids, centroids[:NUM_CELLS], 16)
    lists = cells.lists[nearest_definition(vectors, centroids[:NUM_CELLS])]
    closeness = vectors @ centroids.T - np.square(centroids).sum(axis=1) / 2
    expected = [row[np.argmax(closeness[i, row])] for i, row in enumerate(lists)]
    assert assign_in_cells(vectors, centroids, cells).tolist() == expected


def test_lists_hold_what_the_sample_chose_most(vectors, centroids):
    exact = nearest_definition(vectors, centroids).astype(np.int32)
    listed = make_cells(vectors, exact, centroids, centroids[:1], 16).lists[0]
    visits = np.bincount(exact, minlength=NUM_CENTROIDS)
    assert visits[listed].min() >= np.delete(visits, listed).max()
