"""How well a codec fits vectors it was not trained on."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence

import numpy as np

from colbert_prf.errors import OutgrownCodecWarning
from colbert_prf.index.codec import Codec
from colbert_prf.index.segment import Segment

__all__ = ["distance_ratio", "warn_if_unfit"]

UNFIT = 1.2
"""Times as far from its centroid as the codec's training vectors; others of one collection are at 1.03 to 1.07."""
SAMPLE = 4096
FEWEST_VECTORS = 500
"""Fewer vectors tell little."""
FEWEST_OF_A_CENTROID = 20
"""Training vectors of a centroid, below which it lies so near to them that any other vector is far."""


def distance_ratio(segments: Sequence[Segment], codec: Codec) -> float:
    """How far the vectors of some segments are from their centroids, in units of the distance in training.

    Both are root mean squares, over at most 4,096 vectors of each segment. 1 where there are no vectors.
    """
    squares = expected = 0.0
    for segment in segments:
        rows = np.unique(np.linspace(0, max(0, segment.info.num_vectors - 1), SAMPLE).astype(np.int64))
        if not segment.info.num_vectors:
            continue
        codes = segment.columns["codes"][rows]
        away = segment.decode_rows(rows) - codec.centroids[codes][:, : codec.dim]
        squares += float(np.square(away).sum())
        expected += float(np.square(codec.radii[codes]).sum())
    return (squares / expected) ** 0.5 if expected else 1.0


def warn_if_unfit(path: str | os.PathLike[str], added: Sequence[Segment], codec: Codec) -> None:
    """Say so, to the caller's caller, when vectors just added are unlike those the codec was trained on."""
    num_vectors = sum(segment.info.num_vectors for segment in added)
    if num_vectors < FEWEST_VECTORS or codec.trained_for < FEWEST_OF_A_CENTROID * codec.num_centroids:
        return
    if (ratio := distance_ratio(added, codec)) > UNFIT:
        warnings.warn(
            f"vectors added to {os.fspath(path)} are {ratio:.1f} times as far from their centroids as those its codec "
            "was trained on: searches for them are slower and less precise; train another with merge(retrain=True)",
            OutgrownCodecWarning,
            stacklevel=4,
        )
