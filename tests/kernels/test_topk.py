from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from colbert_prf.kernels.topk import best, best_sorted

SCORES = st.lists(st.sampled_from([-np.inf, -1.5, -1e-40, -0.0, 0.0, 1e-40, 1.0, 2.0, np.inf]), max_size=40)


@given(values=SCORES, k=st.integers(0, 50))
def test_equals_a_stable_sort(values, k):
    scores = np.array(values, np.float32)
    order = np.lexsort((np.arange(len(scores)), -scores))[:k]
    assert best_sorted(scores, k).tolist() == order.tolist()
    assert best(scores, k).tolist() == sorted(order.tolist())


@given(seed=st.integers(0, 1000), levels=st.sampled_from([2, 50, 100_000]), k=st.integers(1, 3000))
def test_many_scores_equal_a_stable_sort(seed, levels, k):
    scores = np.random.default_rng(seed).integers(-levels, levels, 3000).astype(np.float32)
    assert best_sorted(scores, k).tolist() == np.lexsort((np.arange(len(scores)), -scores))[:k].tolist()


@pytest.mark.parametrize("count", [1, 100, 5000])
def test_nothing_is_made_up_where_scores_are_no_numbers(count):
    scores = np.arange(5000, dtype=np.float32)
    scores[:count] = np.nan
    positions = best(scores, 50)
    assert set(positions.tolist()) <= set(range(count, 5000))


def test_what_is_no_number_comes_last_and_doubles_are_sorted_whole():
    assert best_sorted(np.array([np.nan, 1, 2, np.nan], np.float32), 4).tolist() == [2, 1, 0, 3]
    assert best_sorted(np.array([1, 1 + 1e-12, -1]), 3).tolist() == [1, 0, 2]
