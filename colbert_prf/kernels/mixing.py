"""Scores of which only the best are exact: which those are, and all of them made comparable."""

from __future__ import annotations

from typing import Any

import numpy as np

from colbert_prf.kernels.compiled import Array, compiled
from colbert_prf.kernels.selection import kth_largest

__all__ = ["guess", "largest_or_nan", "mixed", "without_number"]


@compiled()
def largest_or_nan(estimates: Array, known: Array, count: int) -> Any:
    """Places of the ``count`` largest estimates (n,), with ties, and of all where ``known`` (n,) is NaN, ascending.

    >>> largest_or_nan(np.array([1, 4, 3, 2], np.float32), np.array([np.nan, 5, 5, 5], np.float32), 2)
    array([0, 1, 2])
    """
    places, found = np.empty(estimates.shape[0], np.int64), 0
    least = kth_largest(estimates, count) if count < estimates.shape[0] else -np.inf
    for i in range(estimates.shape[0]):
        if estimates[i] >= least or np.isnan(known[i]):
            places[found] = i
            found += 1
    return places[:found]


@compiled()
def without_number(values: Array, places: Array) -> Any:
    """The numbers of those of some places where ``values`` is NaN.

    >>> without_number(np.array([np.nan, 1, np.nan], np.float32), np.array([1, 2]))
    array([1])
    """
    numbers, found = np.empty(places.shape[0], np.int64), 0
    for i in range(places.shape[0]):
        if np.isnan(values[places[i]]):
            numbers[found] = i
            found += 1
    return numbers[:found]


@compiled()
def _median(values: Array) -> np.float32:
    """The upper one of two medians; zero of nothing."""
    return np.float32(kth_largest(values, len(values) - len(values) // 2)) if len(values) else np.float32(0)


@compiled()
def guess(estimates: Array, places: Array, exact: Array, rough: Array, scores: Array) -> None:
    """Fill ``scores`` (n,) with those that are ``exact`` at some places, and at the ``rough`` ones with estimates (n,).

    These are raised by what the others miss in the median.

    >>> estimates, scores = np.array([1, 4, 3, 2], np.float32), np.zeros(4, np.float32)
    >>> guess(estimates, np.array([2, 1]), np.array([3.5, 4.5], np.float32), np.array([0, 3]), scores)
    >>> scores
    array([1.5, 4.5, 3.5, 2.5], dtype=float32)
    """
    missed = np.empty(places.shape[0], np.float32)
    for i in range(places.shape[0]):
        scores[places[i]] = exact[i]
        missed[i] = exact[i] - estimates[places[i]]
    more = _median(missed) if rough.shape[0] else np.float32(0)
    for i in rough:
        scores[i] = estimates[i] + more


@compiled()
def mixed(estimates: Array, known: Array, places: Array, exact: Array) -> Any:
    """Estimates (n,), of which those at some places give way to ``exact`` scores.

    All others rise by what estimates miss, the median over the places where ``known`` (n,) is a number: they miss about
    as much, and one would lose by not being exact.

    >>> estimates, known = np.array([1, 4, 3, 2], np.float32), np.array([0, 0, 0, np.nan], np.float32)
    >>> mixed(estimates, known, np.array([1, 3]), np.array([4.5, 9], np.float32))
    array([1.5, 4.5, 3.5, 9. ], dtype=float32)
    """
    missed, found = np.empty(places.shape[0], np.float32), 0
    for i in range(places.shape[0]):
        missed[found] = exact[i] - estimates[places[i]]
        found += not np.isnan(known[places[i]])
    more = _median(missed[:found])
    scores = np.empty(estimates.shape[0], np.float32)
    for i in range(estimates.shape[0]):
        scores[i] = estimates[i] + more
    for i in range(places.shape[0]):
        scores[places[i]] = exact[i]
    return scores
