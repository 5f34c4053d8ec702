"""Sketches of document vectors: their residuals at two bits a dimension, those of one centroid side by side.

In the store the vectors of a centroid lie far apart, and reading one costs more than comparing it.
"""

from __future__ import annotations

from concurrent.futures import Executor
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from colbert_prf.kernels.compiled import Array, compiled
from colbert_prf.kernels.parallel import run
from colbert_prf.kernels.residuals import LEVEL_DISTANCE, ResidualCodec, encode

__all__ = ["Sketches", "rows_by_code", "sketch_codec", "sketch_packed", "sketch_vectors"]

SKETCH_BITS = 2
PADDING = 16
"""Bytes of a sketch are a multiple of it."""
_BATCH = 1 << 16


class Sketches(NamedTuple):
    """The document vectors of each centroid, side by side.

    ``rows`` (num_rows,) int32, centroid by centroid and ascending, ``starts`` (num_centroids + 1,) where each centroid
    begins, ``packed`` (num_rows, width) uint8, the residuals as :func:`sketch_codec` has them, filled up with zeros to
    a multiple of 16 bytes, and their ``scales`` (num_rows, 2) uint8.
    """

    rows: NDArray[np.int32]
    starts: NDArray[np.int64]
    packed: NDArray[np.uint8]
    scales: NDArray[np.uint8]


def rows_by_code(codes: NDArray[np.integer], num_codes: int) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """The rows of each code, ascending, and where each code begins among them.

    >>> rows, starts = rows_by_code(np.array([1, 0, 1], np.uint16), 3)
    >>> rows.tolist(), starts.tolist()
    ([1, 0, 2], [0, 1, 3, 3])
    """
    rows = np.argsort(codes, kind="stable").astype(np.int32)
    counts = np.bincount(codes, minlength=num_codes)
    return rows, np.concatenate([[0], np.cumsum(counts)])


def sketch_codec(codec: ResidualCodec) -> ResidualCodec:
    """What decodes sketches: the codec at two bits, or at its own if it has fewer."""
    return codec._replace(bits=min(codec.bits, SKETCH_BITS))


@compiled()
def _requantize(
    packed: Array, bits: int, levels: Array, fewer: int, rows: Array, start: int, stop: int, out: Array
) -> None:
    width, dim = packed.shape[1], packed.shape[1] * (8 // bits)
    short = dim * fewer // 8
    mask, values = np.uint8((1 << bits) - 1), np.empty(dim, np.uint8)
    for place in range(start, stop):
        source, target = packed[rows[place]], out[place]
        for plane in range(8 // bits):
            for i in range(width):
                values[plane * width + i] = levels[(source[i] >> np.uint8(plane * bits)) & mask]
        for plane in range(8 // fewer):
            for i in range(short):
                target[i] |= values[plane * short + i] << np.uint8(plane * fewer)


def _room(num_rows: int, dim: int, bits: int) -> NDArray[np.uint8]:
    width = dim * bits // 8
    return np.zeros((num_rows, width + -width % PADDING), np.uint8)


def sketch_packed(
    packed: NDArray[np.uint8],
    codec: ResidualCodec,
    rows: NDArray[np.int32],
    *,
    threads: int = 1,
    executor: Executor | None = None,
) -> NDArray[np.uint8]:
    """The sketches of some rows of packed residuals, of shape (num_rows, width).

    A level of the codec becomes the nearest level of two bits.
    """
    fewer = sketch_codec(codec).bits
    middles = (np.arange(1 << codec.bits) - ((1 << codec.bits) - 1) / 2) * LEVEL_DISTANCE[codec.bits]
    nearest = np.floor(middles / LEVEL_DISTANCE[fewer] + (1 << fewer) / 2)
    levels = np.clip(nearest, 0, (1 << fewer) - 1).astype(np.uint8)
    out = _room(len(rows), packed.shape[1] * 8 // codec.bits, fewer)
    run(
        lambda start, stop: _requantize(packed, codec.bits, levels, fewer, rows, start, stop, out),
        len(rows),
        threads=threads,
        executor=executor,
    )
    return out


def sketch_vectors(
    vectors: NDArray[np.float16],
    centroids: NDArray[np.float32],
    codes: NDArray[np.integer],
    codec: ResidualCodec,
    rows: NDArray[np.int32],
    *,
    threads: int = 1,
    executor: Executor | None = None,
) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """The sketches of some rows of stored vectors, of shape (num_rows, width), and their scales (num_rows, 2).

    Parameters
    ----------
    vectors : float16 of shape (num_vectors, dim)
    centroids : float32 of shape (num_centroids, padded dim)
    codes : unsigned integers of shape (num_vectors,)
    """
    few = sketch_codec(codec)
    dim = centroids.shape[1]
    out, scales = _room(len(rows), dim, few.bits), np.empty((len(rows), 2), np.uint8)
    for first in range(0, len(rows), _BATCH):
        here = rows[first : first + _BATCH]
        padded = np.zeros((len(here), dim), np.float32)
        padded[:, : vectors.shape[1]] = vectors[here]
        packed, own = np.empty((len(here), dim * few.bits // 8), np.uint8), codes[here]
        part = scales[first : first + len(here)]
        run(
            lambda start, stop: encode(padded, centroids, own, few, packed, part, start, stop),  # noqa: B023
            len(here),
            threads=threads,
            executor=executor,
        )
        out[first : first + len(here), : packed.shape[1]] = packed
    return out, scales
