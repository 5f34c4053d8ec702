"""Adding, deleting and merging: each writes new files beside the old and then one new manifest."""

from __future__ import annotations

import os
import shutil
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import groupby

import numpy as np

from colbert_prf.encoder import Encoder
from colbert_prf.errors import InputError, OutgrownCodecWarning
from colbert_prf.index.batch import Batch, Record, batches_of
from colbert_prf.index.codec import MAX_CENTROIDS, Codec, sample_size_for
from colbert_prf.index.deletions import write_deletions
from colbert_prf.index.manifest import Manifest, SegmentInfo
from colbert_prf.index.records import Item, encode_items, refuse_known
from colbert_prf.index.sampling import sample_vectors
from colbert_prf.index.segment import Segment
from colbert_prf.index.segments_writer import SEGMENT_VECTORS, compress, write_codec, write_segments
from colbert_prf.index.snapshot import Snapshot
from colbert_prf.index.verification import check_segment
from colbert_prf.storage.durable import sync_folder
from colbert_prf.storage.files import refuse_link
from colbert_prf.storage.identifiers import SeenIds
from colbert_prf.storage.layout import IndexLayout
from colbert_prf.storage.lock import writing

__all__ = ["add_items", "delete_documents", "merge_segments", "retrain_codec", "warn_if_outgrown"]

OUTGROWN = 4
"""Times as many vectors as the codec was trained for, from which on a new one would have twice the centroids."""


def add_items(layout: IndexLayout, items: Iterable[Item], *, encoder: Encoder | None) -> None:
    """Add documents as new segments, all of them or none; memory is bounded by a segment.

    Raises
    ------
    InputError
        If an id is in the index or given twice, or a document does not fit.
    """
    with writing(layout, "add"):
        old = _newest(layout)
        seen = SeenIds()
        fresh = refuse_known(items, lambda doc_id: old.find(doc_id) is None and seen.add(doc_id))
        batches = batches_of(encode_items(fresh, encoder), old.manifest.settings)
        written = _write(old, old.codec, (compress(batch, old.codec) for batch in batches))
        if written:
            _publish(layout, old.manifest.next(segments=(*old.manifest.segments, *written)))


def warn_if_outgrown(path: str | os.PathLike[str], manifest: Manifest) -> None:
    """Say so, to the caller's caller, when a codec has far more vectors to serve than it was trained for."""
    trained_for = max(manifest.codec.trained_for, 1)
    if manifest.num_vectors > OUTGROWN * trained_for and manifest.codec.num_centroids < MAX_CENTROIDS:
        warnings.warn(
            f"{os.fspath(path)} has {manifest.num_vectors:,} vectors, its codec was trained for {trained_for:,}: "
            "search gets slower and less precise; train a new one with merge(retrain=True)",
            OutgrownCodecWarning,
            stacklevel=3,
        )


def delete_documents(layout: IndexLayout, doc_ids: Iterable[str]) -> None:
    """Delete documents, all of them or none.

    Raises
    ------
    InputError
        If the index has no such document.
    """
    with writing(layout, "delete"):
        old = _newest(layout)
        gone = np.zeros(int(old.starts[-1]), dtype=np.bool_)
        gone[old.positions(doc_ids)] = True
        if not gone.any():
            return
        generation = old.manifest.generation + 1
        folder = layout.folder(layout.deletions_name(generation))
        folder.mkdir()
        infos = []
        for start, segment in zip(old.starts, old.segments, strict=False):
            here = gone[start : start + len(segment)]
            info = segment.info
            if here.any():
                size = old.manifest.settings.vocabulary_size
                all_deleted = here | segment.deleted
                deletions = write_deletions(layout, segment, all_deleted, generation=generation, vocabulary_size=size)
                info = replace(info, deletions=deletions)
            infos.append(info)
        sync_folder(folder)
        _publish(layout, old.manifest.next(segments=tuple(infos)))


def merge_segments(layout: IndexLayout) -> None:
    """Drop deleted documents and join small segments; a full segment without deletions stays as it is."""
    with writing(layout, "merge"):
        old = _newest(layout)
        segments: list[SegmentInfo] = []
        number = 0
        for stays, group in groupby(old.segments, _stays):
            members = list(group)
            if stays or (len(members) == 1 and not members[0].info.deletions):
                segments += [member.info for member in members]
                continue
            for member in members:
                check_segment(member, layout)
            written = _write(old, old.codec, (batch for member in members for batch in member.batches()), first=number)
            segments += written
            number += len(written)
        if tuple(segments) != old.manifest.segments:
            _publish(layout, old.manifest.next(segments=tuple(segments)))


def retrain_codec(layout: IndexLayout, *, encoder: Encoder | None, seed: int = 0) -> None:
    """Train a codec for the documents there are now, and write everything anew with it.

    Parameters
    ----------
    layout
        Of the index.
    encoder
        Encode the kept texts again, as a fresh build would; None to compress the decoded vectors a second time, which
        is much faster and loses a little precision.
    seed
        Of the sample and of k-means.
    """
    with writing(layout, "merge"):
        old = _newest(layout)
        if encoder is not None and not old.manifest.settings.texts:
            raise InputError(f"{layout.path} keeps no texts to encode again; merge without reencode=True")
        for segment in old.segments:
            check_segment(segment, layout)
        settings, num_vectors = old.manifest.settings, old.manifest.num_vectors
        sample = sample_vectors(old.segments, sample_size_for(num_vectors, settings.bits), dim=settings.dim, seed=seed)
        codec = Codec.train(sample, num_vectors_expected=num_vectors, bits=settings.bits, seed=seed)
        info = write_codec(layout, codec, generation=old.manifest.generation + 1)
        stored = batches_of(_encoded_again(old, encoder), settings) if encoder else _decoded(old)
        written = _write(old, codec, (compress(batch, codec) for batch in stored))
        _publish(layout, old.manifest.next(segments=tuple(written), codec=info))


def _newest(layout: IndexLayout) -> Snapshot:
    """Open the newest generation, under the lock, and clear away what a killed writer left."""
    newest = Snapshot.open(layout)
    layout.remove_unused(newest.manifest.folders)
    refuse_link(layout.building)
    if layout.building.exists():
        shutil.rmtree(layout.building)
    return newest


def _write(old: Snapshot, codec: Codec, batches: Iterable[Batch], *, first: int = 0) -> list[SegmentInfo]:
    generation = old.manifest.generation + 1
    return list(write_segments(old.layout, old.manifest.settings, codec, batches, generation=generation, first=first))


def _publish(layout: IndexLayout, manifest: Manifest) -> None:
    sync_folder(layout.path)
    manifest.write(layout.manifest)
    layout.remove_unused(manifest.folders)


def _stays(segment: Segment) -> bool:
    return segment.info.deletions is None and segment.info.num_vectors >= SEGMENT_VECTORS // 2


def _decoded(old: Snapshot) -> Iterator[Batch]:
    for segment in old.segments:
        for batch in segment.batches():
            yield replace(batch, columns={"vectors": old.codec.decode(batch.columns).astype(np.float16)})


def _encoded_again(old: Snapshot, encoder: Encoder) -> Iterator[Record]:
    live = np.flatnonzero(old.live)
    items = (Item(old.doc_id(int(p)), None, old.text(int(p)), old.metadata(int(p))) for p in live)
    return encode_items(items, encoder)
