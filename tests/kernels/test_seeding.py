from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from colbert_prf.kernels.seeding import (
    MAX_VECTORS,
    check_clustering,
    choose_seeds,
    choose_seeds_definition,
    draw_uniforms,
    squared_distances,
    squared_distances_definition,
)


@pytest.mark.parametrize("num_vectors", [1, 2, 15, 16, 17, 130])
@pytest.mark.parametrize("threads", [1, 3])
def test_distances_equal_their_definition(query, num_vectors, dim, pool, threads):
    vectors = query(num_vectors, dim)[0]
    distances = squared_distances(vectors, threads=threads, executor=pool)
    np.testing.assert_allclose(distances[:, :num_vectors], squared_distances_definition(vectors), atol=3e-6)
    assert distances.shape[1] % 16 == 0
    assert not distances[:, num_vectors:].any()


def test_symmetric_and_zero_between_equals_exactly():
    vectors = np.random.default_rng(0).standard_normal((50, 33)).astype(np.float32)
    vectors[[7, 20, 49]] = vectors[3]
    distances = squared_distances(vectors)[:, :50]
    assert np.array_equal(distances, distances.T)
    assert not distances[np.ix_([3, 7, 20, 49], [3, 7, 20, 49])].any()
    assert distances.min() == 0


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


def seeds_of(distances: np.ndarray, num_clusters: int, uniforms: np.ndarray) -> np.ndarray:
    seeds = np.empty(num_clusters, np.int64)
    choose_seeds(distances, uniforms, seeds)
    return seeds


@pytest.mark.parametrize("num_clusters", [1, 2, 24, 90])
@pytest.mark.parametrize("seed", range(5))
def test_seeds_equal_their_definition(query, num_clusters, seed):
    distances = squared_distances(query(90, 48)[0])
    (uniforms,) = draw_uniforms(seed, 1, num_clusters)
    expected = choose_seeds_definition(distances[:, :90], num_clusters, uniforms)
    assert seeds_of(distances, num_clusters, uniforms).tolist() == expected.tolist()


def test_seeds_by_hand():
    distances = squared_distances(np.array([[0], [1], [10], [12]], np.float32))
    # The first draw takes vector 0 of 4. The squared distances to it add up to 1, 101, 245: 0.1 draws vector 2,
    # 0.9 draws vector 3. Vector 2 as a seed leaves 0 + 1 + 0 + 4, vector 3 leaves 0 + 1 + 4 + 0: the first of equals.
    assert seeds_of(distances, 2, np.array([0.2, 0.1, 0.9])).tolist() == [0, 2]
    assert seeds_of(distances, 2, np.array([0.2, 0.9, 0.1])).tolist() == [0, 3]
    # Vector 1 would leave 81 + 121.
    assert seeds_of(distances, 2, np.array([0.2, 0.001, 0.1])).tolist() == [0, 2]


@given(rows=st.lists(st.integers(0, 3), min_size=1, max_size=30), seed=st.integers(0, 99), data=st.data())
def test_equal_vectors_are_chosen_only_when_no_other_is_left(rows, seed, data):
    num_clusters = data.draw(st.integers(1, len(rows)))
    vectors = np.eye(4, 16, dtype=np.float32)[rows]
    (uniforms,) = draw_uniforms(seed, 1, num_clusters)
    seeds = seeds_of(squared_distances(vectors), num_clusters, uniforms)
    assert len(set(seeds.tolist())) == num_clusters
    assert len({rows[i] for i in seeds}) == min(num_clusters, len(set(rows)))


def test_the_draws_of_a_start_do_not_depend_on_later_starts():
    assert np.array_equal(draw_uniforms(3, 2, 24), draw_uniforms(3, 10, 24)[:2])
    assert draw_uniforms(3, 1, 24).shape == (1, 1 + 23 * 5)  # 2 + ln 24 trials for all but the first


@pytest.mark.parametrize("num_clusters", [-1, 0, 4])
def test_more_clusters_than_vectors_are_refused(num_clusters):
    with pytest.raises(ValueError, match=f"{num_clusters} clusters of 3 vectors: ask for 1 to 3"):
        check_clustering(3, num_clusters, 1, 1)


@pytest.mark.parametrize("numbers", [(0, 1), (1, 0)])
def test_no_start_and_no_iteration_are_refused(numbers):
    with pytest.raises(ValueError, match="found {} and {}".format(*numbers)):
        check_clustering(3, 2, *numbers)
