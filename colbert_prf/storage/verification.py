"""Verification of a whole index: every byte against its checksum, then every array against the others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from colbert_prf.errors import IndexFormatError
from colbert_prf.storage.arrays import check_array
from colbert_prf.storage.identifiers import SeenIds
from colbert_prf.storage.layout import IndexLayout
from colbert_prf.storage.segment import StoredSegment
from colbert_prf.storage.snapshot import StoredSnapshot

__all__ = ["Verification", "require", "verify_metadata", "verify_snapshot", "verify_texts"]

SnapshotType = TypeVar("SnapshotType", bound=StoredSnapshot[Any])


@dataclass(frozen=True)
class Verification:
    """The amount of data that was verified, for every kind of index."""

    generation: int
    num_files: int
    num_bytes: int
    num_documents: int
    num_vectors: int
    """The vectors of live documents; one for each document if a kind has no token vectors."""


def verify_snapshot(snapshot: SnapshotType, verify_segment: Callable[[SnapshotType, Any], None]) -> Verification:
    """Verify one generation.

    Parameters
    ----------
    snapshot
        The generation.
    verify_segment
        Takes the snapshot and each of its segments, and refuses arrays that contradict each other.

    Raises
    ------
    IndexFormatError
        It names the first file that has changed since it was written, or contradicts another.
    """
    files = snapshot.array_files()
    for path, info in files.items():
        check_array(path, info)
    for segment in snapshot.segments:
        segment.doc_ids.check()
        verify_segment(snapshot, segment)
    _verify_live_ids(snapshot)
    manifest = snapshot.manifest
    num_bytes = snapshot.layout.manifest.stat().st_size + sum(info.num_bytes for info in files.values())
    return Verification(manifest.generation, len(files) + 1, num_bytes, manifest.num_documents, manifest.num_vectors)


def verify_texts(segment: StoredSegment, *, texts: bool) -> None:
    """Read every text, and refuse a segment that has texts and should not, or the reverse."""
    message = f"the settings say texts={texts}, the segment has texts: {segment.has_texts}"
    require(segment.has_texts == texts, segment, "texts_blocks", message)
    for position in range(len(segment)):
        segment.text(position)


def verify_metadata(segment: StoredSegment) -> None:
    """Read the metadata of every document, and refuse columns that are not those of it."""
    for position in range(len(segment)):
        segment.metadata(position)
    if "field_names" not in segment.arrays:
        return
    expected = segment.metadata_as_fields()
    for name, array in expected.arrays().items():
        equal = np.array_equal(array, segment.arrays[name])
        require(equal, segment, name, "the columns are not those of the metadata")
    equal = list(expected.strings) == list(segment.fields.strings)
    require(equal, segment, "field_strings_blocks", "the strings are not those of the metadata")


def require(condition: bool, segment: StoredSegment, name: str, message: str) -> None:
    """Raise an :class:`IndexFormatError` about an array of a segment unless a condition holds."""
    if not condition:
        raise IndexFormatError(message, path=IndexLayout.array(segment.folder, name))


def _verify_live_ids(snapshot: StoredSnapshot[Any]) -> None:
    """Refuse an id that is live in two segments; :meth:`Identifiers.check` looks within a segment."""
    if len(snapshot.segments) < 2:
        return
    seen = SeenIds()
    for segment in snapshot.segments:
        for position in np.flatnonzero(~segment.deleted).tolist():
            if not seen.add(segment.doc_ids[position]):
                message = f"the id {segment.doc_ids[position]!r} is in a segment before this one as well"
                raise IndexFormatError(message, path=IndexLayout.array(segment.folder, "id_bytes"))
