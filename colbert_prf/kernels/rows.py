"""Which rows the vectors of documents are."""

from __future__ import annotations

from typing import Any

import numpy as np

from colbert_prf.kernels.compiled import Array, compiled

__all__ = ["ranges_of_documents", "rows_of_documents"]


@compiled()
def rows_of_documents(offsets: Array, documents: Array) -> Any:
    """The rows of some documents, one document after the other, and of each the number of its document and its place.

    ``offsets`` (num_documents + 1,) of all documents; all three results are int64 of shape (num_rows,).

    >>> [part.tolist() for part in rows_of_documents(np.array([0, 2, 2, 5]), np.array([2, 0]))]
    [[2, 3, 4, 0, 1], [0, 0, 0, 1, 1], [0, 1, 2, 0, 1]]
    """
    total = 0
    for document in documents:
        total += offsets[document + 1] - offsets[document]
    rows, numbers, places = np.empty(total, np.int64), np.empty(total, np.int64), np.empty(total, np.int64)
    at = 0
    for number in range(documents.shape[0]):
        first = offsets[documents[number]]
        for row in range(first, offsets[documents[number] + 1]):
            rows[at], numbers[at], places[at] = row, number, row - first
            at += 1
    return rows, numbers, places


@compiled()
def ranges_of_documents(offsets: Array, positions: Array, start: int) -> Any:
    """The first row of some documents and the row after their last, of shape (num_found, 2).

    ``offsets`` (num_documents + 1,) are those of the documents from position ``start`` on; others are left out.

    >>> ranges_of_documents(np.array([0, 2, 2, 5]), np.array([9, 12, 10]), 10).tolist()
    [[2, 5], [0, 2]]
    """
    out, found = np.empty((positions.shape[0], 2), np.int64), 0
    for position in positions:
        if start <= position < start + offsets.shape[0] - 1:
            out[found, 0], out[found, 1] = offsets[position - start], offsets[position - start + 1]
            found += 1
    return out[:found]
