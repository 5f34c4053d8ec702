"""Is a difference more than chance? The paired t-test, and Holm's correction for testing many times."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from colbert_prf.errors import InputError

__all__ = ["holm", "paired_t_test"]


def paired_t_test(differences: npt.ArrayLike) -> float:
    """Test whether the mean of paired differences is zero.

    With n differences of mean m and standard deviation s, t = m · √n / s follows
    Student's distribution with n - 1 degrees of freedom where only chance is at work (Student, 1908).

    Parameters
    ----------
    differences
        One number per query, shape (num_queries,): one system's value minus the other's. At least two.

    Returns
    -------
    float
        The two-sided p-value: 1 where all differences are 0, 0 where all are the same other number.

    Examples
    --------
    >>> round(paired_t_test([1.0, 2.0, 3.0]), 4)  # t = 2 √3 / 1 = 3.4641 with 2 degrees of freedom
    0.0742
    """
    from scipy.special import stdtr

    values = np.asarray(differences, dtype=np.float64)
    if values.size < 2:
        raise InputError(f"a t-test needs two queries or more, found {values.size}; leave the baseline out")
    mean, deviation = values.mean(), values.std(ddof=1)
    if deviation == 0:
        return 1.0 if mean == 0 else 0.0
    return float(2 * stdtr(values.size - 1, -abs(mean) * np.sqrt(values.size) / deviation))


def holm(p_values: Sequence[float]) -> list[float]:
    """Correct the p-values of a family of tests, so that a false alarm anywhere in it stays as rare as in one test.

    The i-th smallest of m p-values is multiplied by m - i + 1, never below its predecessor nor above 1 (Holm, "A simple
    sequentially rejective multiple test procedure", 1979).

    Parameters
    ----------
    p_values
        Of the family, in any order.

    Returns
    -------
    list of float
        In the same order; compare each with the level of significance as it is.

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03])  # 3 × 0.01; 2 × 0.03; 1 × 0.04 but not below 0.06
    [0.03, 0.06, 0.06]
    """
    values = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(values, kind="stable")
    corrected = np.empty_like(values)
    factors = np.arange(len(values), 0, -1)
    corrected[order] = np.minimum(1.0, np.maximum.accumulate(values[order] * factors))
    return [float(value) for value in corrected]
