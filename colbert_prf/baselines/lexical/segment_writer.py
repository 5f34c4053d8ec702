"""Writing a segment of a lexical index: terms by document, and documents by term."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping
from itertools import count
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from colbert_prf.storage.arrays import Array, write_arrays
from colbert_prf.storage.blobs import BlobWriter
from colbert_prf.storage.durable import sync_folder
from colbert_prf.storage.identifiers import identifier_arrays
from colbert_prf.storage.layout import IndexLayout
from colbert_prf.storage.manifest import SegmentInfo
from colbert_prf.storage.metadata import MetadataWriter

__all__ = ["Entry", "inverted", "sums_of_runs", "write_lexical_segments"]

SEGMENT_POSTINGS = 20_000_000
"""Pairs of document and term in a segment: what a writer holds in memory, some 500 MB."""


class Entry(NamedTuple):
    """A document to be indexed: its terms and how often each is in it."""

    doc_id: str
    frequencies: Mapping[str, int]
    checksum: int
    """Of the text and the metadata, to see later whether a document is still the same."""
    text: str | None
    metadata: bytes = b""
    """As JSON; empty if there is none."""


def write_lexical_segments(
    layout: IndexLayout, entries: Iterable[Entry], *, generation: int, texts: bool, first: int = 0
) -> list[SegmentInfo]:
    """Write documents as segments of bounded size; none is part of the index before the manifest says so."""
    stream, written = iter(entries), list[SegmentInfo]()
    for number in count(first):
        segment = _Segment()
        for entry in stream:
            segment.append(entry)
            if len(segment.terms) >= SEGMENT_POSTINGS:
                break
        if not segment.doc_ids:
            return written
        written.append(segment.write(layout, layout.segment_name(generation=generation, number=number), texts=texts))
    raise AssertionError("unreachable")


class _Segment:
    """The documents of a segment to be, with terms numbered as they come."""

    def __init__(self) -> None:
        self.doc_ids: list[str] = []
        self.texts: list[str | None] = []
        self.metadata: list[bytes] = []
        self.checksums = array("L")
        self.vocabulary: dict[str, int] = {}
        self.terms = array("i")
        self.frequencies = array("i")
        self.offsets = array("q", [0])

    def append(self, entry: Entry) -> None:
        vocabulary = self.vocabulary
        self.doc_ids.append(entry.doc_id)
        self.texts.append(entry.text)
        self.metadata.append(entry.metadata)
        self.checksums.append(entry.checksum)
        self.terms.extend([vocabulary.setdefault(term, len(vocabulary)) for term in entry.frequencies])
        self.frequencies.extend(entry.frequencies.values())
        self.offsets.append(len(self.terms))

    def write(self, layout: IndexLayout, name: str, *, texts: bool) -> SegmentInfo:
        folder = layout.folder(name)
        folder.mkdir()
        terms = np.frombuffer(self.terms, dtype=np.int32)
        frequencies = np.frombuffer(self.frequencies, dtype=np.int32)
        offsets = np.frombuffer(self.offsets, dtype=np.int64)
        arrays: dict[str, Array] = {
            "offsets": offsets,
            "terms": terms,
            "frequencies": frequencies,
            "lengths": sums_of_runs(frequencies, offsets),
            "checksums": np.array(self.checksums, dtype=np.uint32),
            **identifier_arrays(self.doc_ids),
            **{f"term_{key}": value for key, value in identifier_arrays(list(self.vocabulary)).items()},
            **dict(inverted(terms, frequencies, offsets, len(self.vocabulary))),
        }
        files = write_arrays(folder, arrays)
        metadata = MetadataWriter(folder)
        for blob in self.metadata:
            metadata.append(blob)
        files |= metadata.finish()
        if texts:
            blobs = BlobWriter(folder, "texts")
            for text in self.texts:
                blobs.append((text or "").encode("utf-8", "surrogatepass"))
            files |= blobs.finish()
        sync_folder(folder)
        sync_folder(folder.parent)
        return SegmentInfo(name, len(self.doc_ids), files)


def inverted(
    terms: npt.NDArray[np.int32],
    frequencies: npt.NDArray[np.int32],
    offsets: npt.NDArray[np.int64],
    num_terms: int,
) -> Iterator[tuple[str, Array]]:
    """The documents of each term, ascending, and how often it is in each."""
    documents = np.repeat(np.arange(len(offsets) - 1, dtype=np.uint32), np.diff(offsets))
    order = np.argsort(terms, kind="stable")
    yield "posting_offsets", np.concatenate([[0], np.cumsum(np.bincount(terms, minlength=num_terms))]).astype(np.int64)
    yield "posting_documents", documents[order]
    yield "posting_frequencies", frequencies[order]


def sums_of_runs(values: npt.NDArray[np.int32], offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The sum of each run of values; 0 for an empty run."""
    totals = np.concatenate([[0], np.cumsum(values, dtype=np.int64)])
    return np.asarray(np.diff(totals[offsets]), dtype=np.int64)
