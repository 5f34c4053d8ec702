"""The vectors nearest to given vectors, by comparing with all."""

from __future__ import annotations

import numpy as np

from colbert_prf.kernels.neighbours import nearest_rows


def test_equally_near_rows_come_in_their_order():
    """Products 2, 1, 2 and 0 with (1, 0): rows 0 and 2 are equal."""
    stored = np.array([[2, 0], [1, 5], [2, -1], [0, 1]], np.float32)
    found = nearest_rows(np.array([[1, 0]], np.float32), stored, 3)
    assert found.rows.tolist() == [[0, 2, 1]]
    assert found.similarities.tolist() == [[2, 2, 1]]


def test_more_than_there_are():
    found = nearest_rows(np.eye(2, dtype=np.float32), np.eye(1, 2, dtype=np.float32), 3)
    assert found.rows.tolist() == [[0, -1, -1], [0, -1, -1]]
    assert found.similarities.tolist() == [[1, -np.inf, -np.inf], [0, -np.inf, -np.inf]]
