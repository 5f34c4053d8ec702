"""What an index consists of: the small file that is written last and swapped atomically."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from pathlib import Path

from colbert_prf.index.codec import BITS
from colbert_prf.index.passages import Passages
from colbert_prf.storage.arrays import ArrayInfo
from colbert_prf.storage.json_form import MAY_BE_MISSING, read_json, write_json

__all__ = ["FORMAT_VERSION", "CodecInfo", "DeletionInfo", "Manifest", "ModelInfo", "SegmentInfo", "Settings"]

FORMAT_VERSION = 3
MAX_VOCABULARY = 1 << 31
"""Token ids are int32."""
KIND = "colbert-prf index"


@dataclass(frozen=True)
class ModelInfo:
    """The model whose vectors these are; every part is None when the vectors were made elsewhere."""

    fingerprint: str | None = None
    name: str | None = None
    source: str | None = None
    """What :meth:`Encoder.load` takes to open it again; None for the embedded model."""


@dataclass(frozen=True)
class Settings:
    """What holds for an index all its life."""

    dim: int
    bits: int
    vocabulary_size: int
    special_ids: tuple[int, ...]
    texts: bool
    model: ModelInfo
    passages: Passages | None = field(default=None, metadata=MAY_BE_MISSING)
    """How texts are split, where they are."""

    @property
    def fault(self) -> str | None:
        """What no index has, and what to do; None if all is right.

        >>> Settings(0, 2, 30522, (), True, ModelInfo()).fault
        'dim must be at least 1, found 0; the first document must have the shape (num_tokens, dim), even without tokens'
        """
        if self.dim < 1:
            advice = "the first document must have the shape (num_tokens, dim), even without tokens"
            return f"dim must be at least 1, found {self.dim}; {advice}"
        if self.bits not in BITS:
            return f"bits must be one of {BITS}, found {self.bits}"
        if not 1 <= self.vocabulary_size <= MAX_VOCABULARY:
            return f"vocabulary_size must be from 1 to {MAX_VOCABULARY}, found {self.vocabulary_size}"
        return None


@dataclass(frozen=True)
class CodecInfo:
    """A trained codec, its arrays, and the number of vectors it was trained for."""

    name: str
    num_centroids: int
    trained_for: int
    files: dict[str, ArrayInfo]


@dataclass(frozen=True)
class DeletionInfo:
    """The documents deleted from a segment, all generations together."""

    name: str
    num_documents: int
    num_vectors: int
    files: dict[str, ArrayInfo]


@dataclass(frozen=True)
class SegmentInfo:
    """A segment: its arrays, which never change, and what has been deleted from it."""

    name: str
    num_documents: int
    num_vectors: int
    files: dict[str, ArrayInfo]
    deletions: DeletionInfo | None = None

    @property
    def num_live_documents(self) -> int:
        """Documents that are not deleted."""
        return self.num_documents - (self.deletions.num_documents if self.deletions else 0)

    @property
    def num_live_vectors(self) -> int:
        """Vectors of documents that are not deleted."""
        return self.num_vectors - (self.deletions.num_vectors if self.deletions else 0)


@dataclass(frozen=True)
class Manifest:
    """One generation of an index.

    Examples
    --------
    >>> settings = Settings(128, 2, 30522, (101, 102), True, ModelInfo())
    >>> manifest = Manifest(1, settings, CodecInfo("codec-000001", 16, 100, {}), ())
    >>> manifest.num_documents, manifest.next(segments=()).generation
    (0, 2)
    """

    generation: int
    settings: Settings
    codec: CodecInfo
    segments: tuple[SegmentInfo, ...]

    @property
    def num_documents(self) -> int:
        """Documents that are not deleted."""
        return sum(segment.num_live_documents for segment in self.segments)

    @property
    def num_vectors(self) -> int:
        """Vectors of documents that are not deleted."""
        return sum(segment.num_live_vectors for segment in self.segments)

    @property
    def folders(self) -> set[str]:
        """The folders in use; the derived one need not be there."""
        deletions = {segment.deletions.name for segment in self.segments if segment.deletions}
        return {self.codec.name, self.derived} | {segment.name for segment in self.segments} | deletions

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

    def next(self, *, segments: tuple[SegmentInfo, ...], codec: CodecInfo | None = None) -> Manifest:
        """The generation after this one."""
        return replace(self, generation=self.generation + 1, segments=segments, codec=codec or self.codec)

    def write(self, path: Path) -> None:
        """Make this the generation a reader finds."""
        write_json(path, self, kind=KIND, version=FORMAT_VERSION)

    @classmethod
    def read(cls, path: Path) -> Manifest:
        """Read the current generation, or raise :class:`IndexFormatError` naming the file."""
        return read_json(path, cls, kind=KIND, version=FORMAT_VERSION)
