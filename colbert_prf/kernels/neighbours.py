"""The document vectors nearest to given vectors, by way of the codec's centroids: F_t(υ, r) of the paper.

A vector is compared with the centroids; the document vectors of the most promising of these are compared with it one
by one, by their sketches. The caller compares the best again with what is stored.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from colbert_prf.kernels.compiled import Array, compiled
from colbert_prf.kernels.interaction import padded
from colbert_prf.kernels.probes import NONE, Neighbours, Probes, insert
from colbert_prf.kernels.residuals import ResidualCodec, round_to_bytes, steps_of, top_of
from colbert_prf.kernels.simd import COLUMNS, ROWS, float_tile, prefetch
from colbert_prf.kernels.sixteens import compare_sixteen_pairs, compare_sixteen_paths
from colbert_prf.kernels.sketches import FOUR, SIDE_BY_SIDE, Sketches, scale_unit

__all__ = [
    "compare_all",
    "nearest_definition",
    "nearest_sketches",
    "settle",
]

CERTAIN = 2
"""Centroids whose vectors are compared whatever they promise."""
FEWEST = 5
"""Neighbours that can make clear which token is the most likely."""
BLOCKS_AHEAD = 12
"""Sixteens of vectors between the one that is compared and the one that is asked for, of this centroid or the next."""
GROUPS = 16
"""Feedback vectors fall into so many groups, to tell at once which are too far away to be among the nearest."""
LINE = 64
"""Bytes that are fetched together."""


def nearest_definition(vectors: NDArray[np.float32], stored: NDArray[np.float32], count: int) -> Neighbours:
    """The definition in NumPy: the rows of ``stored`` with the largest products, equal ones by row.

    >>> nearest_definition(np.eye(1, 2, dtype=np.float32), np.array([[0, 1], [1, 0]], np.float32), 3).rows.tolist()
    [[1, 0, -1]]
    """
    products = vectors @ stored.T
    order = np.argsort(-products, axis=1, kind="stable")[:, :count]
    out = Neighbours.none(len(vectors), count)
    out.rows[:, : order.shape[1]] = order
    out.similarities[:, : order.shape[1]] = np.take_along_axis(products, order, axis=1)
    return out


@compiled()
def _is_skipped(skipped: Array, row: int) -> bool:
    inside = False
    for i in range(skipped.shape[0]):
        inside |= skipped[i, 0] <= row < skipped[i, 1]
    return inside


@compiled()
def _is_clear(rows: Array, token_ids: Array, known: Array) -> bool:
    """Whether nearly all of some rows have one token; a row below -1 is one of the known."""
    needed, token, votes = rows.shape[0] - rows.shape[0] // 10, NONE, 0
    if rows.shape[0] < FEWEST or rows[-1] == NONE:
        return False
    for row in rows:  # whatever has more than half of all votes is left
        own = token_ids[row] if row >= 0 else known[-2 - row]
        if votes == 0:
            token = own
        votes += 1 if own == token else -1
    same = 0
    for row in rows:
        same += (token_ids[row] if row >= 0 else known[-2 - row]) == token
    return bool(same >= needed)


@compiled()
def _laid_out(rounded: Array, trellis: bool, values: Array) -> int:
    """Put the bytes of a vector in the order sketches have, and give their sum."""
    quarter, total = rounded.shape[0] // 4, 0
    for d in range(rounded.shape[0]):
        # A chunk of paths has four dimensions of each plane of the codec, not sixteen that follow each other.
        plane, place = d // quarter, d % quarter
        values[place // FOUR * 16 + plane * FOUR + place % FOUR if trellis else d] = rounded[d]
        total += rounded[d]
    return total


@compiled()
def _begun(known: Array, known_similarities: Array, kept: int) -> Any:
    """Room for ``kept`` neighbours of each vector, of which the first are the known."""
    rows, similarities = np.full((known.shape[0], kept), NONE), np.full((known.shape[0], kept), np.float32(-np.inf))
    for i in range(known.shape[0]):
        for j in range(known.shape[1]):
            rows[i, j] = NONE if known[i, j] < 0 else -2 - j
            similarities[i, j] = known_similarities[i, j]
    return rows, similarities


@compiled()
def _ask_for(sketches: Sketches, block: int) -> None:
    """Have sixteen sketches fetched, which may lie outside."""
    size = sketches.packed.shape[1] * 4 * SIDE_BY_SIDE
    for line in range(block * size, (block + 1) * size, LINE):
        prefetch(sketches.packed, line)
    if block * SIDE_BY_SIDE % LINE == 0:
        prefetch(sketches.scales, block * SIDE_BY_SIDE)
        prefetch(sketches.gains, block * SIDE_BY_SIDE)


@compiled()
def _nearest(
    vectors: Array,
    probes: Probes,
    sketches: Sketches,
    skipped: Array,
    codec: ResidualCodec,
    token_ids: Array,
    known: Array,
    known_similarities: Array,
    kept: int,
) -> Any:
    # One function: a call would pass some eighty numbers.
    rows, similarities = _begun(known, known_similarities, kept)
    steps, unit = steps_of(codec), scale_unit(codec)
    bits, trellis, count, chunks = codec.bits, codec.trellis, known.shape[1], sketches.packed.shape[1]
    near, values = np.empty(SIDE_BY_SIDE, np.float32), np.zeros(chunks * FOUR * (8 // bits), np.int8)
    rounded = np.empty(vectors.shape[1], np.int8)
    for i in range(rows.shape[0]):
        nearest, nearness = rows[i], similarities[i]
        # The product with a residual is factor · Σ_d values[d] · code[d] + constant.
        size = unit * round_to_bytes(vectors[i], steps, rounded)
        total = np.float32(_laid_out(rounded, trellis, values))
        factor, constant, farthest = 2 * size, -top_of(codec) * size * total, nearness[-1]
        for j in range(probes.centroids.shape[1]):
            promise = probes.promises[i, j]
            if promise == -np.inf or (j >= CERTAIN and promise < nearness[count - 1]):
                break
            if j >= CERTAIN and _is_clear(nearest[:count], token_ids, known[i]):
                break
            score, centroid = probes.products[i, j], probes.centroids[i, j]
            start, stop = sketches.starts[centroid], sketches.starts[centroid + 1]
            last = -(-stop // SIDE_BY_SIDE)
            following = last
            if j + 1 < probes.centroids.shape[1]:
                following = sketches.starts[probes.centroids[i, j + 1]] // SIDE_BY_SIDE
            for block in range(start // SIDE_BY_SIDE, last):
                first, ahead = block * SIDE_BY_SIDE, block + BLOCKS_AHEAD
                _ask_for(sketches, ahead if ahead < last else following + ahead - last)
                if trellis:
                    worth = compare_sixteen_paths(
                        sketches, block, chunks, values, factor, constant, score, farthest, near
                    )
                else:
                    worth = compare_sixteen_pairs(
                        sketches, block, chunks, values, factor, constant, score, farthest, near
                    )
                if worth:
                    for place in range(max(start, first), min(stop, first + SIDE_BY_SIDE)):
                        row = sketches.rows[place]
                        if near[place - first] >= nearness[-1] and not _is_skipped(skipped, row):
                            insert(nearest, nearness, row, near[place - first])
                    farthest = nearness[-1]
    return rows, similarities


def nearest_sketches(
    vectors: NDArray[np.float32],
    probes: Probes,
    sketches: Sketches,
    codec: ResidualCodec,
    skipped: NDArray[np.int64],
    token_ids: NDArray[np.integer],
    known: NDArray[np.int32],
    known_similarities: NDArray[np.float32],
    kept: int,
) -> Neighbours:
    """The document vectors of some centroids whose sketches are nearest.

    Parameters
    ----------
    vectors : float32 of shape (num_vectors, dim)
        ``dim`` is a multiple of 16.
    probes : Probes
        A centroid is passed over where it promises less than the nearest ``count`` found before it, and where nearly
        all of those have the same token: more of them would not change what is most likely.
    codec : ResidualCodec
        Of the sketches.
    skipped : int64 of shape (num_ranges, 2)
        Rows from the first up to, not including, the second are passed over.
    token_ids : unsigned integers of shape (num_vectors,)
        The tokens of all rows.
    known, known_similarities : of shape (num_vectors, count)
        The tokens of what is known to be near, nearest first, and how near it is; -1 and minus infinity for nothing.
    kept : int
        Neighbours given for each vector, at least ``count``.

    Returns
    -------
    Neighbours
        A row below -1 stands for one of the known: -2 for the first, -3 for the next.
    """
    return Neighbours(*_nearest(vectors, probes, sketches, skipped, codec, token_ids, known, known_similarities, kept))


@compiled()
def _settle(rows: Array, products: Array, token_ids: Array, known: Array, similarities: Array) -> Any:
    largest: Any = np.int64(0)
    for i in range(rows.shape[0]):
        for j in range(rows.shape[1]):
            if rows[i, j] >= 0 and products[i, j] > similarities[i, -1]:
                token: Any = np.int64(token_ids[rows[i, j]])
                largest = max(largest, token)
                insert(known[i], similarities[i], token, products[i, j])
    return largest


def settle(
    rows: NDArray[np.int64],
    products: NDArray[np.float32],
    token_ids: NDArray[np.integer],
    known: NDArray[np.int32],
    similarities: NDArray[np.float32],
) -> int:
    """Put the tokens of neighbours among those of what is known to be near, in place.

    Parameters
    ----------
    rows, products : of shape (num_vectors, kept)
        Neighbours and how near they are; a row below 0 is passed over.
    token_ids : unsigned integers of shape (num_rows,)
        The tokens of all rows.
    known, similarities : of shape (num_vectors, count)
        Tokens, nearest first, and how near they are.

    Returns
    -------
    int
        The largest of the tokens put there.

    Examples
    --------
    >>> known, near = np.array([[7, 8]], np.int32), np.array([[0.9, 0.5]], np.float32)
    >>> settle(np.array([[1, -1]]), np.array([[0.6, 0.8]], np.float32), np.array([3, 5], np.uint16), known, near)
    5
    >>> known.tolist()
    [[7, 5]]
    """
    return int(_settle(rows, products, token_ids, known, similarities))


@compiled()
def _floors(products: Array, num_vectors: int, count: int) -> Any:
    """For each vector a product that at least ``count`` of its products (num_stored, width) reach.

    They fall into :data:`GROUPS`. The largest of each group are that many products, if there are as many groups.
    """
    highest = np.full((GROUPS, products.shape[1]), np.float32(-np.inf))
    for place in range(products.shape[0]):
        row, own = products[place], highest[place % GROUPS]
        for i in range(row.shape[0]):
            own[i] = row[i] if row[i] > own[i] else own[i]
    floors = np.full(num_vectors, np.float32(-np.inf))
    for i in range(num_vectors if count <= GROUPS else 0):
        ordered = highest[:, i].copy()
        for group in range(1, GROUPS):
            value, place = ordered[group], group
            while place > 0 and ordered[place - 1] < value:
                ordered[place] = ordered[place - 1]
                place -= 1
            ordered[place] = value
        floors[i] = ordered[count - 1]
    return floors


@compiled()
def _compare_all(vectors: Array, stored: Array, width: int, count: int) -> Any:
    num_stored, dim = stored.shape
    columns = np.zeros((dim, width), np.float32)
    for i in range(vectors.shape[0]):
        for d in range(dim):
            columns[d, i] = vectors[i, d]
    products = np.empty((num_stored, width), np.float32)
    for first in range(0, num_stored, ROWS):
        # The last tile overlaps the one before rather than reading past the end.
        row = min(first, num_stored - ROWS)
        for column in range(0, width, COLUMNS):
            float_tile(stored, row, dim, columns, column, width, products, row * width + column, width)
    rows = np.full((vectors.shape[0], count), NONE)
    similarities = np.full((vectors.shape[0], count), np.float32(-np.inf))
    floors = _floors(products, vectors.shape[0], count)
    for place in range(num_stored):
        for i in range(rows.shape[0]):
            if products[place, i] >= floors[i] and products[place, i] > similarities[i, -1]:
                insert(rows[i], similarities[i], place, products[place, i])
    return rows, similarities


def compare_all(vectors: NDArray[np.float32], stored: NDArray[np.float32], count: int) -> Neighbours:
    """The nearest of a few stored vectors.

    Parameters
    ----------
    vectors : of shape (num_vectors, dim)
    stored : of shape (num_stored, dim)
        All are compared. Not by BLAS, whose threads would spin for some 20 ms afterwards, on the cores a second pass
        wants.
    count : int
        Of each vector.
    """
    if len(stored) < ROWS:
        return nearest_definition(vectors, stored, count)
    return Neighbours(*_compare_all(vectors, stored, padded(len(vectors)), count))
