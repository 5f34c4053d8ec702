"""Centroid interaction: the MaxSim of a document from the centroids of its vectors alone.

    score(d) = Σ_i w_i · max_{t ∈ d} q_i · c(t)

The products q·c of one query are rounded to bytes, so that the row of a centroid is one or two vector registers and a
document costs one ``max`` instruction a vector. At about a nanosecond a document vector, the first stage may look at
every document of an index of a few million vectors.
"""

from __future__ import annotations

from concurrent.futures import Executor
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from colbert_prf.kernels.compiled import Array, compiled
from colbert_prf.kernels.parallel import run
from colbert_prf.kernels.simd import (
    AHEAD,
    COLUMNS,
    ROWS,
    float_tile,
    maximum_of_rows_16,
    maximum_of_rows_32,
    prefetch,
)

__all__ = ["ByteTable", "byte_table", "centroid_scores", "interact", "interact_definition", "largest_scores", "padded"]


CODES_AHEAD = 4
"""A document takes less time than its codes to arrive: so many are on their way, and their offsets before them."""
WORTH_A_THREAD = 2000
"""Documents that take as long as waking a thread does, some 0.2 ms."""


class ByteTable(NamedTuple):
    """Centroid scores as bytes: ``scores ≈ low + step · values``, values of shape (num_centroids, width)."""

    values: NDArray[np.uint8]
    low: np.float32
    step: np.float32


