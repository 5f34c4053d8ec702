"""The residual codec: a centroid, a residual of ``bits`` bits a dimension, a scale and a gain.

A residual r = v - c is divided by the spread σ of each dimension and by its own length, so that its components are
close to standard normal, and rounded to levels that are equidistant. It is decoded as ::

    v̂[d] = gain · (c[d] + scale · steps[d] · (2·level[d] - top))

where ``scale`` is a factor of that vector and ``gain`` gives v̂ the length of v, which rounding shortened (worth 1 %
recall@100 and 3 % recall@10 at 2 bits); each is kept as a whole number of steps. Equidistant levels cost up to 20 % (4
bits) more squared error than Lloyd-Max levels for a normal distribution (Max, 1960) and less than the quantile buckets
of ColBERTv2; they let a search multiply the levels themselves (``exact.py``) instead of decoding.

With 1, 4 and 8 bits a code is its level, of 2^bits, and scale, the least-squares factor, and gain are a byte each. With
2 bits the levels are those of a walk (:mod:`.walks`), 16 of them, scale and gain have four bits each, and the scale is
the length of the residual times :data:`STRETCH`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from colbert_prf.kernels.compiled import Array, compiled
from colbert_prf.kernels.simd import unpack_bytes
from colbert_prf.kernels.walks import TOP, best_walks_definition, levels_of_walk, levels_of_walks, room_for_walks, walk

__all__ = [
    "ResidualCodec",
    "decode",
    "decode_definition",
    "encode",
    "encode_definition",
    "levels_of",
    "pack",
    "read_row",
    "round_to_bytes",
    "steps_of",
    "top_of",
    "train",
    "unpack",
]

LEVEL_DISTANCE = {1: 1.596, 2: 0.9957, 4: 0.3352, 8: 0.0308}
"""Best distance of 2^bits equidistant levels for a standard normal variable (Max, 1960; 8 bits: extrapolated)."""
WALK_BITS = 2
GAIN_LOW, GAIN_STEP = np.float32(0.875), np.float32(1 / 512)
"""Where a gain has a byte. Where it has four bits, they reach over the gains of a sample."""
SMALLEST_GAIN_STEP = 1 / 256
GAIN_SAMPLE = 1 << 13
TOO_LONG = 4
"""Steps below the lowest gain: of a vector so unlike the sample the scale gives way, for its length must not count."""
STRETCH = np.float32(1.05)
"""Products with a walk, which is shorter along the residual than that, are nearest to what they should be where it is
so much longer, though its distance is then larger by 1 % (``docs/notes/engine.md``)."""
FARTHEST, FARTHEST_WALK = 1.5, 1.0
"""Length of the longest residual of a unit vector whose scale must be kept; walks make good some of what is missing."""
SMALLEST_SPREAD = 0.1
"""Of a dimension, as a part of the mean: where a sample does not vary, later vectors may."""
_TINY = np.float32(1e-12)
_DISTANCES = np.array([LEVEL_DISTANCE.get(bits, 0) for bits in range(9)], np.float32)
_BATCH = 1 << 16


class ResidualCodec(NamedTuple):
    """What all vectors of an index share.

    ``bits``; ``spread`` (dim,) float32; ``ranges`` (2, 2) float32, the lowest scale and the step from one to the next,
    and the same of gains; and whether the levels are ``walks``.
    """

    bits: int
    spread: NDArray[np.float32]
    ranges: NDArray[np.float32]
    walks: bool = False

    @property
    def top(self) -> int:
        """The highest level."""
        return TOP if self.walks else (1 << self.bits) - 1

    @property
    def distance(self) -> np.float32:
        """Of two levels, for a standard normal variable."""
        return np.float32(LEVEL_DISTANCE[4 if self.walks else self.bits])

    @property
    def steps(self) -> NDArray[np.float32]:
        """Half the distance of two levels in each dimension, of shape (dim,)."""
        return (self.spread * np.float32(self.distance / 2)).astype(np.float32)

    @property
    def scale_dtype(self) -> type[np.unsignedinteger]:
        """Of a number whose lower half is the scale of a vector and whose upper half is its gain."""
        return np.uint8 if self.walks else np.uint16

    @property
    def half(self) -> int:
        """Bits of a scale, and of a gain."""
        return 4 if self.walks else 8


def train(
    vectors: NDArray[np.float32], centroids: NDArray[np.float32], codes: NDArray[np.integer], bits: int
) -> ResidualCodec:
    """Fit the codec to a sample of vectors (num_vectors, dim), of which ``codes`` names the centroids.

    Scales reach the 99.9 % quantile and the residual of a vector far from every centroid: others may be unlike these.
    """
    if bits not in LEVEL_DISTANCE:
        raise ValueError(f"bits must be one of {sorted(LEVEL_DISTANCE)}, found {bits}")

    def residuals() -> Iterator[NDArray[np.float32]]:
        for start in range(0, len(vectors), _BATCH):
            part = slice(start, start + _BATCH)
            yield vectors[part] - centroids[codes[part]]

    spread = np.sqrt(sum(np.square(part).sum(axis=0, dtype=np.float64) for part in residuals()) / len(vectors))
    spread = np.maximum(spread, max(float(spread.mean()) * SMALLEST_SPREAD, 1e-3)).astype(np.float32)
    lengths = np.concatenate([np.sqrt(np.mean(np.square(part / spread), axis=1)) for part in residuals()])
    shortest, longest = (float(quantile) for quantile in np.quantile(lengths, [0.001, 0.999]))
    if bits != WALK_BITS:
        longest = max(1.05 * longest, FARTHEST / float(np.linalg.norm(spread)))
        ranges = np.array([(0, longest / 255), (GAIN_LOW, GAIN_STEP)], np.float32)
        return ResidualCodec(bits, spread, ranges)
    longest = max(longest, FARTHEST_WALK / float(np.linalg.norm(spread)))
    ranges = np.array([(shortest, (longest - shortest) / 15), (GAIN_LOW, GAIN_STEP)], np.float32)
    ranges[0] *= STRETCH
    codec, few = ResidualCodec(bits, spread, ranges, walks=True), slice(GAIN_SAMPLE)
    _, _, gains = _rounded(vectors[few], centroids[codes[few]], codec)
    low, high = np.quantile(gains, [0.001, 0.999])
    step = max((high - low) / 15, SMALLEST_GAIN_STEP)
    ranges[1] = (low + high - 15 * step) / 2, step
    return codec


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


def levels_of(packed: NDArray[np.uint8], codec: ResidualCodec) -> NDArray[np.uint8]:
    """The levels of packed residuals: (num_vectors, width) to (num_vectors, dim)."""
    return levels_of_walks(packed) if codec.walks else unpack(packed, codec.bits)


def _rounded(
    vectors: NDArray[np.float32], centers: NDArray[np.float32], codec: ResidualCodec
) -> tuple[NDArray[np.uint8], NDArray[np.float32], NDArray[np.float32]]:
    """Packed residuals, scales in steps and exact gains of vectors (num_vectors, dim) with these centroids."""
    low, step = codec.ranges[0]
    residuals = vectors - centers
    normal = residuals / codec.spread
    lengths = np.sqrt(np.mean(np.square(normal), axis=1, keepdims=True))
    if codec.walks:
        # What rounding the length of a residual to four bits takes from it, its levels make good.
        scales = np.clip(np.rint((STRETCH * lengths[:, 0] - low) / step), 0, 15)
        lengths = (low + step * scales)[:, None] / STRETCH
    values = normal / np.maximum(lengths, _TINY) / codec.distance + np.float32(codec.top / 2)
    if codec.walks:
        packed = best_walks_definition(values)
    else:
        packed = pack(np.clip(np.floor(values + np.float32(0.5)), 0, codec.top).astype(np.uint8), codec.bits)
    decoded = (2 * levels_of(packed, codec).astype(np.float32) - codec.top) * codec.steps
    if not codec.walks:
        scales = np.sum(residuals * decoded, axis=1) / np.sum(np.square(decoded), axis=1)
        scales = np.clip(np.rint((scales - low) / step), 0, 255)

    def gains() -> NDArray[np.float32]:
        short = np.linalg.norm(centers + (low + step * scales)[:, None] * decoded, axis=1)
        return np.asarray(np.linalg.norm(vectors, axis=1) / np.maximum(short, _TINY), dtype=np.float32)

    smallest = codec.ranges[1, 0] - TOO_LONG * codec.ranges[1, 1]
    while (long := (scales > 0) & (gains() < smallest)).any():
        scales = np.where(long, scales - 1, scales)
    return packed, scales, gains()


def encode_definition(
    vectors: NDArray[np.float32], centroids: NDArray[np.float32], codes: NDArray[np.integer], codec: ResidualCodec
) -> tuple[NDArray[np.uint8], NDArray[np.unsignedinteger]]:
    """The definition of :func:`encode` in NumPy."""
    packed, scales, gains = _rounded(vectors, centroids[codes], codec)
    low, step = codec.ranges[1]
    gains = np.clip(np.rint((gains - low) / step), 0, (1 << codec.half) - 1)
    return packed, (scales + gains * (1 << codec.half)).astype(codec.scale_dtype)


@compiled()
def _pack_levels(levels: Array, bits: int, packed: Array) -> None:
    width = packed.shape[0]
    packed[:] = levels[:width]
    for plane in range(1, 8 // bits):
        for i in range(width):
            packed[i] |= levels[plane * width + i] << (plane * bits)


@compiled(fastmath=True)
def _gain(length: np.float32, center: Any, overlap: Any, energy: Any, scale: Any) -> Any:
    """|v| / |c + s·w|, of |v|², |c|², c·w, |w|² and s."""
    return np.sqrt(length) / np.sqrt(max(center + scale * (2 * overlap + scale * energy), np.float32(1e-24)))


@compiled(fastmath=True)
def _encode(
    vectors: Array, centroids: Array, codes: Array, codec: ResidualCodec, distance: np.float32, top: np.float32,
    start: int, stop: int, packed: Array, scales: Array,
) -> None:  # fmt: skip
    dim, half = vectors.shape[1], np.float32(0.5)
    low, step = codec.ranges[0, 0], codec.ranges[0, 1]
    gain_low, gain_step = codec.ranges[1, 0], codec.ranges[1, 1]
    inverse, steps = 1 / codec.spread, codec.spread * (distance * half)
    residual, value, level = np.empty(dim, np.float32), np.empty(dim, np.float32), np.empty(dim, np.uint8)
    shift, room = 4 if codec.walks else 8, room_for_walks(dim)
    most = np.float32((1 << shift) - 1)
    for t in range(start, stop):
        centroid, vector = centroids[codes[t]], vectors[t]
        square, length, center = np.float32(0), np.float32(0), np.float32(0)
        for d in range(dim):
            residual[d] = vector[d] - centroid[d]
            square += (residual[d] * inverse[d]) ** 2
            length += vector[d] * vector[d]
            center += centroid[d] * centroid[d]
        spread = np.sqrt(square / dim)
        # Truncation rounds, for what is below 0 is cut off first.
        number = np.float32(np.int64(min(max((STRETCH * spread - low) / step, np.float32(0)) + half, most)))
        factor = 1 / (max((low + step * number) / STRETCH if codec.walks else spread, np.float32(1e-12)) * distance)
        for d in range(dim):
            value[d] = residual[d] * inverse[d] * factor + top * half
        if codec.walks:
            walk(value, room, packed[t])
            levels_of_walk(packed[t], level)
        else:
            for d in range(dim):
                level[d] = np.uint8(min(max(value[d] + half, np.float32(0)), top))
            _pack_levels(level, codec.bits, packed[t])
        projection, energy, overlap = np.float32(0), np.float32(0), np.float32(0)
        for d in range(dim):
            decoded = (2 * np.float32(level[d]) - top) * steps[d]
            projection += residual[d] * decoded
            energy += decoded * decoded
            overlap += centroid[d] * decoded
        if not codec.walks:
            number = (projection / energy - low) / step
            number = np.float32(np.int64(min(max(number, np.float32(0)) + half, most)))
        scale = low + step * number
        gain = (_gain(length, center, overlap, energy, scale) - gain_low) / gain_step
        while gain < -TOO_LONG and number > 0:
            number -= np.float32(1)
            gain = (_gain(length, center, overlap, energy, low + step * number) - gain_low) / gain_step
        gain = min(max(gain, np.float32(0)) + half, most)
        scales[t] = np.int64(number) | np.int64(gain) << shift


def encode(
    vectors: NDArray[np.float32],
    centroids: NDArray[np.float32],
    codes: NDArray[np.integer],
    codec: ResidualCodec,
    packed: NDArray[np.uint8],
    scales: NDArray[np.unsignedinteger],
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
    scales : of shape (num_vectors,), as ``codec.scale_dtype`` says
        Scale and gain of each vector.
    """
    _encode(vectors, centroids, codes, codec, codec.distance, np.float32(codec.top), start, stop, packed, scales)


