"""The document vectors nearest to given vectors, by way of the codec's centroids: F_t(υ, r) of the paper.

A vector is compared with the centroids; the document vectors of the most promising of these are compared with it one
by one.
"""

from __future__ import annotations

from concurrent.futures import Executor
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from colbert_prf.kernels.compiled import Array, compiled
from colbert_prf.kernels.exact import PackedVectors
from colbert_prf.kernels.parallel import run
from colbert_prf.kernels.residuals import GAIN_LOW, GAIN_STEP, ResidualCodec
from colbert_prf.kernels.simd import prefetch

__all__ = [
    "Lists",
    "Neighbours",
    "best_probes",
    "nearest_definition",
    "nearest_packed",
    "nearest_stored",
    "rows_by_code",
]

LONGEST = 512
"""Document vectors of a centroid that are compared; of more, every second or third. So many have one token in common,
such as a full stop or ``[CLS]``, and every part of them names it."""
AHEAD = 8
"""Document vectors between asking memory for one and comparing it: they lie all over the index."""
_NONE = -1


class Lists(NamedTuple):
    """The document vectors of each centroid.

    ``rows`` (num_rows,) int32, centroid by centroid and ascending, ``starts`` (num_centroids + 1,) where each centroid
    begins, and ``skipped`` (num_ranges, 2): rows from the first up to, not including, the second are passed over.
    """

    rows: NDArray[np.int32]
    starts: NDArray[np.int64]
    skipped: NDArray[np.int64]


class RoundedVectors(NamedTuple):
    """Vectors as integers: the product with a residual is ``factors · Σ_d values[d] · code[d] + constants``.

    ``values`` (num_vectors, dim) int16, ``factors`` and ``constants`` (num_vectors,) float32.
    """

    values: NDArray[np.int16]
    factors: NDArray[np.float32]
    constants: NDArray[np.float32]


def rows_by_code(codes: NDArray[np.integer], num_codes: int) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """The rows of each code, ascending, and where each code begins among them.

    >>> rows, starts = rows_by_code(np.array([1, 0, 1], np.uint16), 3)
    >>> rows.tolist(), starts.tolist()
    ([1, 0, 2], [0, 1, 3, 3])
    """
    rows = np.argsort(codes, kind="stable").astype(np.int32)
    counts = np.bincount(codes, minlength=num_codes)
    return rows, np.concatenate([[0], np.cumsum(counts)])


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
def _best_probes(scores: Array, radii: Array, lengths: Array, probed: Array, promises: Array) -> None:
    for centroid in range(scores.shape[0]):
        radius, row = radii[centroid], scores[centroid]
        for i in range(lengths.shape[0]):
            promise = row[i] + radius * lengths[i]
            if promise > promises[i, -1]:
                _insert(probed[i], promises[i], centroid, promise)


