"""Centroid interaction: the MaxSim of a document from the centroids of its vectors alone.

    score(d) = Σ_i w_i · max_{t ∈ d} q_i · c(t)

The products q·c of one query are rounded to bytes, so that the row of a centroid fits one or two vector registers and a
document vector costs one ``max`` instruction. At about a nanosecond a document vector, the first stage can score every
document of an index of a few million vectors.
"""

from __future__ import annotations

from concurrent.futures import Executor
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from colbert_prf.kernels.compiled import Array, compiled
from colbert_prf.kernels.simd.float_tile import float_tile, float_tile_32
from colbert_prf.kernels.simd.layout import COLUMNS, ROWS, padded
from colbert_prf.kernels.simd.memory import AHEAD, prefetch
from colbert_prf.kernels.simd.row_maximum import row_maximum_16, row_maximum_32
from colbert_prf.kernels.workers import run

__all__ = ["ByteTable", "byte_table", "centroid_scores", "interact", "interact_definition"]


CODES_AHEAD = 4
"""How many documents ahead codes are prefetched; their offsets, which tell where the codes are, come before them."""
WORTH_A_THREAD = 2000
"""Scoring so many documents takes as long as waking a thread does, some 0.2 ms."""
BLOCK = 16
"""Centroids made float32 at once, while they stay in the first-level cache."""
BLOCKS_WORTH_A_THREAD = 500


class ByteTable(NamedTuple):
    """Centroid scores as bytes: ``scores ≈ low + step · values``, values of shape (num_centroids, width)."""

    values: NDArray[np.uint8]
    low: np.float32
    step: np.float32


@compiled()
def _multiply(rows: Array, columns: Array, start: int, stop: int, out: Array) -> None:
    """``out = rows @ columns`` for the blocks of rows in ``[start, stop)``; ``out`` has whole tiles of rows."""
    (num_rows, dim), width = rows.shape, columns.shape[1]
    block = np.zeros((BLOCK, dim), np.float32)
    for first in range(start * BLOCK, min(stop * BLOCK, num_rows), BLOCK):
        count = min(BLOCK, num_rows - first)
        for r in range(count):
            source, target = rows[first + r], block[r]
            for d in range(dim):
                target[d] = np.float32(source[d])
        for r in range(0, count, ROWS):
            position = (first + r) * width
            for column in range(0, width - COLUMNS, 2 * COLUMNS):
                float_tile_32(block, r, dim, columns, column, width, out, position + column, width)
            if width % (2 * COLUMNS):
                column = width - COLUMNS
                float_tile(block, r, dim, columns, column, width, out, position + column, width)


def centroid_scores(
    centroids: NDArray[np.int8] | NDArray[np.float32],
    queries: NDArray[np.float32],
    *,
    threads: int = 1,
    executor: Executor | None = None,
) -> NDArray[np.float32]:
    """``centroids @ queries.T`` in float32, with the columns padded by zeros to a multiple of 16.

    A product depends on its row and its column alone: it has the same bits on any number of threads, and whatever else
    is multiplied.

    Parameters
    ----------
    centroids : int8 or float32 of shape (num_centroids, dim)
    queries : float32 of shape (num_queries, dim)

    Returns
    -------
    float32 of shape (num_centroids, width)

    Examples
    --------
    >>> centroid_scores(np.array([[1, 2], [3, -4]], np.int8), np.array([[0.5, 1]], np.float32))[:, 0].tolist()
    [2.5, -2.5]
    """
    columns = np.zeros((centroids.shape[1], padded(len(queries))), np.float32)
    columns[:, : len(queries)] = queries.T
    num_centroids = len(centroids)
    out = np.empty((-(-num_centroids // ROWS) * ROWS, columns.shape[1]), np.float32)
    run(
        lambda start, stop: _multiply(centroids, columns, start, stop, out),
        -(-num_centroids // BLOCK),
        threads=threads,
        executor=executor,
        shortest=BLOCKS_WORTH_A_THREAD,
    )
    return out[:num_centroids]


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


def interact_definition(
    table: ByteTable,
    weights: NDArray[np.float32],
    codes: NDArray[np.integer],
    offsets: NDArray[np.int64],
    documents: NDArray[np.integer],
) -> NDArray[np.float32]:
    """The definition of :func:`interact` in NumPy."""
    out = np.full(len(documents), -np.inf, np.float32)
    for i, document in enumerate(documents):
        rows = table.values[codes[offsets[document] : offsets[document + 1]], : len(weights)]
        if len(rows):
            out[i] = np.sum(weights * (table.low + table.step * rows.max(axis=0).astype(np.float32)))
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
    is_all: bool,
    start: int,
    stop: int,
    out: Array,
) -> None:
    width, num_queries = values.shape[1], weights.shape[0]
    best = np.empty(width, np.uint8)
    for i in range(start, stop):
        document = i if is_all else documents[i]
        if not is_all:  # the processor itself prefetches what lies in order
            if i + AHEAD < stop:
                prefetch(offsets, documents[i + AHEAD])
            if i + CODES_AHEAD < stop:
                later = documents[i + CODES_AHEAD]
                for t in range(offsets[later], offsets[later + 1], 32):
                    prefetch(codes, t)
        first, end = offsets[document], offsets[document + 1]
        if first == end:
            out[i] = -np.inf
            continue
        for column in range(0, width - COLUMNS, 2 * COLUMNS):
            row_maximum_32(values, width, column, codes, first, end, best)
        if width % (2 * COLUMNS):
            row_maximum_16(values, width, width - COLUMNS, codes, first, end, best)
        total = np.float32(0)
        for q in range(num_queries):
            total += weights[q] * (low + step * np.float32(best[q]))
        out[i] = total


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
    is_all = documents is None
    if documents is None:
        documents = np.empty(0, np.int64)
    out = np.empty(len(offsets) - 1 if is_all else len(documents), np.float32)

    def interact_range(start: int, stop: int) -> None:
        _interact(table.values, table.low, table.step, weights, codes, offsets, documents, is_all, start, stop, out)

    run(interact_range, len(out), threads=threads, executor=executor, shortest=WORTH_A_THREAD)
    return out
