"""Checking a whole index: every byte against its checksum, then every array against the others."""

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

__all__ = ["Verification", "expect", "verify_snapshot", "verify_texts"]

SnapshotType = TypeVar("SnapshotType", bound=StoredSnapshot[Any])


@dataclass(frozen=True)
class Verification:
    """What was checked and found right: the same for every kind of index."""

    generation: int
    num_files: int
    num_bytes: int
    num_documents: int
    num_vectors: int
    """Of live documents; one for each where a kind has no vectors for each token."""


def verify_snapshot(snapshot: SnapshotType, check: Callable[[SnapshotType, Any], None]) -> Verification:
    """Check everything.

    Parameters
    ----------
    snapshot
        The generation.
    check
        Takes the snapshot and each of its segments, and refuses arrays that contradict each other.

    Raises
    ------
    IndexFormatError
        Naming the first file that is not as it was written, or contradicts another.
    """
    files = snapshot.array_files()
    for path, info in files.items():
        check_array(path, info)
    for segment in snapshot.segments:
        segment.doc_ids.check()
        check(snapshot, segment)
    _verify_live_ids(snapshot)
    manifest = snapshot.manifest
    num_bytes = snapshot.layout.manifest.stat().st_size + sum(info.num_bytes for info in files.values())
    return Verification(manifest.generation, len(files) + 1, num_bytes, manifest.num_documents, manifest.num_vectors)


def verify_texts(segment: StoredSegment, *, texts: bool) -> None:
    """Read every text, if the settings say that there are any, and refuse texts that they deny."""
    found = segment.has_texts
    message = f"the settings say texts={texts}, the segment has texts: {found}"
    expect(found == texts, segment, "texts_blocks", message)
    for position in range(len(segment)):
        segment.text(position)


def expect(condition: bool, segment: StoredSegment, name: str, message: str) -> None:
    """Refuse an array that is not as it must be."""
    if not condition:
        raise IndexFormatError(message, path=IndexLayout.array(segment.folder, name))


def _verify_live_ids(snapshot: StoredSnapshot[Any]) -> None:
    """Refuse an id that two segments have and neither has deleted; within a segment :meth:`Identifiers.check` looks."""
    if len(snapshot.segments) < 2:
        return
    seen = SeenIds()
    for segment in snapshot.segments:
        for position in np.flatnonzero(~segment.deleted).tolist():
            if not seen.add(segment.doc_ids[position]):
                message = f"the id {segment.doc_ids[position]!r} is in a segment before this one as well"
                raise IndexFormatError(message, path=IndexLayout.array(segment.folder, "id_bytes"))