def decode_definition(
    packed: NDArray[np.uint8],
    scales: NDArray[np.unsignedinteger],
    codes: NDArray[np.integer],
    centroids: NDArray[np.float32],
    codec: ResidualCodec,
) -> NDArray[np.float32]:
    """The definition of :func:`decode` in NumPy."""
    levels = 2 * levels_of(packed, codec).astype(np.float32) - np.float32(codec.top)
    scale, gain = scale_and_gain(scales, codec)
    decoded = centroids[codes] + scale[:, None] * (levels * codec.steps)
    return np.asarray(gain[:, None] * decoded, dtype=np.float32)


def scale_and_gain(
    scales: NDArray[np.unsignedinteger], codec: ResidualCodec
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """The two numbers that are kept as one, as factors."""
    (low, step), (gain_low, gain_step) = codec.ranges
    lower, upper = scales & ((1 << codec.half) - 1), scales >> codec.half
    return low + step * lower.astype(np.float32), gain_low + gain_step * upper.astype(np.float32)


@compiled()
def _unpack_row(packed: Array, bits: int, walks: bool, row: int, levels: Array) -> None:
    """The levels (dim,) of one row of ``packed`` (num_vectors, width)."""
    width, mask = packed.shape[1], (1 << bits) - 1
    if walks:
        levels_of_walk(packed[row], levels)
    elif width % 8 == 0:
        for plane in range(8 // bits):
            unpack_bytes(packed, row * width, width, plane * bits, mask, levels, plane * width)
    else:
        for plane in range(8 // bits):
            for i in range(width):
                levels[plane * width + i] = (packed[row, i] >> (plane * bits)) & mask


@compiled()
def top_of(codec: ResidualCodec) -> np.float32:
    """``codec.top`` in compiled code, which knows no properties."""
    return np.float32(TOP if codec.walks else (1 << codec.bits) - 1)


@compiled()
def steps_of(codec: ResidualCodec) -> Any:
    """``codec.steps`` in compiled code."""
    return codec.spread * (_DISTANCES[4 if codec.walks else codec.bits] / np.float32(2))


@compiled()
def round_to_bytes(vector: Array, steps: Array, out: Array) -> np.float32:
    """Make ``out`` (dim,) int8 the components of ``vector * steps``, to be multiplied with levels: in which unit."""
    largest = np.float32(1e-30)
    for d in range(vector.shape[0]):
        largest = max(largest, abs(vector[d] * steps[d]))
    unit = largest / np.float32(127)
    for d in range(vector.shape[0]):
        out[d] = np.int8(np.rint(vector[d] * steps[d] / unit))
    return unit


@compiled()
def read_row(packed: Array, scales: Array, codec: ResidualCodec, row: int, levels: Array) -> tuple[float, float]:
    """The scale and the gain of one vector, float32; ``levels`` (dim,) become its own."""
    half, number = 4 if codec.walks else 8, np.int64(scales[row])
    _unpack_row(packed, codec.bits, codec.walks, row, levels)
    scale = codec.ranges[0, 0] + codec.ranges[0, 1] * np.float32(number & ((1 << half) - 1))
    return scale, codec.ranges[1, 0] + codec.ranges[1, 1] * np.float32(number >> half)


@compiled(fastmath={"contract"})
def _decode(
    packed: Array, scales: Array, codes: Array, centroids: Array, codec: ResidualCodec, rows: Array, out: Array
) -> None:
    levels, top, steps = np.empty(centroids.shape[1], np.uint8), top_of(codec), steps_of(codec)
    for i in range(rows.shape[0]):
        scale, gain = read_row(packed, scales, codec, rows[i], levels)
        centroid, vector = centroids[codes[rows[i]]], out[i]
        for d in range(centroids.shape[1]):
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
