"""Adding, merging and retraining: they write segments, which :class:`Store` publishes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from colbert_prf.encoder import Encoder
from colbert_prf.errors import InputError
from colbert_prf.index.batch import Batch, batches_of
from colbert_prf.index.codec import Codec, sample_size_for
from colbert_prf.index.documents import Document, encode_documents
from colbert_prf.index.manifest import SegmentInfo
from colbert_prf.index.sampling import sample_vectors
from colbert_prf.index.segment import Segment
from colbert_prf.index.segment_writer import SEGMENT_VECTORS, compress, write_codec, write_segments
from colbert_prf.index.snapshot import Snapshot
from colbert_prf.storage.store import Store

__all__ = ["is_full", "merge_segments", "retrain_codec", "write_documents"]


def write_documents(snapshot: Snapshot, documents: Iterable[Document], *, encoder: Encoder | None) -> list[SegmentInfo]:
    """Write documents as segments of the next generation, in memory bounded by a segment.

    Raises
    ------
    InputError
        If a document does not fit the index.
    """
    batches = batches_of(encode_documents(documents, encoder), snapshot.manifest.settings)
    return _write(snapshot, snapshot.codec, (compress(batch, snapshot.codec) for batch in batches))


def is_full(segment: Segment) -> bool:
    """Tell whether a segment is large enough to stay as it is in a merge."""
    return segment.info.num_vectors >= SEGMENT_VECTORS // 2


def merge_segments(snapshot: Snapshot, segments: list[Segment], first: int) -> list[SegmentInfo]:
    """Write the live documents of some segments, unchanged, as new segments numbered from ``first``."""
    batches = (batch for segment in segments for batch in segment.batches())
    return _write(snapshot, snapshot.codec, batches, first=first)


def retrain_codec(store: Store[Snapshot], *, encoder: Encoder | None, seed: int = 0) -> None:
    """Train a codec for the present documents, and write all of them again with it.

    Parameters
    ----------
    store
        The store of the index.
    encoder
        Encodes the stored texts again, as a fresh build would. None compresses the decoded vectors a second time,
        which is much faster and loses a little precision.
    seed
        The seed of the sample and of k-means.
    """
    with store.changing("merge") as snapshot:
        settings, num_vectors = snapshot.manifest.settings, snapshot.manifest.num_vectors
        if encoder is not None and not settings.texts:
            raise InputError(f"{store.layout.path} keeps no texts to encode again; merge without reencode=True")
        for segment in snapshot.segments:
            segment.check()
        sample_size = sample_size_for(num_vectors, settings.bits)
        sample = sample_vectors(snapshot.segments, sample_size, dim=settings.dim, seed=seed)
        codec = Codec.train(sample, num_vectors_expected=num_vectors, bits=settings.bits, seed=seed)
        info = write_codec(store.layout, codec, generation=snapshot.manifest.generation + 1)
        batches = batches_of(_reencoded(snapshot, encoder), settings) if encoder else _decoded(snapshot)
        segments = _write(snapshot, codec, (compress(batch, codec) for batch in batches))
        store.publish(snapshot.manifest.next(segments=tuple(segments), codec=info))


def _write(snapshot: Snapshot, codec: Codec, batches: Iterable[Batch], *, first: int = 0) -> list[SegmentInfo]:
    manifest, generation = snapshot.manifest, snapshot.manifest.generation + 1
    return list(write_segments(snapshot.layout, manifest.settings, codec, batches, generation=generation, first=first))


def _decoded(snapshot: Snapshot) -> Iterator[Batch]:
    for segment in snapshot.segments:
        for batch in segment.batches():
            yield replace(batch, columns={"vectors": snapshot.codec.decode(batch.columns).astype(np.float16)})


def _reencoded(snapshot: Snapshot, encoder: Encoder) -> Iterator[Document]:
    documents = (
        Document(snapshot.doc_id(position), None, snapshot.text(position), snapshot.metadata(position))
        for position in np.flatnonzero(snapshot.live).tolist()
    )
    return encode_documents(documents, encoder)
