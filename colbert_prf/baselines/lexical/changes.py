"""Creating, adding, deleting, merging and following: each writes new files beside the old and then one new manifest."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from colbert_prf.baselines.lexical.manifest import AnalyzerInfo, Deleted, LexicalManifest, LexicalSegmentInfo
from colbert_prf.baselines.lexical.segment_writer import Entry, write_lexical_segments
from colbert_prf.baselines.lexical.snapshot import LexicalSnapshot
from colbert_prf.errors import InputError, StorageError
from colbert_prf.index.snapshot import Snapshot
from colbert_prf.storage.arrays import write_array
from colbert_prf.storage.durable import sync_folder
from colbert_prf.storage.files import storage_errors
from colbert_prf.storage.identifiers import SeenIds
from colbert_prf.storage.layout import IndexLayout
from colbert_prf.storage.lock import writing

__all__ = [
    "add_entries",
    "create_lexical",
    "delete_positions",
    "follow_index",
    "merge_lexical",
    "text_checksum",
]

Texts = Iterable[tuple[str, str]]


def text_checksum(text: str) -> int:
    """What tells a changed text from the same one."""
    return zlib.crc32(text.encode("utf-8", "surrogatepass"))


def create_lexical(layout: IndexLayout, entries: Iterable[Entry], analyzer: AnalyzerInfo, *, texts: bool) -> None:
    """Write a lexical index; its manifest appears when everything else is on the disk."""
    with storage_errors(layout.path, "create"):
        _require_empty(layout)
        layout.path.mkdir(parents=True, exist_ok=True)
    with writing(layout, "create"):
        _require_empty(layout)  # another writer may just have finished
        layout.remove_unused([])  # what a writer that failed left
        written = write_lexical_segments(layout, _fresh(entries, None), generation=1, texts=texts)
        if not written:
            raise InputError("a lexical index needs at least one document, found none")
        _publish(layout, LexicalManifest(1, analyzer, texts, tuple(written)))


def _require_empty(layout: IndexLayout) -> None:
    if layout.manifest.exists() or layout.foreign():
        message = "the folder is not empty; open the lexical index in it, or give a new folder"
        raise StorageError(message, path=layout.path)


def add_entries(layout: IndexLayout, entries: Iterable[Entry]) -> None:
    """Add documents as new segments, all of them or none."""
    with writing(layout, "add"):
        old = _newest(layout)
        manifest = old.manifest
        generation = manifest.generation + 1
        written = write_lexical_segments(layout, _fresh(entries, old), generation=generation, texts=manifest.texts)
        if written:
            segments = (*manifest.segments, *written)
            _publish(layout, replace(manifest, generation=generation, segments=segments, follows=None))


def delete_positions(layout: IndexLayout, choose: Callable[[LexicalSnapshot], npt.NDArray[np.int64]]) -> None:
    """Delete the documents at the positions chosen from the newest generation."""
    with writing(layout, "delete"):
        old = _newest(layout)
        gone = np.zeros(old.num_positions, dtype=np.bool_)
        gone[choose(old)] = True
        if gone.any():
            generation = old.manifest.generation + 1
            segments = tuple(_without(layout, old, gone, generation))
            _publish(layout, replace(old.manifest, generation=generation, segments=segments, follows=None))


def merge_lexical(layout: IndexLayout) -> None:
    """Write all live documents anew, in their order."""
    with writing(layout, "merge"):
        old = _newest(layout)
        if len(old.segments) < 2 and old.live.all():
            return
        for segment in old.segments:
            segment.check(layout)
        generation = old.manifest.generation + 1
        written = write_lexical_segments(layout, _stored(old), generation=generation, texts=old.manifest.texts)
        _publish(layout, replace(old.manifest, generation=generation, segments=tuple(written)))


def follow_index(
    layout: IndexLayout,
    vectors: Snapshot,
    entries: Callable[[Texts], Iterator[Entry]],
    analyzer: AnalyzerInfo,
) -> None:
    """Make the documents of a lexical index those of a vector index, from the texts it keeps.

    Parameters
    ----------
    layout
        Of the lexical index, which need not be there.
    vectors
        The generation to follow.
    entries
        Makes entries of pairs of id and text.
    analyzer
        Of these entries; a lexical index made with another is made anew.
    """
    follows = vectors.manifest.generation
    if layout.manifest.is_file():
        manifest = LexicalManifest.read(layout.manifest)
        if manifest.follows == follows and manifest.analyzer == analyzer:
            return
    if not vectors.manifest.settings.texts:
        raise InputError(
            f"{vectors.layout.path} keeps no texts to index as terms; make a lexical index from the corpus with "
            "LexicalIndex.create"
        )
    with storage_errors(layout.path, "follow"):
        layout.path.mkdir(parents=True, exist_ok=True)
    with writing(layout, "follow"):
        old = _newest(layout) if layout.manifest.is_file() else None
        manifest = old.manifest if old is not None else LexicalManifest(0, analyzer, False, ())
        generation = manifest.generation + 1
        known = old if manifest.analyzer == analyzer else None
        same = np.zeros(old.num_positions if old is not None else 0, dtype=np.bool_)
        if old is None:
            layout.remove_unused([])  # what a writer that was killed left
        written = write_lexical_segments(
            layout, entries(_missing(vectors, known, same)), generation=generation, texts=False
        )
        kept = _without(layout, old, old.live & ~same, generation) if old is not None else []
        segments = (*(info for info in kept if not _is_empty(info)), *written)
        _publish(layout, LexicalManifest(generation, analyzer, False, segments, follows))


def _missing(
    vectors: Snapshot, known: LexicalSnapshot | None, same: npt.NDArray[np.bool_]
) -> Iterator[tuple[str, str]]:
    """Documents of the vector index that are not in the lexical one as they are; ``same`` learns which are."""
    for position in np.flatnonzero(vectors.live).tolist():
        doc_id, text = vectors.doc_id(position), vectors.text(position) or ""
        place = known.find(doc_id) if known is not None else None
        if known is not None and place is not None:
            segment, inside = known.place(place)
            if int(segment.checksums[inside]) == text_checksum(text):
                same[place] = True
                continue
        yield doc_id, text


def _fresh(entries: Iterable[Entry], old: LexicalSnapshot | None) -> Iterator[Entry]:
    """Pass entries on, and refuse an id that is not new."""
    seen = SeenIds()
    for entry in entries:
        if (old is not None and old.find(entry.doc_id) is not None) or not seen.add(entry.doc_id):
            raise InputError(
                f"the document id {entry.doc_id!r} was given twice or is in the index already; ids must differ: to "
                "replace a document, delete it first"
            )
        yield entry


def _stored(old: LexicalSnapshot) -> Iterator[Entry]:
    """The live documents of a generation, as they are."""
    for segment in old.segments:
        for place in np.flatnonzero(~segment.deleted).tolist():
            checksum = int(segment.checksums[place])
            yield Entry(segment.doc_ids[place], segment.term_frequencies(place), checksum, segment.text(place))


def _without(
    layout: IndexLayout, old: LexicalSnapshot, gone: npt.NDArray[np.bool_], generation: int
) -> list[LexicalSegmentInfo]:
    """The segments of a generation with more documents deleted."""
    name = layout.deletions_name(generation)
    folder = layout.folder(name)
    infos = []
    for start, segment in zip(old.starts, old.segments, strict=False):
        here = gone[start : start + len(segment)]
        info = segment.info
        if here.any():
            folder.mkdir(exist_ok=True)
            deleted = here | segment.deleted
            written = write_array(layout.array(folder, info.name), np.packbits(deleted))
            info = replace(info, deletions=Deleted(name, int(deleted.sum()), {"deleted": written}))
        infos.append(info)
    if folder.is_dir():
        sync_folder(folder)
    return infos


def _is_empty(info: LexicalSegmentInfo) -> bool:
    return info.deletions is not None and info.deletions.num_documents == info.num_documents


def _newest(layout: IndexLayout) -> LexicalSnapshot:
    """Open the newest generation, under the lock, and clear away what a killed writer left."""
    newest = LexicalSnapshot.open(layout)
    layout.remove_unused(newest.manifest.folders)
    return newest


def _publish(layout: IndexLayout, manifest: LexicalManifest) -> None:
    sync_folder(layout.path)
    manifest.write(layout.manifest)
    layout.remove_unused(manifest.folders)
