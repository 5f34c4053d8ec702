"""Whether the codec still fits an index that has grown: by the number of its vectors, and by their distances."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence

import numpy as np

from colbert_prf.errors import OutgrownCodecWarning
from colbert_prf.index.codec import MAX_CENTROIDS, Codec
from colbert_prf.index.manifest import Manifest
from colbert_prf.index.segment import Segment

__all__ = ["distance_ratio", "warn_if_outgrown", "warn_if_unfit"]

OUTGROWN = 4
"""From this many times the vectors that the codec was trained for, a new codec would have twice the centroids."""
UNFIT = 1.2
"""A :func:`distance_ratio` above this is a misfit; vectors of the same collection have 1.03 to 1.07."""
SAMPLE_SIZE = 4096
MIN_VECTORS = 500
"""Fewer added vectors tell little."""
MIN_VECTORS_PER_CENTROID = 20
"""With fewer training vectors, centroids are so near to these that all other vectors are far."""


def warn_if_outgrown(path: str | os.PathLike[str], manifest: Manifest) -> None:
    """Warn the caller of :meth:`Index.add` when a codec serves far more vectors than it was trained for."""
    trained_for = max(manifest.codec.trained_for, 1)
    if manifest.num_vectors > OUTGROWN * trained_for and manifest.codec.num_centroids < MAX_CENTROIDS:
        warnings.warn(
            f"{os.fspath(path)} has {manifest.num_vectors:,} vectors, its codec was trained for {trained_for:,}: "
            "search gets slower and less precise; train a new one with merge(retrain=True)",
            OutgrownCodecWarning,
            stacklevel=4,
        )


def warn_if_unfit(path: str | os.PathLike[str], segments: Sequence[Segment], codec: Codec) -> None:
    """Warn the caller of :meth:`Index.add` when the added segments are unlike the training vectors of the codec."""
    num_vectors = sum(segment.info.num_vectors for segment in segments)
    if num_vectors < MIN_VECTORS or codec.trained_for < MIN_VECTORS_PER_CENTROID * codec.num_centroids:
        return
    if (ratio := distance_ratio(segments, codec)) > UNFIT:
        warnings.warn(
            f"vectors added to {os.fspath(path)} are {ratio:.1f} times as far from their centroids as those its codec "
            "was trained on: searches for them are slower and less precise; train another with merge(retrain=True)",
            OutgrownCodecWarning,
            stacklevel=4,
        )


def distance_ratio(segments: Sequence[Segment], codec: Codec) -> float:
    """Compare the distances of vectors to their centroids with those in training: their ratio, 1 without vectors.

    Both distances are root mean squares, over at most 4,096 vectors of each segment.
    """
    squares = expected_squares = 0.0
    for segment in segments:
        rows = np.unique(np.linspace(0, max(0, segment.info.num_vectors - 1), SAMPLE_SIZE).astype(np.int64))
        if not segment.info.num_vectors:
            continue
        codes = segment.columns["codes"][rows]
        residuals = segment.decode_rows(rows) - codec.centroids[codes][:, : codec.dim]
        squares += float(np.square(residuals).sum())
        expected_squares += float(np.square(codec.radii[codes]).sum())
    return (squares / expected_squares) ** 0.5 if expected_squares else 1.0
