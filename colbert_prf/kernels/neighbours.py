"""The document vectors nearest to given vectors, by way of the codec's centroids: F_t(υ, r) of the paper.

A vector is compared with the centroids; the document vectors of the most promising of these are compared with it one
by one, by their sketches. The caller compares the best again with what is stored.
"""

from __future__ import annotations

from concurrent.futures import Executor
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from colbert_prf.kernels.compiled import Array, compiled
from colbert_prf.kernels.interaction import padded
from colbert_prf.kernels.parallel import run
from colbert_prf.kernels.residuals import GAIN_LOW, GAIN_STEP, ResidualCodec
from colbert_prf.kernels.simd import (
    COLUMNS,
    ROWS,
    float_tile,
    product_of_bits,
    product_of_pairs_16,
    product_of_pairs_32,
)
from colbert_prf.kernels.sketches import Sketches

__all__ = ["Neighbours", "Probes", "best_probes", "nearest_definition", "nearest_of", "nearest_sketches"]

CERTAIN = 2
"""Centroids whose vectors are compared whatever they promise."""
_NONE = -1


class Neighbours(NamedTuple):
    """``rows`` (num_vectors, count) of the nearest document vectors, nearest first, and their ``similarities``.

    Where there are fewer than ``count``, the row is -1 and the similarity minus infinity.
    """

    rows: NDArray[np.int64]
    similarities: NDArray[np.float32]

    @classmethod
    def none(cls, num_vectors: int, count: int) -> Neighbours:
        """No neighbours yet."""
        return cls(np.full((num_vectors, count), _NONE), np.full((num_vectors, count), -np.inf, np.float32))


class Probes(NamedTuple):
    """Centroids to look at for each vector, most promising first, what they promise, and their products with it.

    All of shape (num_vectors, probes).
    """

    centroids: NDArray[np.int64]
    promises: NDArray[np.float32]
    products: NDArray[np.float32]


class _Rounded(NamedTuple):
    """Vectors as bytes: the product with a residual is ``factors · Σ_d values[d] · code[d] + constants``.

    ``values`` (num_vectors, num_planes · width) int8, ``factors`` and ``constants`` (num_vectors,) float32; ``ones``
    (16,) int16, see :mod:`.simd`.
    """

    values: NDArray[np.int8]
    factors: NDArray[np.float32]
    constants: NDArray[np.float32]
    ones: NDArray[np.int16]


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
def _insert(rows: Array, similarities: Array, row: int, similarity: np.float32) -> None:
    """Put a row into a short sorted list; of equals the smaller row comes first."""
    place = rows.shape[0] - 1
    last = similarities[place]
    if similarity < last or (similarity == last and rows[place] != _NONE and row > rows[place]):
        return
    while place > 0:
        before = similarities[place - 1]
        if before > similarity or (before == similarity and rows[place - 1] != _NONE and rows[place - 1] < row):
            break
        rows[place], similarities[place] = rows[place - 1], before
        place -= 1
    rows[place], similarities[place] = row, similarity


@compiled()
def _nearest_of(similarities: Array, rows: Array, nearest: Array) -> None:
    for i in range(similarities.shape[0]):
        for row in range(similarities.shape[1]):
            if similarities[i, row] > nearest[i, -1]:
                _insert(rows[i], nearest[i], row, similarities[i, row])


def nearest_of(similarities: NDArray[np.float32], count: int) -> Neighbours:
    """The largest of each row of similarities (num_vectors, num_rows), equal ones by row.

    >>> nearest_of(np.array([[0.5, 0.7, 0.7, -np.inf]], np.float32), 4).rows.tolist()
    [[1, 2, 0, -1]]
    """
    out = Neighbours.none(len(similarities), count)
    _nearest_of(np.ascontiguousarray(similarities, np.float32), *out)
    return out


@compiled()
def _best_probes(
    centroids: Array,
    radii: Array,
    columns: Array,
    lengths: Array,
    start: int,
    stop: int,
    probed: Array,
    promises: Array,
) -> None:
    num_centroids, dim = centroids.shape
    tile, floors = np.empty((ROWS, COLUMNS), np.float32), np.full(COLUMNS, np.inf, np.float32)
    for column in range(start * COLUMNS, stop * COLUMNS, COLUMNS):
        width = min(COLUMNS, probed.shape[0] - column)
        floors[:width] = promises[column : column + width, -1]
        length = lengths[column : column + COLUMNS]
        for first in range(0, num_centroids, ROWS):
            # The last tile overlaps the one before rather than reading past the end.
            row = min(first, num_centroids - ROWS)
            float_tile(centroids, row, dim, columns, column, columns.shape[1], tile, 0, COLUMNS)
            for r in range(first - row, ROWS):
                radius, products, worth = radii[row + r], tile[r], 0
                for j in range(COLUMNS):
                    products[j] += radius * length[j]
                    worth += products[j] > floors[j]
                if worth:
                    for j in range(width):
                        if products[j] > floors[j]:
                            _insert(probed[column + j], promises[column + j], row + r, products[j])
                            floors[j] = promises[column + j, -1]


