"""Exact weighted MaxSim of documents over stored vectors, float32 or float16.

The vectors are multiplied in float32. The definition is :func:`colbert_prf.kernels.maxsim.maxsim`: negative
similarities stay negative, and a document without vectors scores minus infinity.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from colbert_prf.kernels.compiled import Array, compiled
from colbert_prf.kernels.packed import BATCH, longest_document, weighted_sum
from colbert_prf.kernels.simd.float_tile import float_tile
from colbert_prf.kernels.simd.layout import COLUMNS, ROWS, padded
from colbert_prf.kernels.simd.memory import take

__all__ = ["stored_kernel"]


@compiled()
def _best_of_rows(rows: Array, count: int, columns: Array, products: Array, best: Array) -> None:
    """``best = (rows[:count] @ columns).max(axis=0)``; ``products`` is scratch space for one tile."""
    dim, width = columns.shape
    best[:] = -np.inf
    for column in range(0, width, COLUMNS):
        part = best[column : column + COLUMNS]
        for t in range(0, count, ROWS):
            float_tile(rows, t, dim, columns, column, width, products, 0, COLUMNS)
            for r in range(min(ROWS, count - t)):
                row = products[r]
                for j in range(COLUMNS):
                    part[j] = max(part[j], row[j])


@compiled()
def _widen(vectors: Array, is_half: bool, first: int, count: int, rows: Array) -> None:
    """``rows[:count] = vectors[first : first + count]``, which are float16 seen as uint16 where ``is_half``."""
    dim = rows.shape[1]
    bits = rows.view(np.uint32)
    for t in range(count):
        source, row, words = vectors[first + t], rows[t], bits[t]
        if is_half:
            # A float16 shifted into a float32 has an exponent 112 too small.
            for d in range(dim):
                word = np.uint32(source[d])
                words[d] = ((word & np.uint32(0x8000)) << np.uint32(16)) | ((word & np.uint32(0x7FFF)) << np.uint32(13))
            for d in range(dim):
                row[d] *= np.float32(2.0**112)
        else:
            for d in range(dim):
                row[d] = np.float32(source[d])


@compiled()
def _score_stored(
    columns: Array,
    weights: Array,
    vectors: Array,
    is_half: bool,
    offsets: Array,
    documents: Array,
    counter: Array,
    out: Array,
) -> None:
    dim, width = columns.shape
    rows = np.zeros((longest_document(offsets, documents) + ROWS, dim), np.float32)
    products, best = np.empty((ROWS, COLUMNS), np.float32), np.empty(width, np.float32)
    start = take(counter, BATCH)
    while start < len(documents):
        for i in range(start, min(start + BATCH, len(documents))):
            first = offsets[documents[i]]
            count = offsets[documents[i] + 1] - first
            if count:
                _widen(vectors, is_half, first, count, rows)
                _best_of_rows(rows, count, columns, products, best)
                out[i] = weighted_sum(weights, best)
        start = take(counter, BATCH)


def stored_kernel(
    queries: NDArray[np.float32],
    weights: NDArray[np.float32],
    vectors: NDArray[np.float32] | NDArray[np.float16],
    offsets: NDArray[np.int64],
    documents: NDArray[np.int64],
    out: NDArray[np.float32],
) -> Callable[[], None]:
    """A kernel for a :class:`~.workers.WorkQueue` that scores documents over their stored vectors.

    Parameters
    ----------
    queries : float32 of shape (num_queries, dim)
    weights : float32 of shape (num_queries,)
    vectors : float32 or float16 of shape (num_vectors, dim)
    offsets : int64 of shape (num_documents + 1,)
    documents : int64 of shape (num_candidates,)
    out : float32 of shape (num_candidates,)
        Where the scores go. It starts at minus infinity, which documents without vectors keep.

    Examples
    --------
    >>> axes, out = np.eye(2, 16, dtype=np.float32), np.full(1, -np.inf, np.float32)
    >>> stored_kernel(axes, np.array([1, 0.5], np.float32), -axes, np.array([0, 1, 2]), np.array([1]), out)()
    >>> out.tolist()
    [-0.5]
    """
    columns = np.zeros((queries.shape[1], padded(len(queries))), np.float32)
    columns[:, : len(queries)] = queries.T
    is_half = vectors.dtype == np.float16
    stored, counter = vectors.view(np.uint16) if is_half else vectors, np.zeros(1, np.int64)
    return partial(_score_stored, columns, weights, stored, is_half, offsets, documents, counter, out)
