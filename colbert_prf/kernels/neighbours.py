"""The vectors nearest to given vectors, by comparing with all."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Neighbours", "nearest_rows"]


class Neighbours(NamedTuple):
    """``rows`` (num_vectors, count) of the nearest stored vectors, nearest first, and their ``similarities``.

    Where there are fewer than ``count``, the row is -1 and the similarity minus infinity.
    """

    rows: NDArray[np.int64]
    similarities: NDArray[np.float32]


def nearest_rows(vectors: NDArray[np.float32], stored: NDArray[np.float32], count: int) -> Neighbours:
    """The rows of ``stored`` with the largest products, equal ones by row.

    >>> nearest_rows(np.eye(1, 2, dtype=np.float32), np.array([[0, 1], [1, 0]], np.float32), 3).rows.tolist()
    [[1, 0, -1]]
    """
    products = vectors @ stored.T
    order = np.argsort(-products, axis=1, kind="stable")[:, :count]
    rows = np.full((len(vectors), count), -1)
    similarities = np.full((len(vectors), count), np.float32(-np.inf))
    rows[:, : order.shape[1]] = order
    similarities[:, : order.shape[1]] = np.take_along_axis(products, order, axis=1)
    return Neighbours(rows, similarities)