def best_probes(
    centroids: NDArray[np.float32],
    radii: NDArray[np.float32],
    vectors: NDArray[np.float32],
    probes: int,
    reach: float,
    floors: NDArray[np.float32] | None = None,
    *,
    threads: int = 1,
    executor: Executor | None = None,
) -> Probes:
    """The centroids whose document vectors are worth comparing with each vector.

    A vector near υ need not have the centroid nearest to υ: document vectors lie about a centroid at the distance of
    its radius, so a centroid promises υ·c + reach·|υ|·radius(c).

    Parameters
    ----------
    centroids : float32 of shape (num_centroids, dim)
    radii : float32 of shape (num_centroids,)
    vectors : float32 of shape (num_vectors, dim)
    probes : int
        Centroids for each vector, or all if there are fewer.
    floors : float32 of shape (num_vectors,), optional
        Of each vector: centroids that promise less are left out. Their places are filled with centroid 0, promising
        minus infinity.

    Examples
    --------
    >>> centroids, vectors = np.array([[0.5], [0.4], [0.1]], np.float32), np.ones((1, 1), np.float32)
    >>> best_probes(centroids, np.array([0.1, 0.6, 0.1], np.float32), vectors, 2, 0.4).centroids.tolist()
    [[1, 0]]
    """
    out = Neighbours.none(len(vectors), min(probes, len(centroids)))
    if floors is not None:
        # An entry that is not a centroid's: what promises as much or less does not come in.
        out.similarities[:] = floors[:, None]
    missing = max(0, ROWS - len(centroids))
    if missing:
        # Nothing that would promise anything, for a tile has four.
        centroids = np.pad(centroids, ((0, missing), (0, 0)))
        radii = np.pad(radii, (0, missing), constant_values=-np.inf)
    width = padded(len(vectors))
    columns, lengths = np.zeros((centroids.shape[1], width), np.float32), np.zeros(width, np.float32)
    columns[:, : len(vectors)] = vectors.T
    lengths[: len(vectors)] = np.float32(reach) * np.linalg.norm(vectors, axis=1)
    run(
        lambda start, stop: _best_probes(centroids, radii, columns, lengths, start, stop, *out),
        width // COLUMNS,
        threads=threads,
        executor=executor,
        shortest=1,
    )
    unused = out.rows == _NONE
    out.rows[unused], out.similarities[unused] = 0, -np.inf
    return Probes(*out, out.similarities - radii[out.rows] * lengths[: len(vectors), None])


@compiled()
def _is_skipped(skipped: Array, row: int) -> bool:
    inside = False
    for i in range(skipped.shape[0]):
        inside |= skipped[i, 0] <= row < skipped[i, 1]
    return inside


@compiled()
def _nearest(
    query: _Rounded,
    probes: Probes,
    sketches: Sketches,
    skipped: Array,
    bits: int,
    count: int,
    start: int,
    stop: int,
    rows: Array,
    similarities: Array,
) -> None:
    width, mask = sketches.packed.shape[1], (1 << bits) - 1
    for i in range(start, stop):
        factor, constant, first = query.factors[i], query.constants[i], i * query.values.shape[1]
        near, nearness = rows[i], similarities[i]
        for j in range(probes.centroids.shape[1]):
            promise = probes.promises[i, j]
            if promise == -np.inf or (j >= CERTAIN and promise < nearness[count - 1]):
                break
            score, centroid = probes.products[i, j], probes.centroids[i, j]
            for place in range(sketches.starts[centroid], sketches.starts[centroid + 1]):
                begin = place * width
                if bits == 1:
                    total = product_of_bits(sketches.packed, begin, width, mask, query.values, first, query.ones)
                elif width % 32:
                    total = product_of_pairs_16(sketches.packed, begin, width, mask, query.values, first, query.ones)
                else:
                    total = product_of_pairs_32(sketches.packed, begin, width, mask, query.values, first, query.ones)
                gain = GAIN_LOW + GAIN_STEP * np.float32(sketches.scales[place, 1])
                residual = np.float32(sketches.scales[place, 0]) * (factor * np.float32(total) + constant)
                similarity = gain * (score + residual)
                if similarity >= nearness[-1] and not _is_skipped(skipped, sketches.rows[place]):
                    _insert(near, nearness, sketches.rows[place], similarity)


def _rounded(vectors: NDArray[np.float32], codec: ResidualCodec, width: int) -> _Rounded:
    """Round vectors to bytes, arranged as the planes of a sketch, each filled up to its width."""
    num_planes, top = 8 // codec.bits, (1 << codec.bits) - 1
    scaled = vectors * codec.steps
    units = np.maximum(np.abs(scaled).max(axis=1), np.float32(1e-30)) / np.float32(127)
    rounded = np.rint(scaled / units[:, None]).astype(np.int8)
    values = np.zeros((len(vectors), num_planes, width), np.int8)
    values[:, :, : vectors.shape[1] // num_planes] = rounded.reshape(len(vectors), num_planes, -1)
    constants = -top * units * codec.unit * rounded.sum(axis=1, dtype=np.int32)
    factors = 2 * units * codec.unit
    return _Rounded(values.reshape(len(vectors), -1), factors, constants.astype(np.float32), np.ones(16, np.int16))


def nearest_sketches(
    vectors: NDArray[np.float32],
    probes: Probes,
    codec: ResidualCodec,
    sketches: Sketches,
    skipped: NDArray[np.int64],
    count: int,
    kept: int,
    *,
    threads: int = 1,
    executor: Executor | None = None,
) -> Neighbours:
    """The document vectors of some centroids whose sketches are nearest.

    Parameters
    ----------
    vectors : float32 of shape (num_vectors, dim)
        ``dim`` as the codec pads it.
    probes : Probes
        A centroid is passed over where it promises less than the nearest ``count`` found before it.
    codec : ResidualCodec
        Of the sketches.
    skipped : int64 of shape (num_ranges, 2)
        Rows from the first up to, not including, the second are passed over.
    kept : int
        Neighbours given for each vector, at least ``count``.
    """
    out = Neighbours.none(len(vectors), kept)
    query = _rounded(vectors, codec, sketches.packed.shape[1])
    run(
        lambda start, stop: _nearest(query, probes, sketches, skipped, codec.bits, count, start, stop, *out),
        len(vectors),
        threads=threads,
        executor=executor,
    )
    return out
