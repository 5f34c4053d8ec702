"""The largest of many float32 scores, without sorting them: digit by digit, as radix sort tells numbers apart."""

from __future__ import annotations

from typing import Any

import numpy as np

from colbert_prf.kernels.compiled import Array, compiled

__all__ = ["falling", "graded", "keys_of_falling", "kth_largest", "largest", "largest_sorted"]

SAMPLED = 16
"""Of many scores one in so many tells which are far too low: those are left out before the rest is looked at."""
DIGIT, DIGITS_EACH = 11, 4
"""Bits by which scores are told apart at a time; of few scores, so that there are so many digits for each."""


@compiled()
def kth_largest(scores: Array, k: int) -> float:
    """The k-th largest of scores (n,), float32.

    >>> kth_largest(np.array([1, -3, 2.5, 2.5], np.float32), 3)
    1.0
    """
    bits, keys, sign = scores.view(np.uint32), np.empty(scores.shape[0], np.uint32), np.uint32(1 << 31)
    lowest, highest = np.uint32(0xFFFFFFFF), np.uint32(0)
    for i in range(keys.shape[0]):
        # As whole numbers floats are in order where they are positive, and in reverse where they are negative.
        keys[i] = ~bits[i] if bits[i] & sign else bits[i] | sign
        lowest, highest = min(lowest, keys[i]), max(highest, keys[i])
    counts, left = np.empty(1 << DIGIT, np.int32), keys.shape[0]
    while lowest < highest:
        # As many digits as there is room for, of those in which keys differ.
        shift, last = np.uint32(0), np.int64(highest - lowest)
        while last >= min(counts.shape[0], DIGITS_EACH * left):
            shift += np.uint32(1)
            last >>= 1
        counts[: last + 1] = 0
        for i in range(left):
            counts[(keys[i] - lowest) >> shift] += 1
        digit, kept = last, 0
        while counts[digit] < k:
            k -= counts[digit]
            digit -= 1
        base, lowest, highest = lowest, np.uint32(0xFFFFFFFF), np.uint32(0)
        for i in range(left):
            key = keys[i]
            keys[kept] = key
            if np.int64((key - base) >> shift) == digit:
                kept += 1
                lowest, highest = min(lowest, key), max(highest, key)
        left = kept
    found = keys[:1]
    found[0] = lowest ^ sign if lowest & sign else ~lowest
    return float(found.view(np.float32)[0])


@compiled()
def _at_least(scores: Array, least: float) -> Any:
    places, count = np.empty(scores.shape[0] + 1, np.int64), 0
    for i in range(scores.shape[0]):
        places[count] = i
        count += scores[i] >= least
    return places[:count]


@compiled()
def largest(scores: Array, k: int) -> Any:
    """Positions of the ``k`` largest of scores (n,), float32, ascending; ties go to the smaller position.

    ``k`` is from 1 to n. With NaN among the scores fewer may come back.

    >>> largest(np.array([1, 3, 2, 2], np.float32), 2)
    array([1, 2])
    """
    sample = scores[::SAMPLED].copy()
    # Four standard deviations more than the sample should have of them.
    count = int(k / SAMPLED + 4 * np.sqrt(k / SAMPLED)) + 4
    places = _at_least(scores, kth_largest(sample, count) if count < sample.shape[0] else -np.inf)
    if places.shape[0] < k:
        places = _at_least(scores, -np.inf)
    likely = scores[places]
    threshold, above = kth_largest(likely, k), 0
    for score in likely:
        above += score > threshold
    ties, out, found = k - above, np.empty(k, np.int64), 0
    for i in range(likely.shape[0]):
        tied = likely[i] == threshold
        if likely[i] > threshold or (tied and ties > 0):
            out[found] = places[i]
            found += 1
            ties -= tied
    return out[:found]


@compiled()
def falling(values: Array, least: float) -> Any:
    """Positions of those of a few values (n,) that are at least so much, largest first; ties by position.

    >>> falling(np.array([1.0, 3.0, 2.0, 3.0]), 1.5)
    array([1, 3, 2])
    """
    places, count = np.empty(values.shape[0], np.int64), 0
    for i in range(values.shape[0]):
        if values[i] >= least:
            place = count
            while place > 0 and values[places[place - 1]] < values[i]:
                places[place] = places[place - 1]
                place -= 1
            places[place] = i
            count += 1
    return places[:count]


@compiled()
def keys_of_falling(scores: Array) -> Any:
    """Whole numbers in the order of falling scores (n,), float32, the place of each in its lower half.

    Equal scores are in the order of their places. The result is (keys, whether all scores are numbers); where not, the
    keys are of no use.

    >>> keys, numbers = keys_of_falling(np.array([1, 3, 2, -0.5], np.float32))
    >>> (np.sort(keys) & 0xFFFFFFFF).tolist(), numbers
    ([1, 2, 0, 3], True)
    """
    keys, numbers = np.empty(scores.shape[0], np.int64), True
    negative = np.empty(scores.shape[0], np.float32)
    for i in range(scores.shape[0]):
        negative[i] = np.float32(0) - scores[i]  # zero, whatever its sign, becomes plus zero
        numbers &= scores[i] == scores[i]
    bits = negative.view(np.int32)
    for i in range(scores.shape[0]):
        # As whole numbers floats are in order where they are positive, and in reverse where they are negative.
        keys[i] = (np.int64(bits[i] ^ ((bits[i] >> 31) & 0x7FFFFFFF)) << 32) | i
    return keys, numbers


@compiled()
def largest_sorted(scores: Array, k: int) -> Any:
    """Positions of the ``k`` largest of scores (n,), largest first; ties go to the smaller position.

    ``k`` is from 0 to n, and small, and there is no NaN among the scores.

    >>> largest_sorted(np.array([1, 3, 2, 2], np.float32), 3)
    array([1, 2, 3])
    """
    places, count = np.empty(k, np.int64), 0
    for i in range(scores.shape[0] if k else 0):
        if count == k and scores[i] <= scores[places[k - 1]]:
            continue
        count = min(count + 1, k)
        place = count - 1
        while place > 0 and scores[places[place - 1]] < scores[i]:
            places[place] = places[place - 1]
            place -= 1
        places[place] = i
    return places


@compiled()
def graded(scores: Array, few: int, enough: int) -> Any:
    """Positions of the ``few`` largest of scores (n,), float32, then of those up to the ``enough`` largest; and others.

    With ties; each part is ascending. The result is (positions of both, how many the few are, positions of the others).

    >>> graded(np.array([1, 3, 2, 5, 4], np.float32), 2, 4)
    (array([3, 4, 1, 2]), 2, array([0]))
    """
    most = kth_largest(scores, few) if few < scores.shape[0] else -np.inf
    least = kth_largest(scores, enough) if enough < scores.shape[0] else -np.inf
    # Each place is written where it might belong, and stays if it does: there is no branch to be guessed.
    places, more, others = np.empty((3, scores.shape[0] + 1), np.int64)
    count, between, rest = 0, 0, 0
    for i in range(scores.shape[0]):
        places[count] = more[between] = others[rest] = i
        count += scores[i] >= most
        between += least <= scores[i] < most
        rest += scores[i] < least
    num_few = count
    for i in range(between):
        places[count] = more[i]
        count += 1
    return places[:count], num_few, others[:rest]
