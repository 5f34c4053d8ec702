"""What adding, merging and following a vector index write; the store publishes it."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from colbert_prf.baselines.lexical.manifest import AnalyzerInfo, LexicalManifest
from colbert_prf.baselines.lexical.segment import LexicalSegment
from colbert_prf.baselines.lexical.segment_writer import Entry, write_lexical_segments
from colbert_prf.baselines.lexical.snapshot import LexicalSnapshot
from colbert_prf.errors import InputError
from colbert_prf.index.documents import TextDocuments
from colbert_prf.index.snapshot import Snapshot
from colbert_prf.storage.files import storage_errors
from colbert_prf.storage.manifest import SegmentInfo
from colbert_prf.storage.metadata import metadata_json
from colbert_prf.storage.store import Store

__all__ = ["follow_index", "merge_segments", "text_checksum", "write_entries"]


def text_checksum(text: str, metadata: bytes = b"") -> int:
    """What tells a document with changed text or metadata from the same one."""
    return zlib.crc32(metadata, zlib.crc32(text.encode("utf-8", "surrogatepass")))


def write_entries(old: LexicalSnapshot, entries: Iterable[Entry], *, first: int = 0) -> list[SegmentInfo]:
    """Write documents as segments of the next generation, numbered from ``first``."""
    manifest = old.manifest
    generation = manifest.generation + 1
    return write_lexical_segments(old.layout, entries, generation=generation, texts=manifest.texts, first=first)


def merge_segments(old: LexicalSnapshot, segments: list[LexicalSegment], first: int) -> list[SegmentInfo]:
    """Write the live documents of some segments again, in their order."""
    return write_entries(old, _stored(segments), first=first)


def follow_index(
    store: Store[LexicalSnapshot],
    vectors: Snapshot,
    entries: Callable[[TextDocuments], Iterator[Entry]],
    analyzer: AnalyzerInfo,
) -> None:
    """Make the documents of a lexical index those of a vector index, from the texts it keeps.

    Parameters
    ----------
    store
        Of the lexical index, which need not be there.
    vectors
        The generation to follow.
    entries
        Makes entries of documents.
    analyzer
        Of these entries; a lexical index made with another is made again.
    """
    layout, follows = store.layout, vectors.manifest.generation
    if layout.manifest.is_file():
        manifest = LexicalManifest.read(layout.manifest)
        if manifest.follows == follows and manifest.analyzer == analyzer:
            return
    if not vectors.manifest.settings.texts:
        raise InputError(
            f"{vectors.layout.path} keeps no texts to index as terms; make a lexical index from the corpus with "
            "LexicalIndex.create"
        )
    with storage_errors(layout.path, "write its lexical index"):
        layout.path.mkdir(parents=True, exist_ok=True)
    with store.changing("write its lexical index", empty=LexicalManifest(0, (), analyzer, False)) as old:
        same = np.zeros(old.num_positions, dtype=np.bool_)
        known = old if old.manifest.analyzer == analyzer else None
        generation = old.manifest.generation + 1
        written = write_lexical_segments(
            layout, entries(_missing(vectors, known, same)), generation=generation, texts=False
        )
        kept = (info for info in store.write_deletions(old, old.live & ~same) if info.num_live_documents)
        segments = (*kept, *written)
        store.publish(LexicalManifest(generation, segments, analyzer, False, follows))


def _missing(
    vectors: Snapshot, known: LexicalSnapshot | None, same: npt.NDArray[np.bool_]
) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Documents of the vector index that are not in the lexical one as they are; ``same`` learns which are."""
    for position in np.flatnonzero(vectors.live).tolist():
        doc_id, text, metadata = vectors.doc_id(position), vectors.text(position) or "", vectors.metadata(position)
        place = known.find(doc_id) if known is not None else None
        if known is not None and place is not None:
            segment, inside = known.locate(place)
            if int(segment.checksums[inside]) == text_checksum(text, metadata_json(doc_id, metadata)):
                same[place] = True
                continue
        yield doc_id, text, metadata


def _stored(segments: list[LexicalSegment]) -> Iterator[Entry]:
    """The live documents of some segments, as they are."""
    for segment in segments:
        for place in np.flatnonzero(~segment.deleted).tolist():
            yield Entry(
                segment.doc_ids[place],
                segment.term_frequencies(place),
                int(segment.checksums[place]),
                segment.text(place),
                segment.metadata_json(place),
            )
