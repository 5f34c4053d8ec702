"""Sketches of document vectors: their residuals at two bits a dimension, those of one centroid side by side.

In the store the vectors of a centroid lie far apart, and reading one costs more than comparing it. Sixteen sketches are
interleaved, so that they are compared at once, each in its own lanes.
"""

from __future__ import annotations

from concurrent.futures import Executor
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from colbert_prf.kernels.compiled import Array, compiled
from colbert_prf.kernels.parallel import run
from colbert_prf.kernels.residuals import GAIN_LOW, GAIN_STEP, LEVEL_DISTANCE, ResidualCodec, encode

__all__ = ["Sketches", "dims_of", "rows_by_code", "scale_unit", "sketch_codec", "sketch_packed", "sketch_vectors"]

SKETCH_BITS = 2
SIDE_BY_SIDE = 16
"""Sketches that are interleaved."""
FOUR = 4
"""Dimensions of one sketch that lie next to each other."""
_BATCH = 1 << 16


class Sketches(NamedTuple):
    """The document vectors of each centroid, side by side.

    ``rows`` (num_rows,) int32, centroid by centroid and ascending, ``starts`` (num_centroids + 1,) where each centroid
    begins, ``packed`` (num_rows / 16, chunks, 16, 4) uint8, the residuals as :func:`sketch_codec` has them, and their
    ``scales`` and ``gains`` (num_rows,) uint8, the last three filled up with zeros to a multiple of 16 rows.

    A byte of ``packed`` has as many dimensions as there is room for, from its lowest bits up: those that are d, d + 4,
    d + 8, ... of the chunk. Paths (:mod:`.trellis`) are kept as they are: a chunk has the four bytes of one.
    """

    rows: NDArray[np.int32]
    starts: NDArray[np.int64]
    packed: NDArray[np.uint8]
    scales: NDArray[np.uint8]
    gains: NDArray[np.uint8]


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
    """What decodes sketches: the codec at two bits, or itself if it has no more."""
    return codec if codec.bits <= SKETCH_BITS else codec._replace(bits=SKETCH_BITS)


@compiled()
def scale_unit(codec: ResidualCodec) -> np.float32:
    """The unit of the scales of sketches, of which the largest takes a byte."""
    highest = np.float32((1 << (4 if codec.trellis else 8)) - 1)
    return np.float32((codec.ranges[0, 0] + codec.ranges[0, 1] * highest) / np.float32(255))


