"""The best k of many scores, the same whatever the order of computation: ties go to the smaller position."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["best", "best_sorted"]


def best(scores: NDArray[np.floating[Any]], k: int) -> NDArray[np.int64]:
    """Positions of the ``k`` largest scores (all, if fewer), ascending; ties go to the smaller position.

    >>> best(np.array([1.0, 3.0, 2.0, 2.0], np.float32), 2).tolist()
    [1, 2]
    """
    if k >= len(scores):
        return np.arange(len(scores))
    if k <= 0:
        return np.empty(0, np.int64)
    threshold = np.partition(scores, len(scores) - k)[len(scores) - k]
    kept = np.flatnonzero(scores >= threshold)
    surplus = len(kept) - k
    if surplus > 0:
        kept = np.delete(kept, np.flatnonzero(scores[kept] == threshold)[-surplus:])
    return kept


def best_sorted(scores: NDArray[np.floating[Any]], k: int) -> NDArray[np.int64]:
    """Positions of the ``k`` largest scores, largest first; ties go to the smaller position.

    >>> best_sorted(np.array([1.0, 3.0, 2.0, 2.0], np.float32), 3).tolist()
    [1, 2, 3]
    """
    kept = best(scores, k)
    return kept[np.argsort(-scores[kept], kind="stable")]
