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
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from colbert_prf.kernels.compiled import Array, compiled
from colbert_prf.kernels.interaction import padded
from colbert_prf.kernels.lanes import CHUNK, LANES, LOWEST, best_of_4, best_of_8, best_of_10, best_of_12, best_of_16
from colbert_prf.kernels.parallel import share
from colbert_prf.kernels.residuals import ResidualCodec, levels_of, round_to_bytes, scale_and_gain, steps_of, top_of
from colbert_prf.kernels.simd import AHEAD, COLUMNS, ROWS, check_dim, first_part, float_tile, next_part, prefetch

__all__ = [
    "ByteQuery",
    "PackedVectors",
    "byte_query",
    "maxsim_definition",
    "maxsim_of_packed",
    "maxsim_of_vectors",
    "similarities_definition",
]

AT_ONCE = 16
"""Documents a thread takes at once."""
_LOWEST = np.float32(LOWEST)


class PackedVectors(NamedTuple):
    """The vectors of documents.

    ``codes`` (num_vectors,), ``packed`` (num_vectors, dim·bits/8), ``scales`` (num_vectors,), uint8 where the residuals
    are walks, else uint16, and ``offsets`` (num_documents + 1,).
    """

    codes: NDArray[np.integer]
    packed: NDArray[np.uint8]
    scales: NDArray[np.unsignedinteger]
    offsets: NDArray[np.int64]


class ByteQuery(NamedTuple):
    """A query rounded to bytes.

    ``values`` (planes, stride / 4, width, 4) int8, ``factors`` and ``constants`` (width,) and the ``table`` of centroid
    scores (num_centroids, width) float32; ``multipliers``, ``plans`` and ``ranges``, see :mod:`.lanes`.
    """

    values: NDArray[np.int8]
    factors: NDArray[np.float32]
    constants: NDArray[np.float32]
    table: NDArray[np.float32]
    multipliers: NDArray[np.int16]
    plans: NDArray[np.int64]
    ranges: NDArray[np.float32]


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
    shared: Array,
    until: int,
    out: Array,
) -> None:
    best, whole = np.empty(query.table.shape[1], np.float32), store.packed.shape[1] % CHUNK == 0
    room, stop = _room(store, LANES if whole else max(LANES, _longest(store.offsets, documents))), len(documents)
    start = first_part(shared, AT_ONCE)
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
        start = next_part(shared, AT_ONCE, until)


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
    shared: Array,
    until: int,
    out: Array,
) -> None:
    dim, width = columns.shape
    rows = np.zeros((_longest(offsets, documents) + ROWS, dim), np.float32)
    products, best = np.empty((ROWS, COLUMNS), np.float32), np.empty(width, np.float32)
    start = first_part(shared, AT_ONCE)
    while start < len(documents):
        for position in range(start, min(start + AT_ONCE, len(documents))):
            first, count = _rows_of(offsets, documents[position])
            if count:
                _widen(vectors, half, first, count, rows)
                _best_of_rows(rows, count, columns, products, best)
                out[position] = _weighted_sum(weights, best)
        start = next_part(shared, AT_ONCE, until)


def _worth_waking(threads: int, documents: NDArray[np.int64]) -> int:
    """As many threads as have something to do."""
    return min(threads, -(-len(documents) // AT_ONCE)) or 1


def _columns(queries: NDArray[np.float32]) -> NDArray[np.float32]:
    columns = np.zeros((queries.shape[1], padded(len(queries))), np.float32)
    columns[:, : len(queries)] = queries.T
    return columns


@compiled()
def _round_query(queries: Array, codec: ResidualCodec, values: Array, factors: Array, constants: Array) -> None:
    """Fill the columns of a :class:`ByteQuery` that have query vectors (num_queries, dim)."""
    steps, top = steps_of(codec), top_of(codec)
    size, rounded = queries.shape[1] // values.shape[0], np.empty(queries.shape[1], np.int8)
    for i in range(queries.shape[0]):
        unit, total = round_to_bytes(queries[i], steps, rounded), np.int32(0)
        for d in range(rounded.shape[0]):
            values[d // size, d % size // 4, i, d % size % 4] = rounded[d]
            total += rounded[d]
        factors[i] = 2 * unit
        constants[i] = -top * unit * np.float32(total)


@lru_cache(maxsize=8)
def _plans(bits: int, top: int, fours: int) -> tuple[NDArray[np.int16], NDArray[np.int64]]:
    """``multipliers`` and ``plans``, see :mod:`.lanes`, where a plane has so many fours of dimensions."""
    multipliers = np.ones((8, 16), np.int16)
    # The symbols of walks have as many bits as their levels.
    whole = (8 // bits, bits, top * 0x01010101, fours)
    if bits == 8:
        multipliers[1] = 16
    return multipliers, np.array([(2, 4, 0x0F0F0F0F, 0) if bits == 8 else whole, whole], np.int64)


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
    _round_query(queries, codec, values, factors, constants)
    return ByteQuery(values, factors, constants, table, *_plans(codec.bits, codec.top, fours), codec.ranges)


def maxsim_of_packed(
    query: ByteQuery,
    weights: NDArray[np.float32],
    store: PackedVectors,
    documents: NDArray[np.int64],
    *,
    threads: int = 1,
    executor: Executor | None = None,
    beside: Callable[[], object] | None = None,
) -> NDArray[np.float32]:
    """Weighted MaxSim of documents over their decoded vectors.

    Parameters
    ----------
    query : ByteQuery
        See :func:`byte_query`.
    weights : float32 of shape (num_queries,)
    documents : int64 of shape (num_candidates,)
        Ascending order reads the store in order.
    beside : callable, optional
        As in :func:`~.parallel.share`.

    Returns
    -------
    float32 of shape (num_candidates,)
    """
    out = np.full(len(documents), -np.inf, np.float32)
    share(
        lambda shared, until: _maxsim_of_codes(query, weights, store, documents, shared, until, out),
        threads=_worth_waking(threads, documents),
        executor=executor,
        beside=beside,
    )
    return out


def maxsim_of_vectors(
    queries: NDArray[np.float32],
    weights: NDArray[np.float32],
    vectors: NDArray[np.float32] | NDArray[np.float16],
    offsets: NDArray[np.int64],
    documents: NDArray[np.int64],
    *,
    threads: int = 1,
    executor: Executor | None = None,
    beside: Callable[[], object] | None = None,
) -> NDArray[np.float32]:
    """Weighted MaxSim of documents over stored vectors of shape (num_vectors, dim), float32 or float16.

    >>> one = np.eye(2, 16, dtype=np.float32)
    >>> maxsim_of_vectors(one, np.array([1, 0.5], np.float32), -one, np.array([0, 1, 2]), np.array([1])).tolist()
    [-0.5]
    """
    half = vectors.dtype == np.float16
    stored = vectors.view(np.uint16) if half else vectors
    columns = _columns(queries)
    out = np.full(len(documents), -np.inf, np.float32)
    share(
        lambda shared, until: _maxsim_of_vectors(
            columns, weights, stored, half, offsets, documents, shared, until, out
        ),
        threads=_worth_waking(threads, documents),
        executor=executor,
        beside=beside,
    )
    return out