def padded(num_queries: int) -> int:
    """Width of the arrays of a query: its number of vectors, up to a multiple of 16."""
    return max(1, -(-num_queries // COLUMNS)) * COLUMNS


@compiled()
def _products(centroids: Array, queries: Array, start: int, stop: int, out: Array) -> None:
    num_centroids, dim = centroids.shape
    width = queries.shape[1]
    for tile in range(start, stop):
        # The last tile overlaps the one before rather than reading past the end.
        row = min(tile * ROWS, num_centroids - ROWS)
        for column in range(0, width, COLUMNS):
            float_tile(centroids, row, dim, queries, column, width, out, row * width + column, width)


def centroid_scores(
    centroids: NDArray[np.float32],
    queries: NDArray[np.float32],
    *,
    threads: int = 1,
    executor: Executor | None = None,
) -> NDArray[np.float32]:
    """``centroids @ queries.T`` with the columns padded by zeros to a multiple of 16.

    BLAS is as fast alone, but its own threads make a small product wait whole time slices on a busy machine. For
    centroids in bytes see :mod:`.byte_products`.

    Parameters
    ----------
    centroids : float32 of shape (num_centroids, dim)
    queries : float32 of shape (num_queries, dim)

    Returns
    -------
    float32 of shape (num_centroids, width)
    """
    width = padded(len(queries))
    columns = np.zeros((centroids.shape[1], width), np.float32)
    columns[:, : len(queries)] = queries.T
    if len(centroids) < ROWS:
        return np.ascontiguousarray(centroids @ columns)
    out = np.empty((len(centroids), width), np.float32)
    run(
        lambda start, stop: _products(centroids, columns, start, stop, out),
        -(-len(centroids) // ROWS),
        threads=threads,
        executor=executor,
    )
    return out


@compiled(fastmath={"nnan", "nsz", "ninf", "contract"})
def _to_bytes(scores: Array, low: np.float32, inverse: np.float32, values: Array) -> None:
    flat, out = scores.ravel(), values.ravel()
    for i in range(flat.size):
        out[i] = np.uint8(np.int32((flat[i] - low) * inverse + np.float32(0.5)))


def byte_table(scores: NDArray[np.float32]) -> ByteTable:
    """Round centroid scores (num_centroids, width) to 256 levels between their smallest and largest value.

    >>> byte_table(np.array([[0.1, 1.0], [0.5, -1.0]], np.float32)).values.tolist()
    [[140, 255], [191, 0]]
    """
    # NumPy finds extremes six times as fast as a compiled loop, which LLVM does not vectorise.
    low, high = scores.min(), scores.max()
    step = np.float32(max((high - low) / 255, 1e-12))
    values = np.empty(scores.shape, np.uint8)
    _to_bytes(scores, low, np.float32(1) / step, values)
    return ByteTable(values, low, step)


def largest_scores(table: ByteTable) -> NDArray[np.float32]:
    """The largest centroid score of each column, of shape (width,).

    >>> largest_scores(byte_table(np.array([[0.0, 1.0], [0.5, -1.0]], np.float32))).round(2)
    array([0.5, 1. ], dtype=float32)
    """
    return np.asarray(table.low + table.step * table.values.max(axis=0).astype(np.float32))


def interact_definition(
    table: ByteTable,
    weights: NDArray[np.float32],
    codes: NDArray[np.integer],
    offsets: NDArray[np.int64],
    documents: NDArray[np.integer],
) -> NDArray[np.float32]:
    """The definition of :func:`interact` in NumPy."""
    out = np.full(len(documents), -np.inf, np.float32)
    for position, document in enumerate(documents):
        rows = table.values[codes[offsets[document] : offsets[document + 1]], : len(weights)]
        if len(rows):
            out[position] = np.sum(weights * (table.low + table.step * rows.max(axis=0).astype(np.float32)))
    return out


@compiled(fastmath={"reassoc", "contract", "nsz"})
def _interact(
    values: Array,
    low: np.float32,
    step: np.float32,
    weights: Array,
    codes: Array,
    offsets: Array,
    documents: Array,
    everything: bool,
    start: int,
    stop: int,
    out: Array,
) -> None:
    width, num_queries = values.shape[1], weights.shape[0]
    best = np.empty(width, np.uint8)
    for position in range(start, stop):
        document = position if everything else documents[position]
        if not everything:
            if position + AHEAD < stop:
                prefetch(offsets, documents[position + AHEAD])
            if position + CODES_AHEAD < stop:
                later = documents[position + CODES_AHEAD]
                for t in range(offsets[later], offsets[later + 1], 32):
                    prefetch(codes, t)
        begin, end = offsets[document], offsets[document + 1]
        if begin == end:
            out[position] = -np.inf
            continue
        for column in range(0, width - COLUMNS, 2 * COLUMNS):
            maximum_of_rows_32(values, width, column, codes, begin, end, best)
        if width % (2 * COLUMNS):
            maximum_of_rows_16(values, width, width - COLUMNS, codes, begin, end, best)
        total = np.float32(0)
        for i in range(num_queries):
            total += weights[i] * (low + step * np.float32(best[i]))
        out[position] = total


def interact(
    table: ByteTable,
    weights: NDArray[np.float32],
    codes: NDArray[np.integer],
    offsets: NDArray[np.int64],
    documents: NDArray[np.int64] | None = None,
    *,
    threads: int = 1,
    executor: Executor | None = None,
) -> NDArray[np.float32]:
    """Approximate weighted MaxSim of documents from the centroids of their vectors.

    Parameters
    ----------
    table : ByteTable
        Centroid scores of the query, padded to a multiple of 16 columns.
    weights : float32 of shape (num_queries,)
    codes : uint16 or uint32 of shape (num_vectors,)
        Centroid of every document vector, document after document.
    offsets : int64 of shape (num_documents + 1,)
        Document d owns the vectors ``offsets[d]:offsets[d + 1]``.
    documents : int64 of shape (num_candidates,), optional
        The documents to score; all of them by default.

    Returns
    -------
    float32 of shape (num_candidates,); minus infinity for a document without vectors
    """
    everything = documents is None
    if documents is None:
        documents = np.empty(0, np.int64)
    out = np.empty(len(offsets) - 1 if everything else len(documents), np.float32)

    def of_range(start: int, stop: int) -> None:
        _interact(table.values, table.low, table.step, weights, codes, offsets, documents, everything, start, stop, out)

    run(of_range, len(out), threads=threads, executor=executor, shortest=WORTH_A_THREAD)
    return out
