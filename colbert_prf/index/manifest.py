"""What an index consists of: the small file that is written last and swapped atomically."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from colbert_prf.index.codec import bits_fault
from colbert_prf.index.passages import Passages
from colbert_prf.storage import manifest as stored
from colbert_prf.storage.arrays import ArrayInfo
from colbert_prf.storage.json_form import MAY_BE_MISSING

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
        if fault := bits_fault(self.bits):
            return fault
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
class DeletionInfo(stored.DeletionInfo):
    """The documents deleted from a segment, and how many vectors they have."""

    num_vectors: int


@dataclass(frozen=True)
class SegmentInfo(stored.SegmentInfo):
    """A segment, and how many vectors its documents have."""

    deletions: DeletionInfo | None = None
    num_vectors: int = 0

    @property
    def num_live_vectors(self) -> int:
        """Vectors of documents that are not deleted."""
        return self.num_vectors - (self.deletions.num_vectors if self.deletions else 0)


@dataclass(frozen=True)
class Manifest(stored.Manifest):
    """One generation of an index.

    Examples
    --------
    >>> settings = Settings(128, 2, 30522, (101, 102), True, ModelInfo())
    >>> manifest = Manifest(1, (), settings, CodecInfo("codec-000001", 16, 100, {}))
    >>> manifest.num_documents, manifest.next(segments=()).generation
    (0, 2)
    """

    KIND: ClassVar[str] = KIND
    VERSION: ClassVar[int] = FORMAT_VERSION

    segments: tuple[SegmentInfo, ...]
    settings: Settings
    codec: CodecInfo

    @property
    def num_vectors(self) -> int:
        """Vectors of documents that are not deleted."""
        return sum(segment.num_live_vectors for segment in self.segments)

    @property
    def folders(self) -> set[str]:
        """The folders in use; the derived one need not be there."""
        return {self.codec.name} | super().folders
