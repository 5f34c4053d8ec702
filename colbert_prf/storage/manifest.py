"""What an index folder consists of: the small file that is written last and swapped atomically.

Each kind of index adds its own fields to :class:`Manifest`; generation and segments are the same for all.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from colbert_prf.storage.arrays import ArrayInfo
from colbert_prf.storage.json_form import read_json, read_kind, write_json
from colbert_prf.storage.layout import IndexLayout

__all__ = ["DeletionInfo", "Manifest", "SegmentInfo", "kind_of"]

ManifestType = TypeVar("ManifestType", bound="Manifest")


@dataclass(frozen=True)
class DeletionInfo:
    """The documents deleted from a segment, all generations together."""

    name: str
    num_documents: int
    files: dict[str, ArrayInfo]


@dataclass(frozen=True)
class SegmentInfo:
    """A segment: its arrays, which never change, and what has been deleted from it."""

    name: str
    num_documents: int
    files: dict[str, ArrayInfo]
    deletions: DeletionInfo | None = None

    @property
    def num_live_documents(self) -> int:
        """Documents that are not deleted."""
        return self.num_documents - (self.deletions.num_documents if self.deletions else 0)


@dataclass(frozen=True)
class Manifest:
    """One generation of an index.

    Examples
    --------
    >>> manifest = Manifest(1, (SegmentInfo("segment-000001-0000", 7, {}, DeletionInfo("deletions-000002", 2, {})),))
    >>> manifest.num_documents, manifest.next(segments=()).generation
    (5, 2)
    """

    KIND: ClassVar[str] = "colbert-prf store"
    VERSION: ClassVar[int] = 1
    OLDER: ClassVar[Mapping[int, Callable[[dict[str, Any]], dict[str, Any]]]] = {}
    """Format versions that can be read as well: each with what turns its content into that of this version."""

    generation: int
    segments: tuple[SegmentInfo, ...]

    @property
    def num_documents(self) -> int:
        """Documents that are not deleted."""
        return sum(segment.num_live_documents for segment in self.segments)

    @property
    def num_vectors(self) -> int:
        """Vectors of documents that are not deleted: one for each document, unless a kind says otherwise."""
        return self.num_documents

    @property
    def folders(self) -> set[str]:
        """The folders in use; the derived one need not be there."""
        deletions = {segment.deletions.name for segment in self.segments if segment.deletions}
        return {self.derived} | {segment.name for segment in self.segments} | deletions

    @property
    def derived(self) -> str:
        """The folder of what readers make from the segments: the same while these are, whatever is deleted."""
        contents = [
            (segment.name, sorted((name, info.checksum) for name, info in segment.files.items()))
            for segment in self.segments
        ]
        return f"derived-{hashlib.sha256(repr(contents).encode()).hexdigest()[:16]}"

    @property
    def digest(self) -> str:
        """A short name that changes with every byte of the index, and with what is deleted."""
        return hashlib.sha256(repr(self).encode()).hexdigest()[:16]

    def next(self: ManifestType, *, segments: tuple[SegmentInfo, ...], **changes: Any) -> ManifestType:
        """The generation after this one."""
        return replace(self, generation=self.generation + 1, segments=segments, **changes)

    def write(self, path: Path) -> None:
        """Make this the generation a reader finds."""
        write_json(path, self, kind=self.KIND, version=self.VERSION)

    @classmethod
    def read(cls: type[ManifestType], path: Path) -> ManifestType:
        """Read the current generation, or raise :class:`IndexFormatError` naming the file."""
        return read_json(path, cls, kind=cls.KIND, version=cls.VERSION, older=cls.OLDER)


def kind_of(layout: IndexLayout) -> str | None:
    """What kind of index a folder says it is; None if it has no manifest that says so."""
    return read_kind(layout.manifest) if layout.manifest.is_file() else None
