"""The sample of vectors that a codec is trained on."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from colbert_prf.index.segment import Segment
from colbert_prf.storage.arrays import expand_ranges
from colbert_prf.types import Vectors

__all__ = ["sample_vectors"]


def sample_vectors(segments: Sequence[Segment], size: int, *, dim: int, seed: int) -> Vectors:
    """Draw whole documents at random, without replacement, until they have enough vectors.

    Parameters
    ----------
    segments
        Segments, or chunks of the spool; their deleted documents are left out.
    size
        The number of vectors; the sample is smaller only if there are fewer.
    dim
        Components of a vector.
    seed
        The seed of the draw.

    Returns
    -------
    sample
        Float32 of shape (at most size, dim).
    """
    lengths = np.concatenate([np.empty(0, np.int64), *(np.diff(segment.offsets) for segment in segments)])
    live = np.flatnonzero(~np.concatenate([np.empty(0, np.bool_), *(segment.deleted for segment in segments)]))
    drawn = np.random.default_rng(seed).permutation(live)
    num_drawn = int(np.searchsorted(np.cumsum(lengths[drawn]), size)) + 1
    positions = np.sort(drawn[:num_drawn])
    sample = np.empty((min(size, int(lengths[positions].sum())), dim), dtype=np.float32)
    num_sampled = first = 0
    for segment in segments:
        local = positions[(positions >= first) & (positions < first + len(segment))] - first
        rows = expand_ranges(segment.offsets[local], np.diff(segment.offsets)[local])[: len(sample) - num_sampled]
        sample[num_sampled : num_sampled + len(rows)] = segment.decode_rows(rows)
        num_sampled += len(rows)
        first += len(segment)
    return sample
