"""Exact weighted MaxSim of documents: over packed residuals, and over stored vectors.

    score(d) = Σ_i w_i · max_{t ∈ d} q_i · v(t)

Negative similarities stay negative; a document without vectors scores minus infinity. Residual codes are multiplied in
bytes, many vectors of a document at once (:mod:`.lanes`): with the query scaled by the steps of the codec and rounded
to int8, ::

    q · v̂ = gain · (q · c + scale · (factor · Σ_d q8[d]·level[d] + constant))

where q·c is the exact table of centroid scores; rounding the query costs less than 0.001 recall. Stored vectors
(float32, or float16 given as uint16) are multiplied in float32.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from colbert_prf.kernels.byte_query import ByteQuery, byte_query
from colbert_prf.kernels.compiled import Array, compiled
from colbert_prf.kernels.interaction import padded
from colbert_prf.kernels.lanes import CHUNK, LANES, LOWEST, best_of_4, best_of_8, best_of_10, best_of_12, best_of_16
from colbert_prf.kernels.parallel import WorkQueue
from colbert_prf.kernels.residuals import ResidualCodec, levels_of, scale_and_gain
from colbert_prf.kernels.simd import AHEAD, COLUMNS, ROWS, float_tile, prefetch, take

__all__ = [
    "PackedVectors",
    "maxsim_definition",
    "maxsim_of_packed",
    "maxsim_of_vectors",
    "packed_kernel",
    "similarities_definition",
    "vectors_kernel",
    "worthwhile_threads",
]

AT_ONCE = 16
"""Documents a thread takes at once."""
WORTH_A_THREAD = 48
"""Documents that take as long as waking a thread does."""
_LOWEST = np.float32(LOWEST)


class PackedVectors(NamedTuple):
    """The vectors of documents.

    ``codes`` (num_vectors,), ``packed`` (num_vectors, dim·bits/8), ``scales`` (num_vectors,), uint8 where the residuals
    are paths through a trellis, else uint16, and ``offsets`` (num_documents + 1,).
    """

    codes: NDArray[np.integer]
    packed: NDArray[np.uint8]
    scales: NDArray[np.unsignedinteger]
    offsets: NDArray[np.int64]


def maxsim_definition(
    queries: NDArray[np.float32],
    weights: NDArray[np.float32],
    vectors: NDArray[np.float32],
    offsets: NDArray[np.int64],
    documents: NDArray[np.int64],
) -> NDArray[np.float32]:
    """The definition of weighted MaxSim in NumPy, over float32 vectors of shape (num_vectors, dim)."""
    out = np.full(len(documents), -np.inf, np.float32)
    for position, document in enumerate(documents):
        rows = vectors[offsets[document] : offsets[document + 1]]
        if len(rows):
            out[position] = np.sum(weights * (rows @ queries.T).max(axis=0))
    return out


def similarities_definition(
    queries: NDArray[np.float32],
    table: NDArray[np.float32],
    codec: ResidualCodec,
    store: PackedVectors,
    document: int,
) -> NDArray[np.float32]:
    """The similarities :func:`maxsim_of_packed` takes the maxima of, for one document.

    Parameters
    ----------
    queries, table, codec
        As in :func:`byte_query`.
    store
        As in :func:`maxsim_of_packed`.
    document : int

    Returns
    -------
    float32 of shape (num_vectors of the document, num_queries)
    """
    rows = slice(store.offsets[document], store.offsets[document + 1])
    query = byte_query(queries, table, codec)
    count, dim = queries.shape
    planes, _, width, _ = query.values.shape
    rounded = query.values.transpose(2, 0, 1, 3).reshape(width, planes, -1)[:count, :, : dim // planes]
    rounded = rounded.reshape(count, dim).astype(np.float32)
    products = levels_of(store.packed[rows], codec).astype(np.float32) @ rounded.T
    scale, gain = scale_and_gain(store.scales[rows], codec)
    residuals = scale[:, None] * (query.factors[:count] * products + query.constants[:count])
    return np.asarray(gain[:, None] * (table[store.codes[rows], :count] + residuals), dtype=np.float32)


@compiled()
def _longest(offsets: Array, documents: Array) -> int:
    longest = 0
    for document in documents:
        longest = max(longest, offsets[document + 1] - offsets[document])
    return longest


@compiled()
def _weighted_sum(weights: Array, best: Array) -> np.float32:
    total = np.float32(0)
    for i in range(weights.shape[0]):
        total += weights[i] * best[i]
    return total


@compiled()
def _rows_of(offsets: Array, document: int) -> tuple[int, int]:
    """The first vector of a document and how many it has."""
    return offsets[document], offsets[document + 1] - offsets[document]


@compiled()
def _room(store: PackedVectors, rows: int) -> PackedVectors:
    """Room for a copy of the vectors of a document."""
    packed = np.zeros((rows, -(-store.packed.shape[1] // CHUNK) * CHUNK), np.uint8)
    return PackedVectors(np.zeros(rows, store.codes.dtype), packed, np.zeros(rows, store.scales.dtype), store.offsets)


@compiled()
def _copied(store: PackedVectors, first: int, count: int, room: PackedVectors) -> None:
    """Copy the vectors of a document, each filled up to whole chunks, and repeat the last until there are enough."""
    for t in range(max(count, LANES)):
        row = first + min(t, count - 1)
        room.codes[t] = store.codes[row]
        room.scales[t] = store.scales[row]
        for i in range(store.packed.shape[1]):
            room.packed[t, i] = store.packed[row, i]


@compiled()
def _best_of_document(
    query: ByteQuery, num_queries: int, store: PackedVectors, first: int, count: int, following: int, best: Array
) -> None:
    """The largest score of a document for each query column: ``best`` (width,); see ``following`` in :mod:`.lanes`."""
    width, stride = query.table.shape[1], store.packed.shape[1]
    for column in range(0, num_queries, COLUMNS):
        columns = num_queries - column
        if columns > 12:
            best_of_16(query, column, store, stride, width, first, count, following, best)
        elif columns > 10:
            best_of_12(query, column, store, stride, width, first, count, following, best)
        elif columns > 8:
            best_of_10(query, column, store, stride, width, first, count, following, best)
        elif columns > 4:
            best_of_8(query, column, store, stride, width, first, count, following, best)
        else:
            best_of_4(query, column, store, stride, width, first, count, following, best)


@compiled()
def _maxsim_of_codes(
    query: ByteQuery,
    weights: Array,
    store: PackedVectors,
    documents: Array,
    taken: Array,
    out: Array,
) -> None:
    best, whole = np.empty(query.table.shape[1], np.float32), store.packed.shape[1] % CHUNK == 0
    room, stop = _room(store, LANES if whole else max(LANES, _longest(store.offsets, documents))), len(documents)
    start = take(taken, AT_ONCE)
    while start < stop:
        for position in range(start, min(start + AT_ONCE, stop)):
            first, count = _rows_of(store.offsets, documents[position])
            following = store.offsets[documents[min(position + 1, stop - 1)]]
            if position + AHEAD < stop:
                prefetch(store.offsets, documents[position + AHEAD])
            if count >= LANES and whole:
                _best_of_document(query, len(weights), store, first, count, following, best)
            elif count:
                _copied(store, first, count, room)
                _best_of_document(query, len(weights), room, 0, max(count, LANES), 0, best)
            if count:
                out[position] = _weighted_sum(weights, best)
        start = take(taken, AT_ONCE)


@compiled()
def _best_of_rows(rows: Array, count: int, columns: Array, products: Array, best: Array) -> None:
    """``best = (rows[:count] @ columns).max(axis=0)``; ``products`` is room for one tile."""
    dim, width = columns.shape
    best[:] = _LOWEST
    for column in range(0, width, COLUMNS):
        part = best[column : column + COLUMNS]
        for t in range(0, count, ROWS):
            float_tile(rows, t, dim, columns, column, width, products, 0, COLUMNS)
            for r in range(min(ROWS, count - t)):
                row = products[r]
                for j in range(COLUMNS):
                    part[j] = max(part[j], row[j])


@compiled()
def _widen(vectors: Array, half: bool, first: int, count: int, rows: Array) -> None:
    """``rows[:count] = vectors[first : first + count]``, where ``half`` says that these are float16 seen as uint16."""
    dim = rows.shape[1]
    bits = rows.view(np.uint32)
    for t in range(count):
        source, row, words = vectors[first + t], rows[t], bits[t]
        if half:
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
def _maxsim_of_vectors(
    columns: Array,
    weights: Array,
    vectors: Array,
    half: bool,
    offsets: Array,
    documents: Array,
    taken: Array,
    out: Array,
) -> None:
    dim, width = columns.shape
    rows = np.zeros((_longest(offsets, documents) + ROWS, dim), np.float32)
    products, best = np.empty((ROWS, COLUMNS), np.float32), np.empty(width, np.float32)
    start = take(taken, AT_ONCE)
    while start < len(documents):
        for position in range(start, min(start + AT_ONCE, len(documents))):
            first, count = _rows_of(offsets, documents[position])
            if count:
                _widen(vectors, half, first, count, rows)
                _best_of_rows(rows, count, columns, products, best)
                out[position] = _weighted_sum(weights, best)
        start = take(taken, AT_ONCE)


def worthwhile_threads(num_documents: int, threads: int) -> int:
    """As many threads as have something to do."""
    return max(1, min(threads, num_documents // WORTH_A_THREAD))


def _columns(queries: NDArray[np.float32]) -> NDArray[np.float32]:
    columns = np.zeros((queries.shape[1], padded(len(queries))), np.float32)
    columns[:, : len(queries)] = queries.T
    return columns


def packed_kernel(
    query: ByteQuery,
    weights: NDArray[np.float32],
    store: PackedVectors,
    documents: NDArray[np.int64],
    out: NDArray[np.float32],
) -> Callable[[], None]:
    """What :func:`maxsim_of_packed` does, for a :class:`~.parallel.WorkQueue`; ``out`` starts at minus infinity."""
    return partial(_maxsim_of_codes, query, weights, store, documents, np.zeros(1, np.int64), out)


def maxsim_of_packed(
    query: ByteQuery,
    weights: NDArray[np.float32],
    store: PackedVectors,
    documents: NDArray[np.int64],
    *,
    threads: int = 1,
    executor: Executor | None = None,
) -> NDArray[np.float32]:
    """Weighted MaxSim of documents over their decoded vectors.

    Parameters
    ----------
    query : ByteQuery
        See :func:`~.byte_query.byte_query`.
    weights : float32 of shape (num_queries,)
    documents : int64 of shape (num_candidates,)
        Ascending order reads the store in order.

    Returns
    -------
    float32 of shape (num_candidates,)
    """
    out = np.full(len(documents), -np.inf, np.float32)
    kernel = packed_kernel(query, weights, store, documents, out)
    WorkQueue([kernel], threads=worthwhile_threads(len(documents), threads), executor=executor).finish()
    return out


def vectors_kernel(
    queries: NDArray[np.float32],
    weights: NDArray[np.float32],
    vectors: NDArray[np.float32] | NDArray[np.float16],
    offsets: NDArray[np.int64],
    documents: NDArray[np.int64],
    out: NDArray[np.float32],
) -> Callable[[], None]:
    """What :func:`maxsim_of_vectors` does, for a :class:`~.parallel.WorkQueue`; ``out`` starts at minus infinity."""
    half = vectors.dtype == np.float16
    stored = vectors.view(np.uint16) if half else vectors
    taken = np.zeros(1, np.int64)
    return partial(_maxsim_of_vectors, _columns(queries), weights, stored, half, offsets, documents, taken, out)


def maxsim_of_vectors(
    queries: NDArray[np.float32],
    weights: NDArray[np.float32],
    vectors: NDArray[np.float32] | NDArray[np.float16],
    offsets: NDArray[np.int64],
    documents: NDArray[np.int64],
    *,
    threads: int = 1,
    executor: Executor | None = None,
) -> NDArray[np.float32]:
    """Weighted MaxSim of documents over stored vectors of shape (num_vectors, dim), float32 or float16.

    >>> one = np.eye(2, 16, dtype=np.float32)
    >>> maxsim_of_vectors(one, np.array([1, 0.5], np.float32), -one, np.array([0, 1, 2]), np.array([1])).tolist()
    [-0.5]
    """
    out = np.full(len(documents), -np.inf, np.float32)
    kernel = vectors_kernel(queries, weights, vectors, offsets, documents, out)
    WorkQueue([kernel], threads=worthwhile_threads(len(documents), threads), executor=executor).finish()
    return out
