from __future__ import annotations

from math import sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from colbert_prf.errors import InputError
from colbert_prf.evaluation import holm, paired_t_test


def test_two_differences_worked_by_hand():
    """With one degree of freedom Student's distribution is Cauchy's: P(|T| > t) = 1 - 2 arctan(t) / π."""
    differences = [1.0, 3.0]  # mean 2, deviation √2, t = 2 √2 / √2 = 2
    assert paired_t_test(differences) == pytest.approx(1 - 2 * np.arctan(2) / np.pi)


def test_three_differences_worked_by_hand():
    """With two degrees of freedom P(|T| > t) = 1 - t / √(2 + t²)."""
    differences = [1.0, 2.0, 3.0]  # mean 2, deviation 1, t = 2 √3
    assert paired_t_test(differences) == pytest.approx(1 - 2 * sqrt(3) / sqrt(14))


def test_differences_without_deviation():
    assert paired_t_test([0.0, 0.0, 0.0]) == 1
    assert paired_t_test([0.5, 0.5, 0.5]) == 0


@pytest.mark.parametrize("differences", [[], [0.3]])
def test_one_query_is_too_few(differences):
    with pytest.raises(InputError, match=f"needs two queries or more, found {len(differences)}"):
        paired_t_test(differences)


@given(seed=st.integers(0, 2**32), size=st.integers(2, 60), shift=st.floats(-1, 1))
def test_it_is_the_t_test_of_scipy(seed, size, shift):
    one, other = np.random.default_rng(seed).random((2, size))
    assert paired_t_test(one + shift - other) == pytest.approx(stats.ttest_rel(one + shift, other).pvalue, rel=1e-6)


def test_holm_worked_by_hand():
    # sorted: 4 × 0.005 = 0.02, 3 × 0.01 = 0.03, 2 × 0.03 = 0.06, and 1 × 0.04 but not below 0.06
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.6, 0.5]) == [1, 1]
    assert holm([0.04]) == [0.04]
    assert holm([]) == []


p_values = st.lists(st.floats(0, 1) | st.sampled_from([0.0, 0.01, 0.05, 1.0]), max_size=12)


@given(p_values=p_values, alpha=st.floats(0.001, 0.5))
def test_holm_rejects_what_its_steps_reject(p_values, alpha):
    """Holm's own words: compare the smallest with α/m, the next with α/(m-1), stop at the first that is not below."""
    rejected = set()
    for step, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        if p_values[index] * (len(p_values) - step) >= alpha:
            break
        rejected.add(index)
    assert {index for index, value in enumerate(holm(p_values)) if value < alpha} == rejected


@given(p_values=p_values)
def test_holm_is_between_no_correction_and_bonferroni(p_values):
    for before, after in zip(p_values, holm(p_values), strict=True):
        assert before <= after <= min(1, before * len(p_values))
