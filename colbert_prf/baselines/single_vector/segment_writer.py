"""Writing a segment of an index of single vectors while documents and their vectors stream by."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, nullcontext
from itertools import chain, islice
from typing import TypeAlias

import numpy as np

from colbert_prf.baselines.single_vector.snapshot import ROWS, VectorSegment, VectorSnapshot
from colbert_prf.errors import InputError
from colbert_prf.index.documents import Document
from colbert_prf.storage.arrays import ArrayWriter, write_arrays
from colbert_prf.storage.blobs import BlobWriter
from colbert_prf.storage.durable import sync_folder
from colbert_prf.storage.identifiers import identifier_arrays
from colbert_prf.storage.manifest import SegmentInfo
from colbert_prf.storage.metadata import MetadataWriter, metadata_json
from colbert_prf.types import Vectors

__all__ = ["Encode", "merge_segments", "write_documents"]

Encode: TypeAlias = Callable[[Iterator[str]], Iterator[Vectors]]
"""Texts in, their vectors out, in pieces of any number of rows."""


def write_documents(
    old: VectorSnapshot, documents: Iterable[Document], *, encode: Encode, number: int = 0
) -> list[SegmentInfo]:
    """Write documents as one segment of the next generation; none, if there are no documents.

    Parameters
    ----------
    old
        The generation before.
    documents
        Read once, no further than ``encode`` reads.
    encode
        What makes the vectors.
    number
        Of the segment.

    Raises
    ------
    InputError
        If the vectors do not fit the index, or there is not one for each document.
    """
    stream = iter(documents)
    first = next(stream, None)
    if first is None:
        return []
    layout, texts_kept = old.layout, old.manifest.texts
    name = layout.segment_name(generation=old.manifest.generation + 1, number=number)
    folder = layout.folder(name)
    folder.mkdir()
    doc_ids: list[str] = []
    metadata = MetadataWriter(folder)
    with closing(metadata), closing(BlobWriter(folder, "texts")) if texts_kept else nullcontext() as blobs:

        def texts() -> Iterator[str]:
            for document in chain([first], stream):
                text = document.text or ""
                doc_ids.append(document.doc_id)
                metadata.append(metadata_json(document.doc_id, document.metadata))
                if blobs is not None:
                    blobs.append(text.encode("utf-8", "surrogatepass"))
                yield text

        pieces = encode(texts())
        piece = next(pieces, np.empty((0, old.manifest.dim), np.float32))
        dim = old.manifest.dim or int(piece.shape[1])
        with closing(ArrayWriter(layout.array(folder, "vectors"), np.float32, (dim,))) as rows:
            for part in chain([piece], pieces):
                if part.shape[1] != dim:
                    raise InputError(f"the encoder makes vectors of dim {part.shape[1]}, the index has dim {dim}")
                rows.append(part)
            if rows.num_rows != len(doc_ids):
                raise InputError(f"the encoder made {rows.num_rows} vectors of {len(doc_ids)} texts")
            files = {"vectors": rows.finish()}
        files |= blobs.finish() if blobs is not None else {}
        files |= metadata.finish()
    files |= write_arrays(folder, identifier_arrays(doc_ids))
    sync_folder(folder)
    return [SegmentInfo(name, len(doc_ids), files)]


def merge_segments(old: VectorSnapshot, segments: list[VectorSegment], first: int) -> list[SegmentInfo]:
    """Write the live documents of some segments again, in their order."""
    live = [np.flatnonzero(~segment.deleted) for segment in segments]
    documents = (
        Document(segment.doc_ids[place], None, segment.text(place), segment.metadata(place))
        for segment, places in zip(segments, live, strict=True)
        for place in places.tolist()
    )

    def stored(texts: Iterator[str]) -> Iterator[Vectors]:
        for segment, places in zip(segments, live, strict=True):
            for start in range(0, len(places), ROWS):
                rows = places[start : start + ROWS]
                deque(islice(texts, len(rows)), maxlen=0)  # written, not encoded again
                yield segment.vectors[rows]
        deque(texts, maxlen=0)

    return write_documents(old, documents, encode=stored, number=first)
