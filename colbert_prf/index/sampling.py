"""Drawing the vectors a codec is trained on."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from colbert_prf.index.segment import Segment
from colbert_prf.storage.arrays import rows_of
from colbert_prf.types import Vectors

__all__ = ["sample_vectors"]


def sample_vectors(segments: Sequence[Segment], size: int, *, dim: int, seed: int) -> Vectors:
    """Draw whole documents at random, without replacement, until there are enough vectors.

    Parameters
    ----------
    segments
        Segments, or chunks of the spool; their deleted documents are left out.
    size
        How many vectors; fewer come back only if there are fewer.
    dim
        Components of a vector.
    seed
        Of the draw.

    Returns
    -------
    sample
        Float32 of shape (at most size, dim).
    """
    lengths = np.concatenate([np.empty(0, np.int64), *(np.diff(segment.offsets) for segment in segments)])
    live = np.flatnonzero(~np.concatenate([np.empty(0, np.bool_), *(segment.deleted for segment in segments)]))
    drawn = np.random.default_rng(seed).permutation(live)
    enough = int(np.searchsorted(np.cumsum(lengths[drawn]), size)) + 1
    chosen = np.sort(drawn[:enough])
    sample = np.empty((min(size, int(lengths[chosen].sum())), dim), dtype=np.float32)
    filled = first = 0
    for segment in segments:
        within = chosen[(chosen >= first) & (chosen < first + len(segment))] - first
        rows = rows_of(segment.offsets[within], np.diff(segment.offsets)[within])[: len(sample) - filled]
        sample[filled : filled + len(rows)] = segment.decode_rows(rows)
        filled += len(rows)
        first += len(segment)
    return sample
