"""The document vectors nearest to given vectors, by way of the codec's centroids: F_t(υ, r) of the paper.

A vector is compared with the centroids; the document vectors of the most promising of these are compared with it one
by one, by their sketches. The caller compares the best again with what is stored.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from colbert_prf.kernels.compiled import Array, compiled
from colbert_prf.kernels.probes import Neighbours, Probes, insert
from colbert_prf.kernels.residuals import GAIN_LOW, GAIN_STEP, ResidualCodec
from colbert_prf.kernels.simd import product_of_bits, product_of_pairs_16, product_of_pairs_32
from colbert_prf.kernels.sketches import Sketches

__all__ = ["nearest_definition", "nearest_of", "nearest_sketches"]

CERTAIN = 2
"""Centroids whose vectors are compared whatever they promise."""


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
def _nearest_of(similarities: Array, rows: Array, nearest: Array) -> None:
    for i in range(similarities.shape[0]):
        for row in range(similarities.shape[1]):
            if similarities[i, row] > nearest[i, -1]:
                insert(rows[i], nearest[i], row, similarities[i, row])


def nearest_of(similarities: NDArray[np.float32], count: int) -> Neighbours:
    """The largest of each row of similarities (num_vectors, num_rows), equal ones by row.

    >>> nearest_of(np.array([[0.5, 0.7, 0.7, -np.inf]], np.float32), 4).rows.tolist()
    [[1, 2, 0, -1]]
    """
    out = Neighbours.none(len(similarities), count)
    _nearest_of(np.ascontiguousarray(similarities, np.float32), *out)
    return out


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
    rows: Array,
    similarities: Array,
) -> None:
    width, mask = sketches.packed.shape[1], (1 << bits) - 1
    for i in range(rows.shape[0]):
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
                    insert(near, nearness, sketches.rows[place], similarity)


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
    _nearest(query, probes, sketches, skipped, codec.bits, count, *out)
    return out