def best_probes(
    scores: NDArray[np.float32], radii: NDArray[np.float32], vectors: NDArray[np.float32], probes: int, reach: float
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """The centroids whose document vectors are worth comparing with each vector, and their products with it.

    A vector near υ need not have the centroid nearest to υ: document vectors lie about a centroid at the distance of
    its radius, so a centroid promises υ·c + reach·|υ|·radius(c). On 10,000 passages, with the 24 vectors k-means makes
    of three passages, 16 probes and every vector of a centroid compared, reach 0.4 finds .980 of the ten nearest
    vectors, reach 0 finds .954.

    Parameters
    ----------
    scores : float32 of shape (num_centroids, width)
        :func:`~.interaction.centroid_scores` of the vectors.
    radii : float32 of shape (num_centroids,)
    vectors : float32 of shape (num_vectors, dim)
    probes : int
        Centroids for each vector, or all if there are fewer.

    Returns
    -------
    probed : int64 of shape (num_vectors, probes)
    products : float32 of the same shape

    Examples
    --------
    >>> scores, vectors = np.array([[0.5], [0.4], [0.1]], np.float32), np.eye(1, 2, dtype=np.float32)
    >>> best_probes(scores, np.array([0.1, 0.6, 0.1], np.float32), vectors, 2, 0.4)[0].tolist()
    [[1, 0]]
    """
    out = Neighbours.none(len(vectors), min(probes, len(radii)))
    lengths = np.float32(reach) * np.linalg.norm(vectors, axis=1)
    _best_probes(scores, radii, lengths, out.rows, out.similarities)
    return out.rows, np.take_along_axis(scores.T[: len(vectors)], out.rows, axis=1)


@compiled()
def _is_skipped(skipped: Array, row: int) -> bool:
    inside = False
    for i in range(skipped.shape[0]):
        inside |= skipped[i, 0] <= row < skipped[i, 1]
    return inside


@compiled(fastmath=True)
def _code_product(rounded: Array, packed: Array, bits: int) -> np.int32:
    """``Σ_d rounded[d] · code[d]`` of one packed vector."""
    width, mask, total = packed.shape[0], np.uint8((1 << bits) - 1), np.int32(0)
    for plane in range(8 // bits):
        shift, part = np.uint8(plane * bits), rounded[plane * width : (plane + 1) * width]
        for i in range(width):
            total += np.int32(np.uint8(packed[i] >> shift) & mask) * np.int32(part[i])
    return total


@compiled(fastmath=True)
def _half_similarity(vector: Array, words: Array) -> np.float32:
    """The product with a float16 vector given as uint16: shifted into a float32, its exponent is 112 too small."""
    total = np.float32(0)
    for d in range(vector.shape[0]):
        word = np.uint32(words[d])
        bits = ((word & np.uint32(0x8000)) << np.uint32(16)) | ((word & np.uint32(0x7FFF)) << np.uint32(13))
        total += vector[d] * np.uint32(bits).view(np.float32)
    return total * np.float32(2.0**112)


@compiled()
def _nearest_packed(
    query: RoundedVectors,
    probed: Array,
    scores: Array,
    store: PackedVectors,
    lists: Lists,
    bits: int,
    start: int,
    stop: int,
    rows: Array,
    similarities: Array,
) -> None:
    width, listed = store.packed.shape[1], lists.rows
    for i in range(start, stop):
        values, factor, constant = query.values[i], query.factors[i], query.constants[i]
        near, nearness = rows[i], similarities[i]
        for j in range(probed.shape[1]):
            score, first, last = scores[i, j], lists.starts[probed[i, j]], lists.starts[probed[i, j] + 1]
            step = 1 + (last - first) // LONGEST
            for place in range(first, last, step):
                ahead = listed[min(place + AHEAD * step, last - 1)]
                prefetch(store.packed, ahead * width)
                prefetch(store.scales, ahead * 2)
                row = listed[place]
                residual = factor * np.float32(_code_product(values, store.packed[row], bits)) + constant
                gain = GAIN_LOW + GAIN_STEP * np.float32(store.scales[row, 1])
                similarity = gain * (score + np.float32(store.scales[row, 0]) * residual)
                if similarity >= nearness[-1] and not _is_skipped(lists.skipped, row):
                    _insert(near, nearness, row, similarity)


@compiled()
def _nearest_stored(
    vectors: Array,
    probed: Array,
    words: Array,
    listed: Array,
    starts: Array,
    skipped: Array,
    start: int,
    stop: int,
    rows: Array,
    similarities: Array,
) -> None:
    for i in range(start, stop):
        for j in range(probed.shape[1]):
            first, last = starts[probed[i, j]], starts[probed[i, j] + 1]
            for place in range(first, last, 1 + (last - first) // LONGEST):
                row = listed[place]
                similarity = _half_similarity(vectors[i], words[row])
                if similarity >= similarities[i, -1] and not _is_skipped(skipped, row):
                    _insert(rows[i], similarities[i], row, similarity)


def _rounded(vectors: NDArray[np.float32], codec: ResidualCodec) -> RoundedVectors:
    """Round vectors to integers so large that their products with codes still fit into 32 bits."""
    top = (1 << codec.bits) - 1
    scaled = vectors * codec.steps
    largest = min(32767, (2**31 - 1) // (top * vectors.shape[1]))
    units = np.maximum(np.abs(scaled).max(axis=1), np.float32(1e-30)) / np.float32(largest)
    values = np.rint(scaled / units[:, None]).astype(np.int16)
    constants = -top * units * codec.unit * values.sum(axis=1, dtype=np.int64)
    return RoundedVectors(values, 2 * units * codec.unit, constants.astype(np.float32))


def nearest_packed(
    vectors: NDArray[np.float32],
    probed: NDArray[np.int64],
    scores: NDArray[np.float32],
    codec: ResidualCodec,
    store: PackedVectors,
    lists: Lists,
    count: int,
    *,
    threads: int = 1,
    executor: Executor | None = None,
) -> Neighbours:
    """The nearest vectors of some centroids' documents, over packed vectors.

    Parameters
    ----------
    vectors : float32 of shape (num_vectors, dim)
        ``dim`` as the codec pads it.
    probed : int64 of shape (num_vectors, probes)
        Centroids whose document vectors are compared with each vector.
    scores : float32 of shape (num_vectors, probes)
        The product of each vector with each of its probed centroids.
    count : int
        Neighbours of each vector.
    """
    out = Neighbours.none(len(vectors), count)
    query = _rounded(vectors, codec)
    run(
        lambda start, stop: _nearest_packed(query, probed, scores, store, lists, codec.bits, start, stop, *out),
        len(vectors),
        threads=threads,
        executor=executor,
    )
    return out


def nearest_stored(
    vectors: NDArray[np.float32],
    probed: NDArray[np.int64],
    stored: NDArray[np.float16],
    lists: Lists,
    count: int,
    *,
    threads: int = 1,
    executor: Executor | None = None,
) -> Neighbours:
    """As :func:`nearest_packed`, over stored float16 vectors of shape (num_rows, dim)."""
    out = Neighbours.none(len(vectors), count)
    words = stored.view(np.uint16)
    run(
        lambda start, stop: _nearest_stored(vectors, probed, words, *lists, start, stop, *out),
        len(vectors),
        threads=threads,
        executor=executor,
    )
    return out
