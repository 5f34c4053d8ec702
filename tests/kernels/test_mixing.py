from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from colbert_prf.kernels.mixing import guess, largest_or_nan, mixed, without_number

NUMBERS = st.integers(0, 2**32 - 1).map(np.random.default_rng)


def with_holes(random: np.random.Generator, count: int) -> np.ndarray:
    values = random.standard_normal(count).astype(np.float32)
    values[random.random(count) < 0.3] = np.nan
    return values


@given(random=NUMBERS, size=st.integers(1, 40), count=st.integers(1, 50))
def test_the_largest_and_the_unknown(random, size, count):
    estimates, known = random.permutation(size).astype(np.float32), with_holes(random, size)
    expected = set(np.argsort(-estimates)[:count]) | set(np.flatnonzero(np.isnan(known)))
    assert largest_or_nan(estimates, known, count).tolist() == sorted(expected)


@given(random=NUMBERS, size=st.integers(1, 40))
def test_places_without_a_number(random, size):
    values, places = with_holes(random, size), np.flatnonzero(random.random(size) < 0.5)
    assert without_number(values, places).tolist() == np.flatnonzero(np.isnan(values[places])).tolist()


@given(random=NUMBERS, size=st.integers(1, 40))
def test_exact_scores_stand_and_the_others_rise_alike(random, size):
    estimates, known = random.standard_normal(size).astype(np.float32), with_holes(random, size)
    places = np.flatnonzero(random.random(size) < 0.5)
    exact = random.standard_normal(len(places)).astype(np.float32)
    missed = np.sort((exact - estimates[places])[~np.isnan(known[places])])
    expected = estimates + (missed[len(missed) // 2] if len(missed) else np.float32(0))
    expected[places] = exact
    assert mixed(estimates, known, places, exact).tolist() == expected.tolist()


@given(random=NUMBERS, size=st.integers(1, 40))
def test_rough_scores_are_estimates_raised_alike(random, size):
    estimates, order = random.standard_normal(size).astype(np.float32), random.permutation(size)
    places, rough = np.split(order, [random.integers(0, size + 1)])
    exact, scores = random.standard_normal(len(places)).astype(np.float32), np.full(size, np.nan, np.float32)
    guess(estimates, places, exact, rough, scores)
    missed = np.sort(exact - estimates[places])
    more = missed[len(missed) // 2] if len(missed) else np.float32(0)
    assert scores[places].tolist() == exact.tolist()
    assert scores[rough].tolist() == (estimates[rough] + more).tolist()
