"""The manifest: the small file that says what an index consists of, written last and replaced atomically.

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
    """The documents deleted from a segment by all generations together."""

    name: str
    num_documents: int
    files: dict[str, ArrayInfo]


@dataclass(frozen=True)
class SegmentInfo:
    """A segment: its arrays, which never change, and the documents deleted from it."""

    name: str
    num_documents: int
    files: dict[str, ArrayInfo]
    deletions: DeletionInfo | None = None

    @property
    def num_live_documents(self) -> int:
        """The number of documents that are not deleted."""
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
    UPGRADES: ClassVar[Mapping[int, Callable[[dict[str, Any]], dict[str, Any]]]] = {}
    """For each older format version that can be read, a function that converts its content to this version."""

    generation: int
    segments: tuple[SegmentInfo, ...]

    @property
    def num_documents(self) -> int:
        """The number of documents that are not deleted."""
        return sum(segment.num_live_documents for segment in self.segments)

    @property
    def num_vectors(self) -> int:
        """The number of vectors of live documents: one for each document, unless a kind says otherwise."""
        return self.num_documents

    @property
    def folders(self) -> set[str]:
        """The names of the folders in use; the folder of derived files need not exist."""
        deletions = {segment.deletions.name for segment in self.segments if segment.deletions}
        return {self.derived} | {segment.name for segment in self.segments} | deletions

    @property
    def derived(self) -> str:
        """The folder name of what readers derive from the segments; deleting documents does not change it."""
        contents = [
            (segment.name, sorted((name, info.checksum) for name, info in segment.files.items()))
            for segment in self.segments
        ]
        return f"derived-{hashlib.sha256(repr(contents).encode()).hexdigest()[:16]}"

    @property
    def digest(self) -> str:
        """A short hash that changes with every byte of the index, and with every deletion."""
        return hashlib.sha256(repr(self).encode()).hexdigest()[:16]

    def next(self: ManifestType, *, segments: tuple[SegmentInfo, ...], **changes: Any) -> ManifestType:
        """Make the manifest of the next generation."""
        return replace(self, generation=self.generation + 1, segments=segments, **changes)

    def write(self, path: Path) -> None:
        """Make this generation the one that readers find."""
        write_json(path, self, kind=self.KIND, version=self.VERSION)

    @classmethod
    def read(cls: type[ManifestType], path: Path) -> ManifestType:
        """Read the current generation; an :class:`IndexFormatError` names a file that is no such manifest."""
        return read_json(path, cls, kind=cls.KIND, version=cls.VERSION, upgrades=cls.UPGRADES)


def kind_of(layout: IndexLayout) -> str | None:
    """Read the kind of index from the manifest of a folder; None if there is no manifest with a kind."""
    return read_kind(layout.manifest) if layout.manifest.is_file() else None
