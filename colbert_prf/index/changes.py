"""What adding, merging and retraining write; the store publishes it."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from colbert_prf.encoder import Encoder
from colbert_prf.errors import InputError, OutgrownCodecWarning
from colbert_prf.index.batch import Batch, batches_of
from colbert_prf.index.codec import MAX_CENTROIDS, Codec, sample_size_for
from colbert_prf.index.manifest import Manifest, SegmentInfo
from colbert_prf.index.records import Record, encode_records
from colbert_prf.index.sampling import sample_vectors
from colbert_prf.index.segment import Segment
from colbert_prf.index.segment_writer import SEGMENT_VECTORS, compress, write_codec, write_segments
from colbert_prf.index.snapshot import Snapshot
from colbert_prf.storage.store import Store

__all__ = ["is_full", "merge_segments", "retrain_codec", "warn_if_outgrown", "write_records"]

OUTGROWN = 4
"""Times as many vectors as the codec was trained for, from which on a new one would have twice the centroids."""


def write_records(old: Snapshot, records: Iterable[Record], *, encoder: Encoder | None) -> list[SegmentInfo]:
    """Write documents as segments of the next generation; memory is bounded by a segment.

    Raises
    ------
    InputError
        If a document does not fit the index.
    """
    batches = batches_of(encode_records(records, encoder), old.manifest.settings)
    return _write(old, old.codec, (compress(batch, old.codec) for batch in batches))


def warn_if_outgrown(path: str | os.PathLike[str], manifest: Manifest) -> None:
    """Say so, to the caller of :meth:`Index.add`, when a codec serves far more vectors than it was trained for."""
    trained_for = max(manifest.codec.trained_for, 1)
    if manifest.num_vectors > OUTGROWN * trained_for and manifest.codec.num_centroids < MAX_CENTROIDS:
        warnings.warn(
            f"{os.fspath(path)} has {manifest.num_vectors:,} vectors, its codec was trained for {trained_for:,}: "
            "search gets slower and less precise; train a new one with merge(retrain=True)",
            OutgrownCodecWarning,
            stacklevel=4,
        )


def is_full(segment: Segment) -> bool:
    """Whether a segment is large enough to stay as it is."""
    return segment.info.num_vectors >= SEGMENT_VECTORS // 2


def merge_segments(old: Snapshot, segments: list[Segment], first: int) -> list[SegmentInfo]:
    """Write the live documents of some segments as new ones, numbered from ``first``; what is kept stays as it is."""
    return _write(old, old.codec, (batch for segment in segments for batch in segment.batches()), first=first)


def retrain_codec(store: Store[Snapshot], *, encoder: Encoder | None, seed: int = 0) -> None:
    """Train a codec for the documents there are now, and write everything again with it.

    Parameters
    ----------
    store
        Of the index.
    encoder
        Encode the kept texts again, as a fresh build would; None to compress the decoded vectors a second time, which
        is much faster and loses a little precision.
    seed
        Of the sample and of k-means.
    """
    with store.changing("merge") as old:
        if encoder is not None and not old.manifest.settings.texts:
            raise InputError(f"{store.layout.path} keeps no texts to encode again; merge without reencode=True")
        for segment in old.segments:
            segment.check()
        settings, num_vectors = old.manifest.settings, old.manifest.num_vectors
        sample = sample_vectors(old.segments, sample_size_for(num_vectors, settings.bits), dim=settings.dim, seed=seed)
        codec = Codec.train(sample, num_vectors_expected=num_vectors, bits=settings.bits, seed=seed)
        info = write_codec(store.layout, codec, generation=old.manifest.generation + 1)
        stored = batches_of(_encoded_again(old, encoder), settings) if encoder else _decoded(old)
        written = _write(old, codec, (compress(batch, codec) for batch in stored))
        store.publish(old.manifest.next(segments=tuple(written), codec=info))


def _write(old: Snapshot, codec: Codec, batches: Iterable[Batch], *, first: int = 0) -> list[SegmentInfo]:
    generation = old.manifest.generation + 1
    return list(write_segments(old.layout, old.manifest.settings, codec, batches, generation=generation, first=first))


def _decoded(old: Snapshot) -> Iterator[Batch]:
    for segment in old.segments:
        for batch in segment.batches():
            yield replace(batch, columns={"vectors": old.codec.decode(batch.columns).astype(np.float16)})


def _encoded_again(old: Snapshot, encoder: Encoder) -> Iterator[Record]:
    live = np.flatnonzero(old.live).tolist()
    return encode_records((Record(old.doc_id(p), None, old.text(p), old.metadata(p)) for p in live), encoder)
