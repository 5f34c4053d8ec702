"""The residual codec: a centroid, a residual of ``bits`` bits a dimension, a byte of scale and a byte of gain.

A residual r = v - c is divided by the spread σ of each dimension and by its own length, so that its components are
close to standard normal, and rounded to one of 2^bits equidistant levels. It is decoded as ::

    v̂[d] = gain · (c[d] + scale · unit · steps[d] · (2·code[d] - (2^bits - 1)))

where ``scale`` (uint8) is the least-squares factor of that vector and ``gain`` = GAIN_LOW + GAIN_STEP · uint8 gives
v̂ the length of v, which rounding shortened (worth 1 % recall@100 and 3 % recall@10 at 2 bits). Equidistant levels
cost 1 % (2 bits) to 20 % (4 bits) more squared error than Lloyd-Max levels for a normal distribution (Max, 1960) and
less than the quantile buckets of ColBERTv2; they let a search multiply the codes themselves (``maxsim.py``) instead
of decoding.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from colbert_prf.kernels.compiled import Array, compiled
from colbert_prf.kernels.simd import AHEAD, prefetch, unpack_bytes

__all__ = [
    "GAIN_LOW",
    "GAIN_STEP",
    "ResidualCodec",
    "decode",
    "decode_definition",
    "encode",
    "encode_definition",
    "pack",
    "products_of_rows",
    "train",
    "unpack",
]

LEVEL_DISTANCE = {1: 1.596, 2: 0.9957, 4: 0.3352, 8: 0.0308}
"""Best distance of 2^bits equidistant levels for a standard normal variable (Max, 1960; 8 bits: extrapolated)."""
GAIN_LOW, GAIN_STEP = np.float32(0.875), np.float32(1 / 512)
FARTHEST = 1.5
"""Length of the longest residual of a unit vector that must be kept."""
SMALLEST_SPREAD = 0.1
"""Of a dimension, as a part of the mean: where a sample does not vary, later vectors may."""
_TINY = np.float32(1e-12)


class ResidualCodec(NamedTuple):
    """What all vectors of an index share: ``bits``, ``spread`` (dim,) float32, ``unit`` of the scale bytes."""

    bits: int
    spread: NDArray[np.float32]
    unit: np.float32

    @property
    def steps(self) -> NDArray[np.float32]:
        """Half the distance of two levels in each dimension, of shape (dim,)."""
        return (self.spread * np.float32(LEVEL_DISTANCE[self.bits] / 2)).astype(np.float32)


def train(residuals: NDArray[np.float32], bits: int) -> ResidualCodec:
    """Fit the codec to a sample of residuals of shape (num_vectors, dim).

    Scale bytes reach the 99.9 % quantile of the sample and the residual of a unit vector far from every centroid, for
    later vectors need not be like the sample.
    """
    if bits not in LEVEL_DISTANCE:
        raise ValueError(f"bits must be one of {sorted(LEVEL_DISTANCE)}, found {bits}")
    spread = np.sqrt(np.mean(np.square(residuals), axis=0))
    spread = np.maximum(spread, max(float(spread.mean()) * SMALLEST_SPREAD, 1e-3)).astype(np.float32)
    lengths = np.sqrt(np.mean(np.square(residuals / spread), axis=1))
    longest = max(1.05 * float(np.quantile(lengths, 0.999)), FARTHEST / float(np.linalg.norm(spread)))
    return ResidualCodec(bits, spread, np.float32(longest / 255))


def pack(codes: NDArray[np.uint8], bits: int) -> NDArray[np.uint8]:
    """Pack codes (num_vectors, dim) into (num_vectors, dim·bits/8) bytes, in planes.

    Byte i holds the dimensions i, i + width, i + 2·width, ... from its lowest bits up, so that unpacking is a shift
    and a mask of whole byte vectors.

    >>> pack(np.array([[1, 2, 3, 4]], np.uint8), 4).tolist()
    [[49, 66]]
    """
    width = codes.shape[1] * bits // 8
    planes = codes.reshape(len(codes), 8 // bits, width)
    shifts = (np.arange(8 // bits) * bits).astype(np.uint8)
    packed: NDArray[np.uint8] = np.bitwise_or.reduce(planes << shifts[:, None], axis=1).astype(np.uint8)
    return packed


def unpack(packed: NDArray[np.uint8], bits: int) -> NDArray[np.uint8]:
    """Undo :func:`pack`: (num_vectors, dim·bits/8) bytes to codes of shape (num_vectors, dim)."""
    planes = [(packed >> np.uint8(plane * bits)) & np.uint8((1 << bits) - 1) for plane in range(8 // bits)]
    return np.concatenate(planes, axis=1)


def encode_definition(
    vectors: NDArray[np.float32], centroids: NDArray[np.float32], codes: NDArray[np.integer], codec: ResidualCodec
) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """The definition of :func:`encode` in NumPy."""
    top = (1 << codec.bits) - 1
    residuals = vectors - centroids[codes]
    normal = residuals / codec.spread
    normal /= np.maximum(np.sqrt(np.mean(np.square(normal), axis=1, keepdims=True)), _TINY)
    levels = np.clip(np.floor(normal / np.float32(LEVEL_DISTANCE[codec.bits]) + np.float32((top + 1) / 2)), 0, top)
    decoded = (2 * levels - top) * codec.steps
    scales = np.sum(residuals * decoded, axis=1) / np.sum(np.square(decoded), axis=1)
    scales = np.clip(np.rint(scales / codec.unit), 0, 255)
    lengths = np.linalg.norm(centroids[codes] + (scales * codec.unit)[:, None] * decoded, axis=1)
    gains = np.linalg.norm(vectors, axis=1) / np.maximum(lengths, _TINY)
    gains = np.clip(np.rint((gains - GAIN_LOW) / GAIN_STEP), 0, 255)
    return pack(levels.astype(np.uint8), codec.bits), np.stack([scales, gains], axis=1).astype(np.uint8)


@compiled(fastmath=True)
def _encode(
    vectors: Array,
    centroids: Array,
    codes: Array,
    bits: int,
    spread: Array,
    unit: np.float32,
    distance: np.float32,
    start: int,
    stop: int,
    packed: Array,
    scales: Array,
) -> None:
    dim, width = vectors.shape[1], packed.shape[1]
    top = np.float32((1 << bits) - 1)
    inverse = 1 / spread
    steps = spread * np.float32(distance / 2)
    residual, level = np.empty(dim, np.float32), np.empty(dim, np.uint8)
    for t in range(start, stop):
        centroid, vector = centroids[codes[t]], vectors[t]
        square, length, center = np.float32(0), np.float32(0), np.float32(0)
        for d in range(dim):
            residual[d] = vector[d] - centroid[d]
            square += (residual[d] * inverse[d]) ** 2
            length += vector[d] * vector[d]
            center += centroid[d] * centroid[d]
        factor = np.float32(1 / (max(np.sqrt(square / dim), np.float32(1e-12)) * distance))
        projection, energy, overlap = np.float32(0), np.float32(0), np.float32(0)
        for d in range(dim):
            # Truncation equals floor here because negative values are clipped to 0 first.
            value = residual[d] * inverse[d] * factor + (top + 1) * np.float32(0.5)
            level[d] = np.uint8(min(max(value, np.float32(0)), top))
            decoded = (2 * np.float32(level[d]) - top) * steps[d]
            projection += residual[d] * decoded
            energy += decoded * decoded
            overlap += centroid[d] * decoded
        byte = np.uint8(min(max(projection / energy / unit, np.float32(0)) + np.float32(0.5), np.float32(255)))
        scale = np.float32(byte) * unit
        # |c + s·w|² = |c|² + 2s·c·w + s²·|w|²
        short = np.sqrt(max(center + scale * (2 * overlap + scale * energy), np.float32(1e-24)))
        gain = (np.sqrt(length) / short - GAIN_LOW) / GAIN_STEP
        scales[t, 0] = byte
        scales[t, 1] = np.uint8(min(max(gain, np.float32(0)) + np.float32(0.5), np.float32(255)))
        for i in range(width):
            packed[t, i] = level[i]
        for plane in range(1, 8 // bits):
            for i in range(width):
                packed[t, i] |= level[plane * width + i] << (plane * bits)


def encode(
    vectors: NDArray[np.float32],
    centroids: NDArray[np.float32],
    codes: NDArray[np.integer],
    codec: ResidualCodec,
    packed: NDArray[np.uint8],
    scales: NDArray[np.uint8],
    start: int,
    stop: int,
) -> None:
    """Encode the vectors ``start`` to ``stop`` into ``packed[start:stop]`` and ``scales[start:stop]``.

    Parameters
    ----------
    vectors : array of shape (num_vectors, dim)
    centroids : array of shape (num_centroids, dim)
    codes : unsigned integers of shape (num_vectors,)
        The centroid of each vector.
    packed : uint8 of shape (num_vectors, dim * bits / 8)
    scales : uint8 of shape (num_vectors, 2)
        Scale and gain of each vector.
    """
    distance = np.float32(LEVEL_DISTANCE[codec.bits])
    _encode(vectors, centroids, codes, codec.bits, codec.spread, codec.unit, distance, start, stop, packed, scales)


def decode_definition(
    packed: NDArray[np.uint8],
    scales: NDArray[np.uint8],
    codes: NDArray[np.integer],
    centroids: NDArray[np.float32],
    codec: ResidualCodec,
) -> NDArray[np.float32]:
    """The definition of :func:`decode` in NumPy."""
    levels = 2 * unpack(packed, codec.bits).astype(np.float32) - np.float32((1 << codec.bits) - 1)
    decoded = centroids[codes] + (scales[:, :1] * codec.unit) * (levels * codec.steps)
    return np.asarray(decoded * (GAIN_LOW + GAIN_STEP * scales[:, 1:]), dtype=np.float32)


@compiled()
def unpack_rows(packed: Array, bits: int, first: int, count: int, buffer: Array) -> None:
    """Unpack the rows ``first`` to ``first + count`` of ``packed`` (num_vectors, width) into ``buffer``."""
    width = packed.shape[1]
    dim = width * (8 // bits)
    mask = (1 << bits) - 1
    if width % 8 == 0:
        for t in range(count):
            for plane in range(8 // bits):
                unpack_bytes(packed, (first + t) * width, width, plane * bits, mask, buffer, t * dim + plane * width)
    else:
        for t in range(count):
            for plane in range(8 // bits):
                for i in range(width):
                    buffer[t * dim + plane * width + i] = (packed[first + t, i] >> (plane * bits)) & mask


@compiled(fastmath={"contract"})
def decode_rows(
    packed: Array,
    bits: int,
    scales: Array,
    codes: Array,
    centroids: Array,
    steps: Array,
    unit: np.float32,
    first: int,
    count: int,
    levels: Array,
    out: Array,
) -> None:
    """Decode ``count`` vectors from ``first`` on into ``out`` (rows, dim); ``levels`` is room for their bytes."""
    dim = centroids.shape[1]
    top = np.float32((1 << bits) - 1)
    unpack_rows(packed, bits, first, count, levels)
    for t in range(count):
        centroid, row, level = centroids[codes[first + t]], out[t], levels[t * dim : (t + 1) * dim]
        gain = GAIN_LOW + GAIN_STEP * np.float32(scales[first + t, 1])
        scale = np.float32(scales[first + t, 0]) * unit
        for d in range(dim):
            row[d] = gain * (centroid[d] + scale * (steps[d] * (2 * np.float32(level[d]) - top)))


def decode(
    packed: NDArray[np.uint8],
    scales: NDArray[np.uint8],
    codes: NDArray[np.integer],
    centroids: NDArray[np.float32],
    codec: ResidualCodec,
) -> NDArray[np.float32]:
    """Decode vectors: (num_vectors, width) packed bytes and (num_vectors, 2) scales to (num_vectors, dim) float32."""
    out = np.empty((len(packed), centroids.shape[1]), np.float32)
    levels = np.empty(out.size, np.uint8)
    decode_rows(packed, codec.bits, scales, codes, centroids, codec.steps, codec.unit, 0, len(packed), levels, out)
    return out


@compiled(fastmath={"contract", "reassoc", "nsz"})
def _products_of_rows(
    vectors: Array,
    rows: Array,
    packed: Array,
    bits: int,
    scales: Array,
    codes: Array,
    centroids: Array,
    steps: Array,
    unit: np.float32,
    out: Array,
) -> None:
    dim = centroids.shape[1]
    levels, decoded = np.empty(dim, np.uint8), np.empty((1, dim), np.float32)
    for i in range(rows.shape[0]):
        for j in range(rows.shape[1]):
            if j + AHEAD < rows.shape[1] and rows[i, j + AHEAD] >= 0:
                row = rows[i, j + AHEAD]
                prefetch(packed, row * packed.shape[1])
                prefetch(packed, row * packed.shape[1] + packed.shape[1] - 1)
                prefetch(scales, 2 * row)
                prefetch(codes, row)
            if rows[i, j] >= 0:
                decode_rows(packed, bits, scales, codes, centroids, steps, unit, rows[i, j], 1, levels, decoded)
                total = np.float32(0)
                for d in range(dim):
                    total += vectors[i, d] * decoded[0, d]
                out[i, j] = total


def products_of_rows(
    vectors: NDArray[np.float32],
    rows: NDArray[np.int64],
    packed: NDArray[np.uint8],
    scales: NDArray[np.uint8],
    codes: NDArray[np.integer],
    centroids: NDArray[np.float32],
    codec: ResidualCodec,
) -> NDArray[np.float32]:
    """The products of vectors (n, dim) with some decoded rows of each (n, count); minus infinity where a row is -1."""
    out = np.full(rows.shape, -np.inf, np.float32)
    _products_of_rows(vectors, rows, packed, codec.bits, scales, codes, centroids, codec.steps, codec.unit, out)
    return out
