"""The residual codec: a centroid, a residual of 2 or 4 bits a dimension, a scale and a gain.

A residual r = v - c is divided by the spread σ of each dimension and by its own length, so that its components are
close to standard normal, and rounded to sixteen equidistant levels. It is decoded as ::

    v̂[d] = gain · (c[d] + scale · steps[d] · (2·level[d] - 15))

where ``scale`` is a factor of that vector, and ``gain`` gives v̂ the length of v, which rounding shortened (worth 1 %
recall@100 and 3 % recall@10 at 2 bits). Scale and gain are whole numbers of steps, kept as one number. Equidistant
levels cost up to 20 % (4 bits) more squared error than Lloyd-Max levels for a normal distribution (Max, 1960) and less
than the quantile buckets of ColBERTv2; in return a search multiplies the levels themselves (:mod:`.packed`).

With 4 bits a code is its level, and scale and gain are a byte each. With 2 bits the levels are those of a path through
a trellis (:mod:`.trellis`), and scale and gain have four bits each. :mod:`.residual_encoding` makes all of them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from colbert_prf.kernels.compiled import Array, compiled
from colbert_prf.kernels.trellis import levels_of_path, levels_of_paths

__all__ = ["ResidualCodec", "decode", "decode_definition", "levels_of", "pack", "scale_and_gain", "unpack"]

TOP = 15
"""The highest level."""
LEVEL_DISTANCE = np.float32(0.3352)
"""Best distance of sixteen equidistant levels for a standard normal variable (Max, 1960)."""
TRELLIS_BITS = 2


class ResidualCodec(NamedTuple):
    """What all vectors of an index share.

    ``bits``, 2 or 4; ``spread`` (dim,) float32; ``ranges`` (2, 2) float32: the lowest scale and the step from one scale
    to the next, and the same of gains.
    """

    bits: int
    spread: NDArray[np.float32]
    ranges: NDArray[np.float32]

    @property
    def steps(self) -> NDArray[np.float32]:
        """Half the distance of two levels in each dimension, of shape (dim,)."""
        return (self.spread * (LEVEL_DISTANCE / 2)).astype(np.float32)

    @property
    def scale_bits(self) -> int:
        """Bits of a scale, and of a gain."""
        return 2 * self.bits

    @property
    def scale_dtype(self) -> type[np.unsignedinteger]:
        """Of a number whose lower half is the scale of a vector and whose upper half is its gain."""
        return np.uint8 if self.bits == TRELLIS_BITS else np.uint16


def pack(levels: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Pack levels of 4 bits, (num_vectors, dim), into (num_vectors, dim / 2) bytes.

    Byte i holds the dimension i in its lower half and the dimension i + dim / 2 in its upper half, so that unpacking is
    a shift and a mask of whole byte vectors.

    >>> pack(np.array([[1, 2, 3, 4]], np.uint8)).tolist()
    [[49, 66]]
    """
    lower, upper = np.split(levels, 2, axis=1)
    return np.asarray(lower | upper << 4, dtype=np.uint8)


def unpack(packed: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Undo :func:`pack`: (num_vectors, dim / 2) bytes to levels of shape (num_vectors, dim)."""
    return np.concatenate([packed & 15, packed >> 4], axis=1)


def levels_of(packed: NDArray[np.uint8], codec: ResidualCodec) -> NDArray[np.uint8]:
    """The levels of packed residuals: (num_vectors, width) to (num_vectors, dim)."""
    return levels_of_paths(packed) if codec.bits == TRELLIS_BITS else unpack(packed)


def scale_and_gain(
    scales: NDArray[np.unsignedinteger], codec: ResidualCodec
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """The two numbers that are kept as one, as factors."""
    (low, step), (gain_low, gain_step) = codec.ranges
    lower, upper = scales & ((1 << codec.scale_bits) - 1), scales >> codec.scale_bits
    return low + step * lower.astype(np.float32), gain_low + gain_step * upper.astype(np.float32)


def decode_definition(
    packed: NDArray[np.uint8],
    scales: NDArray[np.unsignedinteger],
    codes: NDArray[np.integer],
    centroids: NDArray[np.float32],
    codec: ResidualCodec,
) -> NDArray[np.float32]:
    """The definition of :func:`decode` in NumPy."""
    levels = 2 * levels_of(packed, codec).astype(np.float32) - np.float32(TOP)
    scale, gain = scale_and_gain(scales, codec)
    decoded = centroids[codes] + scale[:, None] * (levels * codec.steps)
    return np.asarray(gain[:, None] * decoded, dtype=np.float32)


@compiled(fastmath={"contract"})
def _decode(
    packed: Array, scales: Array, codes: Array, centroids: Array, codec: ResidualCodec, rows: Array, out: Array
) -> None:
    (width, dim), scale_bits = (packed.shape[1], centroids.shape[1]), 2 * codec.bits
    levels, steps, top = np.empty(dim, np.uint8), codec.spread * (LEVEL_DISTANCE / np.float32(2)), np.float32(TOP)
    for i in range(len(rows)):
        row = rows[i]
        residual = packed[row]
        if codec.bits == TRELLIS_BITS:
            levels_of_path(residual, levels)
        else:
            for j in range(width):
                levels[j] = residual[j] & 15
                levels[width + j] = residual[j] >> 4
        number = np.int64(scales[row])
        scale = codec.ranges[0, 0] + codec.ranges[0, 1] * np.float32(number & ((1 << scale_bits) - 1))
        gain = codec.ranges[1, 0] + codec.ranges[1, 1] * np.float32(number >> scale_bits)
        centroid, vector = centroids[codes[row]], out[i]
        for d in range(dim):
            vector[d] = gain * (centroid[d] + scale * (steps[d] * (2 * np.float32(levels[d]) - top)))


def decode(
    packed: NDArray[np.uint8],
    scales: NDArray[np.unsignedinteger],
    codes: NDArray[np.integer],
    centroids: NDArray[np.float32],
    codec: ResidualCodec,
    rows: NDArray[np.int64] | None = None,
) -> NDArray[np.float32]:
    """Decode vectors: (num_vectors, width) packed bytes and (num_vectors,) scales to (num_vectors, dim) float32.

    With ``rows`` (n,) only these, in their order.
    """
    rows = np.arange(len(packed)) if rows is None else rows
    out = np.empty((len(rows), centroids.shape[1]), np.float32)
    _decode(packed, scales, codes, centroids, codec, rows, out)
    return out