def dims_of(dim: int, bits: int) -> int:
    """Dimensions of a sketch: a multiple of what a chunk has, 16 at two bits and 32 at one.

    >>> dims_of(48, 2), dims_of(48, 1)
    (48, 64)
    """
    return dim + -dim % (FOUR * 8 // bits)


@compiled()
def _interleave(
    packed: Array, bits: int, levels: Array, fewer: int, rows: Array, start: int, stop: int, first: int, out: Array
) -> None:
    """Write the sketches of the rows ``start`` to ``stop`` from place ``first + start`` on, level by level."""
    width = packed.shape[1]
    planes = 8 // fewer
    mask, values = np.uint8((1 << bits) - 1), np.zeros(out.shape[1] * planes * FOUR, np.uint8)
    for row in range(start, stop):
        source, place = packed[rows[row]], first + row
        for plane in range(8 // bits):
            for i in range(width):
                values[plane * width + i] = levels[(source[i] >> np.uint8(plane * bits)) & mask]
        for chunk in range(out.shape[1]):
            target, base = out[place // SIDE_BY_SIDE, chunk, place % SIDE_BY_SIDE], chunk * planes * FOUR
            for d in range(FOUR):
                byte = np.uint8(0)
                for plane in range(planes):
                    byte |= values[base + plane * FOUR + d] << np.uint8(plane * fewer)
                target[d] = byte


@compiled()
def _interleave_paths(packed: Array, rows: Array, start: int, stop: int, out: Array) -> None:
    """Write the paths of the rows ``start`` to ``stop``."""
    for place in range(start, stop):
        source, block, lane = packed[rows[place]], place // SIDE_BY_SIDE, place % SIDE_BY_SIDE
        for chunk in range(out.shape[1]):
            for d in range(FOUR):
                out[block, chunk, lane, d] = source[FOUR * chunk + d]


def _interleaved(
    packed: NDArray[np.uint8],
    bits: int,
    levels: NDArray[np.uint8],
    fewer: int,
    rows: NDArray[np.integer],
    first: int,
    out: NDArray[np.uint8],
    threads: int,
    executor: Executor | None,
) -> None:
    def of_blocks(start: int, stop: int) -> None:
        end = min(stop * SIDE_BY_SIDE, len(rows))
        _interleave(packed, bits, levels, fewer, rows, start * SIDE_BY_SIDE, end, first, out)

    # Whole blocks, so that no two threads write to the same.
    run(of_blocks, -(-len(rows) // SIDE_BY_SIDE), threads=threads, executor=executor)


def _room(num_rows: int, dim: int, bits: int) -> NDArray[np.uint8]:
    chunks = dims_of(dim, bits) * bits // (8 * FOUR)
    return np.zeros((-(-num_rows // SIDE_BY_SIDE), chunks, SIDE_BY_SIDE, FOUR), np.uint8)


def _scales_and_gains(
    scales: NDArray[np.unsignedinteger], codec: ResidualCodec
) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """The two halves of scales, a byte each: scales in :func:`scale_unit`, gains from ``GAIN_LOW`` in ``GAIN_STEP``."""
    halves = scales & ((1 << codec.half) - 1), scales >> codec.half
    all_scales, all_gains = (low + step * np.arange(1 << codec.half) for low, step in codec.ranges)
    tables = all_scales / scale_unit(codec), (all_gains - GAIN_LOW) / GAIN_STEP
    lower, upper = (
        np.pad(np.clip(np.rint(table), 0, 255).astype(np.uint8)[half], (0, -len(half) % SIDE_BY_SIDE))
        for table, half in zip(tables, halves, strict=True)
    )
    return lower, upper


def sketch_packed(
    packed: NDArray[np.uint8],
    scales: NDArray[np.unsignedinteger],
    codec: ResidualCodec,
    rows: NDArray[np.int32],
    starts: NDArray[np.int64],
    *,
    threads: int = 1,
    executor: Executor | None = None,
) -> Sketches:
    """The sketches of some rows of packed residuals: a level of the codec becomes the nearest level of two bits.

    Parameters
    ----------
    packed : uint8 of shape (num_vectors, width)
    scales : unsigned integers of shape (num_vectors,)
    rows, starts
        As :func:`rows_by_code` gives them.
    """
    fewer = sketch_codec(codec).bits
    out = _room(len(rows), packed.shape[1] * 8 // codec.bits, fewer)
    kept = _scales_and_gains(scales[rows], codec)
    if codec.trellis:
        run(
            lambda start, stop: _interleave_paths(packed, rows, start, stop, out),
            len(rows),
            threads=threads,
            executor=executor,
        )
        return Sketches(rows, starts, out, *kept)
    middles = (np.arange(1 << codec.bits) - ((1 << codec.bits) - 1) / 2) * LEVEL_DISTANCE[codec.bits]
    nearest = np.floor(middles / LEVEL_DISTANCE[fewer] + (1 << fewer) / 2)
    levels = np.clip(nearest, 0, (1 << fewer) - 1).astype(np.uint8)
    _interleaved(packed, codec.bits, levels, fewer, rows, 0, out, threads, executor)
    return Sketches(rows, starts, out, *kept)


def sketch_vectors(
    vectors: NDArray[np.float16],
    centroids: NDArray[np.float32],
    codes: NDArray[np.integer],
    codec: ResidualCodec,
    rows: NDArray[np.int32],
    starts: NDArray[np.int64],
    *,
    threads: int = 1,
    executor: Executor | None = None,
) -> Sketches:
    """The sketches of some rows of stored vectors.

    Parameters
    ----------
    vectors : float16 of shape (num_vectors, dim)
    centroids : float32 of shape (num_centroids, padded dim)
    codes : unsigned integers of shape (num_vectors,)
    rows, starts
        As :func:`rows_by_code` gives them.
    """
    few = sketch_codec(codec)
    dim, levels = centroids.shape[1], np.arange(1 << few.bits, dtype=np.uint8)
    out, scales = _room(len(rows), dim, few.bits), np.empty(len(rows), few.scale_dtype)
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
        _interleaved(packed, few.bits, levels, few.bits, np.arange(len(here)), first, out, threads, executor)
    return Sketches(rows, starts, out, *_scales_and_gains(scales, few))
