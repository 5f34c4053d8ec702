"""The manifest of an index: its settings, its codec and its segments."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from colbert_prf.index.codec import bits_fault
from colbert_prf.index.passages import Passages
from colbert_prf.storage import manifest as storage_manifest
from colbert_prf.storage.arrays import ArrayInfo
from colbert_prf.storage.json_form import MAY_BE_MISSING

__all__ = ["FORMAT_VERSION", "CodecInfo", "DeletionInfo", "Manifest", "ModelInfo", "SegmentInfo", "Settings"]

FORMAT_VERSION = 3
MAX_VOCABULARY = 1 << 31
"""The limit of int32 token ids."""
KIND = "colbert-prf index"


@dataclass(frozen=True)
class ModelInfo:
    """The model that made the vectors; every field is None if the vectors were made elsewhere."""

    fingerprint: str | None = None
    name: str | None = None
    source: str | None = None
    """The argument with which :meth:`Encoder.load` opens the model; None for the embedded model."""


@dataclass(frozen=True)
class Settings:
    """The settings of an index, which never change."""

    dim: int
    bits: int
    vocabulary_size: int
    special_ids: tuple[int, ...]
    texts: bool
    model: ModelInfo
    passages: Passages | None = field(default=None, metadata=MAY_BE_MISSING)
    """How texts are split into passages; None if they are not."""

    @property
    def fault(self) -> str | None:
        """What is wrong with the settings, and what to do; None if nothing is.

        >>> Settings(0, 2, 30522, (), True, ModelInfo()).fault
        'dim must be at least 1, found 0; the first document must have the shape (num_tokens, dim), even without tokens'
        """
        texts: object = self.texts
        fingerprint: object = self.model.fingerprint
        if not isinstance(texts, bool):
            return f"texts must be True or False, found {texts!r:.80}"
        if not isinstance(fingerprint, str | None):
            return f"fingerprint must be a string, found {fingerprint!r:.80}"
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
    """A trained codec: its arrays, and the number of vectors for which it was trained."""

    name: str
    num_centroids: int
    trained_for: int
    files: dict[str, ArrayInfo]


@dataclass(frozen=True)
class DeletionInfo(storage_manifest.DeletionInfo):
    """The documents deleted from a segment, and the number of their vectors."""

    num_vectors: int


@dataclass(frozen=True)
class SegmentInfo(storage_manifest.SegmentInfo):
    """A segment, and the number of vectors of its documents."""

    deletions: DeletionInfo | None = None
    num_vectors: int = 0

    @property
    def num_live_vectors(self) -> int:
        """The number of vectors of documents that are not deleted."""
        return self.num_vectors - (self.deletions.num_vectors if self.deletions else 0)


@dataclass(frozen=True)
class Manifest(storage_manifest.Manifest):
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
        """The number of vectors of documents that are not deleted."""
        return sum(segment.num_live_vectors for segment in self.segments)

    @property
    def folders(self) -> set[str]:
        """The names of the folders in use; the folder of derived files need not exist."""
        return {self.codec.name} | super().folders
