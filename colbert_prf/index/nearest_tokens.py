"""The tokens of the document vectors nearest to given vectors, F_t(υ, r) of the paper, in an index folder.

The codec's centroids near each vector are chosen, and all document vectors of any of these are compared as they are
stored. Nothing is kept between calls, and memory does not grow with the index: codes are read in blocks, one after the
other, and vectors are decoded in batches.
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
"""Centroids chosen for each vector; the document vectors of all are compared with every vector."""
REACH = 0.3
"""How much of its radius a centroid counts for: document vectors lie around it, so some are nearer than it is."""
CODES_AT_ONCE = 1 << 20
VECTORS_AT_ONCE = 1 << 15


def nearest_tokens(codec: Codec, segments: Sequence[Segment], vectors: Vectors, count: int) -> NearTokens:
    """Look up the ``count`` nearest document vectors of each of some vectors (num_vectors, dim)."""
    probed = probed_centroids(codec, vectors)
    shape = (len(vectors), count)
    near = NearTokens(np.full(shape, -1, np.int32), np.full(shape, -np.inf, np.float32))
    for segment in segments:
        for rows in _rows_with(segment, probed):
            near = _merged(near, vectors @ segment.decode_rows(rows).T, segment, rows)
    return near


def probed_centroids(codec: Codec, vectors: Vectors) -> npt.NDArray[np.bool_]:
    """Whether each centroid is among the :data:`PROBES` most promising ones of any vector, of shape (num_centroids,).

    A vector near υ need not have the centroid nearest to υ: a centroid c promises υ·c + REACH·|υ|·radius(c).
    """
    probed = np.ones(codec.num_centroids, np.bool_)
    if codec.num_centroids > PROBES:
        lengths = np.linalg.norm(vectors, axis=1)
        promises = codec.scores(vectors)[:, : len(vectors)] + REACH * codec.radii[:, np.newaxis] * lengths
        probed[:] = False
        probed[np.argpartition(-promises, PROBES, axis=0)[:PROBES]] = True
    return probed


def _rows_with(segment: Segment, probed: npt.NDArray[np.bool_]) -> Iterator[npt.NDArray[np.int64]]:
    """The vectors of live documents that have one of some centroids, ascending, some at a time."""
    codes, any_deleted = segment.columns["codes"], bool(segment.deleted.any())
    for start in range(0, len(codes), CODES_AT_ONCE):
        rows = np.flatnonzero(probed[codes[start : start + CODES_AT_ONCE]]) + start
        if any_deleted:
            rows = rows[~segment.deleted[np.searchsorted(segment.offsets, rows, side="right") - 1]]
        for first in range(0, len(rows), VECTORS_AT_ONCE):
            yield rows[first : first + VECTORS_AT_ONCE]


def _merged(near: NearTokens, products: Vectors, segment: Segment, rows: npt.NDArray[np.int64]) -> NearTokens:
    """Put some vectors among the nearest; of equals, those that are there already come first, then lower rows."""
    count = near.token_ids.shape[1]
    least = near.similarities[:, -1:]
    if np.isneginf(least).any() and products.shape[1] > count:
        least = np.maximum(least, np.partition(products, -count, axis=1)[:, -count, np.newaxis])
    hits = np.flatnonzero((products >= least).any(axis=0))
    if not len(hits):
        return near
    tokens = np.broadcast_to(segment.tokens(rows[hits]), (len(products), len(hits)))
    similarities = np.concatenate([near.similarities, products[:, hits]], axis=1)
    order = np.argsort(-similarities, axis=1, kind="stable")[:, :count]
    token_ids = np.take_along_axis(np.concatenate([near.token_ids, tokens], axis=1), order, axis=1)
    return NearTokens(token_ids, np.take_along_axis(similarities, order, axis=1))
