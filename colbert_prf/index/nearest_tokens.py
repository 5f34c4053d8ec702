"""F_t(υ, r) of the paper in an index folder: the tokens of the r document vectors nearest to a vector.

The search chooses the codec's centroids near each vector, and compares all document vectors of these centroids as they
are stored. It keeps nothing between calls, and its memory does not grow with the index: it reads codes in blocks and
decodes vectors in batches.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from colbert_prf.index.codec import Codec
from colbert_prf.index.collection import NearTokens
from colbert_prf.index.segment import Segment
from colbert_prf.types import Vectors

__all__ = ["nearest_tokens"]

PROBES = 32
"""Centroids chosen for each vector; document vectors of every chosen centroid are compared with all vectors."""
REACH = 0.3
"""The part of a centroid's radius by which its upper bound exceeds its own score; document vectors lie around it."""
CODES_AT_ONCE = 1 << 20
VECTORS_AT_ONCE = 1 << 15


def nearest_tokens(codec: Codec, segments: Sequence[Segment], vectors: Vectors, count: int) -> NearTokens:
    """Find the tokens of the ``count`` document vectors nearest to each vector (num_vectors, dim)."""
    probed = probed_centroids(codec, vectors)
    shape = (len(vectors), count)
    near = NearTokens(np.full(shape, -1, np.int32), np.full(shape, -np.inf, np.float32))
    for segment in segments:
        for rows in _probed_rows(segment, probed):
            near = _merge(near, vectors @ segment.decode_rows(rows).T, segment, rows)
    return near


def probed_centroids(codec: Codec, vectors: Vectors) -> npt.NDArray[np.bool_]:
    """Choose the :data:`PROBES` centroids of the highest bounds for each vector; a mask of shape (num_centroids,).

    A vector near υ need not have the centroid nearest to υ, so the bound of a centroid c is υ·c + REACH·|υ|·radius(c).
    """
    probed = np.ones(codec.num_centroids, np.bool_)
    if codec.num_centroids > PROBES:
        lengths = np.linalg.norm(vectors, axis=1)
        bounds = codec.scores(vectors)[:, : len(vectors)] + REACH * codec.radii[:, np.newaxis] * lengths
        probed[:] = False
        probed[np.argpartition(-bounds, PROBES, axis=0)[:PROBES]] = True
    return probed


def _probed_rows(segment: Segment, probed: npt.NDArray[np.bool_]) -> Iterator[npt.NDArray[np.int64]]:
    """Yield the rows of the live document vectors of the probed centroids, ascending, in batches."""
    codes, any_deleted = segment.columns["codes"], bool(segment.deleted.any())
    for start in range(0, len(codes), CODES_AT_ONCE):
        rows = np.flatnonzero(probed[codes[start : start + CODES_AT_ONCE]]) + start
        if any_deleted:
            rows = rows[~segment.deleted[np.searchsorted(segment.offsets, rows, side="right") - 1]]
        for first in range(0, len(rows), VECTORS_AT_ONCE):
            yield rows[first : first + VECTORS_AT_ONCE]


def _merge(near: NearTokens, products: Vectors, segment: Segment, rows: npt.NDArray[np.int64]) -> NearTokens:
    """Merge more document vectors into the nearest; equally near ones keep their order, then come lower rows."""
    count = near.token_ids.shape[1]
    threshold = near.similarities[:, -1:]
    if np.isneginf(threshold).any() and products.shape[1] > count:
        threshold = np.maximum(threshold, np.partition(products, -count, axis=1)[:, -count, np.newaxis])
    columns = np.flatnonzero((products >= threshold).any(axis=0))
    if not len(columns):
        return near
    tokens = np.broadcast_to(segment.tokens(rows[columns]), (len(products), len(columns)))
    similarities = np.concatenate([near.similarities, products[:, columns]], axis=1)
    order = np.argsort(-similarities, axis=1, kind="stable")[:, :count]
    token_ids = np.take_along_axis(np.concatenate([near.token_ids, tokens], axis=1), order, axis=1)
    return NearTokens(token_ids, np.take_along_axis(similarities, order, axis=1))
