"""Exact weighted MaxSim of documents over packed residuals: the exact stage of a search.

    score(d) = Σ_i w_i · max_{t ∈ d} q_i · v̂(t)

Negative similarities stay negative; a document without vectors scores minus infinity. The query is scaled by the steps
of the codec and rounded to int8, and residual levels are multiplied as they are stored (:mod:`.simd.packed_maxsim`)::

    q · v̂ = gain · (q · c + scale · (factor · Σ_d q8[d]·level[d] + constant))

where q·c is the exact table of centroid scores. Rounding the query costs less than 0.001 recall.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from colbert_prf.kernels.compiled import Array, compiled
from colbert_prf.kernels.residuals import TOP, ResidualCodec, levels_of, scale_and_gain
from colbert_prf.kernels.simd.layout import COLUMNS, check_dim, padded
from colbert_prf.kernels.simd.memory import AHEAD, prefetch, take
from colbert_prf.kernels.simd.packed_maxsim import (
    CHUNK,
    LANES,
    best_of_4,
    best_of_8,
    best_of_10,
    best_of_12,
    best_of_16,
)

__all__ = [
    "ByteQuery",
    "PackedVectors",
    "byte_query",
    "longest_document",
    "packed_kernel",
    "similarities_definition",
    "weighted_sum",
    "worthwhile_threads",
]

BATCH = 16
"""Documents that a thread takes from the shared counter at once."""
WORTH_A_THREAD = 48
"""Scoring so many documents takes as long as waking a thread does."""


class ByteQuery(NamedTuple):
    """A query rounded to bytes.

    ``values`` (planes, stride / 4, width, 4) int8, ``factors`` and ``constants`` (width,) and the ``table`` of centroid
    scores (num_centroids, width) float32; ``ranges`` as in :class:`~.residuals.ResidualCodec`.
    """

    values: NDArray[np.int8]
    factors: NDArray[np.float32]
    constants: NDArray[np.float32]
    table: NDArray[np.float32]
    ranges: NDArray[np.float32]


class PackedVectors(NamedTuple):
    """The vectors of documents.

    ``codes`` (num_vectors,), ``packed`` (num_vectors, dim·bits/8), ``scales`` (num_vectors,), uint8 where the residuals
    are paths through a trellis, else uint16, and ``offsets`` (num_documents + 1,).
    """

    codes: NDArray[np.integer]
    packed: NDArray[np.uint8]
    scales: NDArray[np.unsignedinteger]
    offsets: NDArray[np.int64]


@compiled()
def _round_query(queries: Array, steps: Array, values: Array, factors: Array, constants: Array) -> None:
    """Fill the columns of a :class:`ByteQuery` that have query vectors (num_queries, dim)."""
    num_queries, dim = queries.shape
    plane_size, scaled = dim // values.shape[0], np.empty(dim, np.float32)
    for i in range(num_queries):
        largest, total = np.float32(1e-30), np.int32(0)
        for d in range(dim):
            scaled[d] = queries[i, d] * steps[d]
            largest = max(largest, abs(scaled[d]))
        unit = largest / np.float32(127)
        for d in range(dim):
            rounded = np.int8(np.rint(scaled[d] / unit))
            values[d // plane_size, d % plane_size // 4, i, d % plane_size % 4] = rounded
            total += rounded
        factors[i] = 2 * unit
        constants[i] = -np.float32(TOP) * unit * np.float32(total)


def byte_query(queries: NDArray[np.float32], table: NDArray[np.float32], codec: ResidualCodec) -> ByteQuery:
    """Round a query to bytes.

    Parameters
    ----------
    queries : float32 of shape (num_queries, dim)
        ``dim`` is a multiple of 16.
    table : float32 of shape (num_centroids, width)
        :func:`~.interaction.centroid_scores` of the same queries.
    """
    check_dim(queries.shape[1])
    width, planes = padded(len(queries)), 8 // codec.bits
    fours = -(-queries.shape[1] // planes // CHUNK) * CHUNK // 4
    values = np.zeros((planes, fours, width, 4), np.int8)
    factors, constants = np.zeros(width, np.float32), np.zeros(width, np.float32)
    _round_query(queries, codec.steps, values, factors, constants)
    return ByteQuery(values, factors, constants, table, codec.ranges)


def similarities_definition(
    queries: NDArray[np.float32],
    table: NDArray[np.float32],
    codec: ResidualCodec,
    store: PackedVectors,
    document: int,
) -> NDArray[np.float32]:
    """The similarities that :func:`packed_kernel` takes the maxima of, for one document, in NumPy.

    Parameters
    ----------
    queries, table, codec
        As in :func:`byte_query`.
    store
        As in :func:`packed_kernel`.
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
def longest_document(offsets: Array, documents: Array) -> int:
    """The number of vectors of the document that has most."""
    longest = 0
    for document in documents:
        longest = max(longest, offsets[document + 1] - offsets[document])
    return longest


