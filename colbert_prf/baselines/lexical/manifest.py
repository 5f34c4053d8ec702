"""What a lexical index consists of: the small file that is written last and swapped atomically."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from colbert_prf.storage.manifest import Manifest, SegmentInfo

__all__ = ["AnalyzerInfo", "LexicalManifest"]


@dataclass(frozen=True)
class AnalyzerInfo:
    """How texts were split into terms."""

    stop_words: str
    stemmer: str


def _from_version_1(content: dict[str, Any]) -> dict[str, Any]:
    """The same documents without metadata: those of a vector index are compared again with what it has now."""
    return {**content, "follows": None}


@dataclass(frozen=True)
class LexicalManifest(Manifest):
    """One generation of a lexical index."""

    KIND: ClassVar[str] = "colbert-prf lexical index"
    VERSION: ClassVar[int] = 2
    UPGRADES = {1: _from_version_1}  # noqa: RUF012 - a ClassVar of the base

    analyzer: AnalyzerInfo
    texts: bool
    follows: int | None = None
    """The generation of the vector index it stands beside that it has the documents of."""

    def next(self, *, segments: tuple[SegmentInfo, ...], **changes: Any) -> LexicalManifest:
        """The generation after this one, which follows no vector index unless that is said."""
        return super().next(segments=segments, **{"follows": None, **changes})
