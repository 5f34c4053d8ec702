"""Train the residual codec on a sample and encode vectors with it; :mod:`.residuals` says what the numbers mean."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from colbert_prf.kernels.compiled import Array, compiled
from colbert_prf.kernels.residuals import LEVEL_DISTANCE, TOP, TRELLIS_BITS, ResidualCodec, levels_of, pack
from colbert_prf.kernels.trellis import best_path, best_paths_definition, levels_of_path, path_buffers

__all__ = ["encode", "encode_definition", "train"]

BITS = (2, 4)
GAIN_LOW, GAIN_STEP = np.float32(0.875), np.float32(1 / 512)
"""Where a gain has a byte. Where it has four bits, they reach over the gains of a sample."""
SMALLEST_GAIN_STEP = 1 / 256
GAIN_SAMPLE = 1 << 13
TOO_LONG = 4
"""Steps below the lowest gain: a vector so unlike the sample gets a smaller scale, for its length must not count."""
STRETCH = np.float32(1.05)
"""What the length of a residual is multiplied with to be the scale of a path. A path is shorter along the residual;
its products are nearest to what they should be with this factor, though the squared error is then larger by 1 %
(``docs/notes/engine.md``)."""
FARTHEST, FARTHEST_IN_TRELLIS = 1.5, 1.0
"""Length of the longest residual of a unit vector whose scale must be kept; a trellis makes good some of the rest."""
SMALLEST_SPREAD = 0.1
"""Of a dimension, as a part of the mean: where a sample does not vary, later vectors may."""
_TINY = np.float32(1e-12)
_BATCH = 1 << 16


def train(
    vectors: NDArray[np.float32], centroids: NDArray[np.float32], codes: NDArray[np.integer], bits: int
) -> ResidualCodec:
    """Fit the codec to a sample of vectors (num_vectors, dim), of which ``codes`` names the centroids.

    Scales reach the 99.9 % quantile and the residual of a vector far from every centroid: others may be unlike these.
    """
    if bits not in BITS:
        raise ValueError(f"bits must be one of {BITS}, found {bits}")

    def residuals() -> Iterator[NDArray[np.float32]]:
        for start in range(0, len(vectors), _BATCH):
            part = slice(start, start + _BATCH)
            yield vectors[part] - centroids[codes[part]]

    spread = np.sqrt(sum(np.square(part).sum(axis=0, dtype=np.float64) for part in residuals()) / len(vectors))
    spread = np.maximum(spread, max(float(spread.mean()) * SMALLEST_SPREAD, 1e-3)).astype(np.float32)
    lengths = np.concatenate([np.sqrt(np.mean(np.square(part / spread), axis=1)) for part in residuals()])
    shortest, longest = (float(quantile) for quantile in np.quantile(lengths, [0.001, 0.999]))
    if bits != TRELLIS_BITS:
        longest = max(1.05 * longest, FARTHEST / float(np.linalg.norm(spread)))
        return ResidualCodec(bits, spread, np.array([(0, longest / 255), (GAIN_LOW, GAIN_STEP)], np.float32))
    longest = max(longest, FARTHEST_IN_TRELLIS / float(np.linalg.norm(spread)))
    ranges = np.array([(shortest, (longest - shortest) / 15), (GAIN_LOW, GAIN_STEP)], np.float32)
    ranges[0] *= STRETCH
    codec, sample = ResidualCodec(bits, spread, ranges), slice(GAIN_SAMPLE)
    _, _, gains = _round(vectors[sample], centroids[codes[sample]], codec)
    low, high = np.quantile(gains, [0.001, 0.999])
    step = max((high - low) / 15, SMALLEST_GAIN_STEP)
    ranges[1] = (low + high - 15 * step) / 2, step
    return codec


def _round(
    vectors: NDArray[np.float32], centers: NDArray[np.float32], codec: ResidualCodec
) -> tuple[NDArray[np.uint8], NDArray[np.float32], NDArray[np.float32]]:
    """Packed residuals, scales in steps and exact gains of vectors (num_vectors, dim) with these centroids."""
    (low, step), has_paths = codec.ranges[0], codec.bits == TRELLIS_BITS
    residuals = vectors - centers
    normal = residuals / codec.spread
    lengths = np.sqrt(np.mean(np.square(normal), axis=1, keepdims=True))
    if has_paths:
        # The scale is rounded first, to four bits; the levels are then chosen for the rounded scale.
        scales = np.clip(np.rint((STRETCH * lengths[:, 0] - low) / step), 0, 15)
        lengths = (low + step * scales)[:, None] / STRETCH
    values = normal / np.maximum(lengths, _TINY) / LEVEL_DISTANCE + np.float32(TOP / 2)
    if has_paths:
        packed = best_paths_definition(values)
    else:
        packed = pack(np.clip(np.floor(values + np.float32(0.5)), 0, TOP).astype(np.uint8))
    decoded = (2 * levels_of(packed, codec).astype(np.float32) - TOP) * codec.steps
    if not has_paths:  # the least-squares factor
        scales = np.sum(residuals * decoded, axis=1) / np.sum(np.square(decoded), axis=1)
        scales = np.clip(np.rint((scales - low) / step), 0, 255)

    def gains() -> NDArray[np.float32]:
        lengths = np.linalg.norm(centers + (low + step * scales)[:, None] * decoded, axis=1)
        return np.asarray(np.linalg.norm(vectors, axis=1) / np.maximum(lengths, _TINY), dtype=np.float32)

    smallest = codec.ranges[1, 0] - TOO_LONG * codec.ranges[1, 1]
    while (is_too_long := (scales > 0) & (gains() < smallest)).any():
        scales = np.where(is_too_long, scales - 1, scales)
    return packed, scales, gains()


def encode_definition(
    vectors: NDArray[np.float32], centroids: NDArray[np.float32], codes: NDArray[np.integer], codec: ResidualCodec
) -> tuple[NDArray[np.uint8], NDArray[np.unsignedinteger]]:
    """The definition of :func:`encode` in NumPy."""
    packed, scales, gains = _round(vectors, centroids[codes], codec)
    low, step = codec.ranges[1]
    gains = np.clip(np.rint((gains - low) / step), 0, (1 << codec.scale_bits) - 1)
    return packed, (scales + gains * (1 << codec.scale_bits)).astype(codec.scale_dtype)


@compiled(fastmath=True)
def _gain(length: np.float32, center: Any, overlap: Any, energy: Any, scale: Any) -> Any:
    """|v| / |c + s·w|, of |v|², |c|², c·w, |w|² and s."""
    return np.sqrt(length) / np.sqrt(max(center + scale * (2 * overlap + scale * energy), np.float32(1e-24)))


@compiled(fastmath=True)
def _encode(
    vectors: Array, centroids: Array, codes: Array, codec: ResidualCodec,
    start: int, stop: int, packed: Array, scales: Array,
) -> None:  # fmt: skip
    (dim, width), half, top = (vectors.shape[1], packed.shape[1]), np.float32(0.5), np.float32(TOP)
    low, step = codec.ranges[0, 0], codec.ranges[0, 1]
    gain_low, gain_step = codec.ranges[1, 0], codec.ranges[1, 1]
    inverse, steps = 1 / codec.spread, codec.spread * (LEVEL_DISTANCE * half)
    residual, value, level = np.empty(dim, np.float32), np.empty(dim, np.float32), np.empty(dim, np.uint8)
    scale_bits, has_paths, buffers = 2 * codec.bits, codec.bits == TRELLIS_BITS, path_buffers(dim)
    largest = np.float32((1 << scale_bits) - 1)
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
        number = np.float32(np.int64(min(max((STRETCH * spread - low) / step, np.float32(0)) + half, largest)))
        factor = 1 / (max((low + step * number) / STRETCH if has_paths else spread, _TINY) * LEVEL_DISTANCE)
        for d in range(dim):
            value[d] = residual[d] * inverse[d] * factor + top * half
        if has_paths:
            best_path(value, buffers, packed[t])
            levels_of_path(packed[t], level)
        else:
            for d in range(dim):
                level[d] = np.uint8(min(max(value[d] + half, np.float32(0)), top))
            for i in range(width):
                packed[t, i] = level[i] | level[width + i] << 4
        projection, energy, overlap = np.float32(0), np.float32(0), np.float32(0)
        for d in range(dim):
            decoded = (2 * np.float32(level[d]) - top) * steps[d]
            projection += residual[d] * decoded
            energy += decoded * decoded
            overlap += centroid[d] * decoded
        if not has_paths:
            number = (projection / energy - low) / step
            number = np.float32(np.int64(min(max(number, np.float32(0)) + half, largest)))
        scale = low + step * number
        gain = (_gain(length, center, overlap, energy, scale) - gain_low) / gain_step
        while gain < -TOO_LONG and number > 0:
            number -= np.float32(1)
            gain = (_gain(length, center, overlap, energy, low + step * number) - gain_low) / gain_step
        gain = min(max(gain, np.float32(0)) + half, largest)
        scales[t] = np.int64(number) | np.int64(gain) << scale_bits


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
    _encode(vectors, centroids, codes, codec, start, stop, packed, scales)
