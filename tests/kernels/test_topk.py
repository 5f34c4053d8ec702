from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from colbert_prf.kernels.selection import falling, graded, kth_largest, largest, largest_sorted
from colbert_prf.kernels.topk import best, best_sorted

SCORES = st.lists(st.sampled_from([-np.inf, -1.5, -1e-40, -0.0, 0.0, 1e-40, 1.0, 2.0, np.inf]), max_size=40)


@given(values=SCORES, k=st.integers(0, 50))
def test_equals_a_stable_sort(values, k):
    scores = np.array(values, np.float32)
    order = np.lexsort((np.arange(len(scores)), -scores))[:k]
    assert best_sorted(scores, k).tolist() == order.tolist()
    assert best(scores, k).tolist() == sorted(order.tolist())


@given(
    seed=st.integers(0, 1000), levels=st.sampled_from([2, 50, 100_000]), k=st.integers(1, 3000), ascending=st.booleans()
)
def test_many_scores_equal_a_stable_sort(seed, levels, k, ascending):
    scores = np.random.default_rng(seed).integers(-levels, levels, 3000).astype(np.float32)
    if ascending:  # so that a sample of every sixteenth is as unlike the rest as it can be
        scores = np.sort(scores)
    assert best_sorted(scores, k).tolist() == np.lexsort((np.arange(len(scores)), -scores))[:k].tolist()


@given(values=SCORES.filter(len), data=st.data())
def test_the_kth_largest_is_that_of_a_sort(values, data):
    scores = np.array(values, np.float32)
    k = data.draw(st.integers(1, len(values)))
    assert kth_largest(scores, k) == np.sort(scores)[-k]
    assert largest(scores, k).tolist() == best(scores, k).tolist()


@given(values=SCORES, data=st.data())
def test_a_few_largest_are_those_of_a_stable_sort(values, data):
    scores = np.array(values, np.float32)
    k = data.draw(st.integers(0, len(values)))
    assert largest_sorted(scores, k).tolist() == best_sorted(scores, k).tolist()


@given(values=SCORES)
def test_a_falling_order_is_a_stable_sort(values):
    scores = np.array(values)
    order = best_sorted(scores, len(scores))
    assert falling(scores, -np.inf).tolist() == order.tolist()
    assert falling(scores, 0.0).tolist() == order[: np.count_nonzero(scores >= 0)].tolist()


@given(values=SCORES, few=st.integers(1, 50), more=st.integers(0, 20))
def test_scores_are_graded_by_the_kth_largest(values, few, more):
    scores = np.array(values, np.float32)
    places, num_few, others = graded(scores, few, few + more)
    first, second = places[:num_few], places[num_few:]
    assert sorted([*places, *others]) == list(range(len(scores)))
    assert num_few >= min(few, len(scores))
    assert len(places) >= min(few + more, len(scores))
    for part in (first, second, others):
        assert (np.diff(part) > 0).all()
    if len(second):
        assert np.count_nonzero(scores > scores[first].min()) < few
        assert scores[second].max() < scores[first].min()
    if len(others):
        assert np.count_nonzero(scores > scores[places].min()) < few + more
        assert scores[others].max() < scores[places].min()


@pytest.mark.parametrize("unlike", [slice(None), slice(0, None, 16), slice(1, None, 16)])
def test_a_sample_that_misleads_changes_nothing(unlike):
    """Where all that is sampled is far above or below the rest, too few or too many are looked at."""
    for shift in (-100, 100):
        scores = np.random.default_rng(5).standard_normal(5000).astype(np.float32)
        scores[unlike] += shift
        assert best(scores, 200).tolist() == np.sort(np.argsort(-scores, kind="stable")[:200]).tolist()


@pytest.mark.parametrize("count", [1, 100, 5000])
def test_nothing_is_made_up_where_scores_are_no_numbers(count):
    scores = np.arange(5000, dtype=np.float32)
    scores[:count] = np.nan
    found = best(scores, 50)
    assert set(found.tolist()) <= set(range(count, 5000))


def test_what_is_no_number_comes_last_and_doubles_are_sorted_whole():
    assert best_sorted(np.array([np.nan, 1, 2, np.nan], np.float32), 4).tolist() == [2, 1, 0, 3]
    assert best_sorted(np.array([1, 1 + 1e-12, -1]), 3).tolist() == [1, 0, 2]