@compiled()
def weighted_sum(weights: Array, best: Array) -> np.float32:
    """``weights @ best[:len(weights)]``, summed in this order on every machine."""
    total = np.float32(0)
    for i in range(weights.shape[0]):
        total += weights[i] * best[i]
    return total


@compiled()
def _empty_document(store: PackedVectors, num_vectors: int) -> PackedVectors:
    """Space for a copy of the vectors of one document, in rows of whole chunks."""
    packed = np.zeros((num_vectors, -(-store.packed.shape[1] // CHUNK) * CHUNK), np.uint8)
    codes, scales = np.zeros(num_vectors, store.codes.dtype), np.zeros(num_vectors, store.scales.dtype)
    return PackedVectors(codes, packed, scales, store.offsets)


@compiled()
def _copy_document(store: PackedVectors, first: int, count: int, copy: PackedVectors) -> None:
    """Copy the vectors of a document; where there are fewer than :data:`LANES`, repeat the last one."""
    for t in range(max(count, LANES)):
        row = first + min(t, count - 1)
        copy.codes[t] = store.codes[row]
        copy.scales[t] = store.scales[row]
        for i in range(store.packed.shape[1]):
            copy.packed[t, i] = store.packed[row, i]


@compiled()
def _best_of_document(
    query: ByteQuery, num_queries: int, store: PackedVectors, first: int, count: int, following: int, best: Array
) -> None:
    """The largest score of a document for each query column: ``best`` (width,).

    Rows from ``following`` on are prefetched meanwhile.
    """
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
def _score_packed(
    query: ByteQuery, weights: Array, store: PackedVectors, documents: Array, counter: Array, out: Array
) -> None:
    best, is_whole = np.empty(query.table.shape[1], np.float32), store.packed.shape[1] % CHUNK == 0
    offsets, num_documents = store.offsets, len(documents)
    copy = _empty_document(store, LANES if is_whole else max(LANES, longest_document(offsets, documents)))
    start = take(counter, BATCH)
    while start < num_documents:
        for i in range(start, min(start + BATCH, num_documents)):
            first = offsets[documents[i]]
            count = offsets[documents[i] + 1] - first
            following = offsets[documents[min(i + 1, num_documents - 1)]]
            if i + AHEAD < num_documents:
                prefetch(offsets, documents[i + AHEAD])
            if count >= LANES and is_whole:
                _best_of_document(query, len(weights), store, first, count, following, best)
            elif count:
                _copy_document(store, first, count, copy)
                _best_of_document(query, len(weights), copy, 0, max(count, LANES), 0, best)
            if count:
                out[i] = weighted_sum(weights, best)
        start = take(counter, BATCH)


def worthwhile_threads(num_documents: int, threads: int) -> int:
    """At most ``threads``, and no more than have enough documents to score."""
    return max(1, min(threads, num_documents // WORTH_A_THREAD))


def packed_kernel(
    query: ByteQuery,
    weights: NDArray[np.float32],
    store: PackedVectors,
    documents: NDArray[np.int64],
    out: NDArray[np.float32],
) -> Callable[[], None]:
    """A kernel for a :class:`~.workers.WorkQueue` that scores documents over their decoded vectors.

    Parameters
    ----------
    query : ByteQuery
    weights : float32 of shape (num_queries,)
    store : PackedVectors
    documents : int64 of shape (num_candidates,)
        Ascending order reads the store in order.
    out : float32 of shape (num_candidates,)
        Where the scores go. It starts at minus infinity, which documents without vectors keep.
    """
    return partial(_score_packed, query, weights, store, documents, np.zeros(1, np.int64), out)
