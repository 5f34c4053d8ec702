"""What a lexical index consists of: the small file that is written last and swapped atomically."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from colbert_prf.storage.arrays import ArrayInfo
from colbert_prf.storage.json_form import read_json, write_json

__all__ = ["AnalyzerInfo", "Deleted", "LexicalManifest", "LexicalSegmentInfo"]

FORMAT_VERSION = 1
KIND = "colbert-prf lexical index"


@dataclass(frozen=True)
class AnalyzerInfo:
    """How texts were split into terms."""

    stop_words: str
    stemmer: str


@dataclass(frozen=True)
class Deleted:
    """Which documents of a segment are deleted, all generations together."""

    name: str
    num_documents: int
    files: dict[str, ArrayInfo]


@dataclass(frozen=True)
class LexicalSegmentInfo:
    """A segment: its arrays, which never change, and what has been deleted from it."""

    name: str
    num_documents: int
    files: dict[str, ArrayInfo]
    deletions: Deleted | None = None


@dataclass(frozen=True)
class LexicalManifest:
    """One generation of a lexical index."""

    generation: int
    analyzer: AnalyzerInfo
    texts: bool
    segments: tuple[LexicalSegmentInfo, ...]
    follows: int | None = None
    """The generation of the vector index it stands beside that it has the documents of."""

    @property
    def folders(self) -> set[str]:
        """The folders in use."""
        deletions = {segment.deletions.name for segment in self.segments if segment.deletions}
        return {segment.name for segment in self.segments} | deletions

    def write(self, path: Path) -> None:
        """Make this the generation a reader finds."""
        write_json(path, self, kind=KIND, version=FORMAT_VERSION)

    @classmethod
    def read(cls, path: Path) -> LexicalManifest:
        """Read the current generation, or raise :class:`IndexFormatError` naming the file."""
        return read_json(path, cls, kind=KIND, version=FORMAT_VERSION)
