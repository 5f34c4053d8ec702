"""One generation of a lexical index, open for reading; it stays what it is whatever writers do."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import numpy.typing as npt

from colbert_prf.baselines.lexical.manifest import LexicalManifest
from colbert_prf.baselines.lexical.segment import LexicalSegment, Postings
from colbert_prf.storage.snapshot import StoredSnapshot

__all__ = ["LexicalSnapshot"]


class LexicalSnapshot(StoredSnapshot[LexicalSegment]):
    """One generation of a lexical index, with the statistics of its live documents."""

    MANIFEST = LexicalManifest
    manifest: LexicalManifest

    def _open_segments(self) -> list[LexicalSegment]:
        return [LexicalSegment(self.layout, info) for info in self.manifest.segments]

    @cached_property
    def lengths(self) -> npt.NDArray[np.int64]:
        """Terms of each document, repetitions counted, of shape (num_positions,); deleted ones included."""
        return np.concatenate([np.empty(0, dtype=np.int64), *(segment.lengths for segment in self.segments)])

    @cached_property
    def num_tokens(self) -> int:
        """Terms of all live documents, repetitions counted."""
        return int(self.lengths[self.live].sum())

    @property
    def average_length(self) -> float:
        """Terms of a live document, on average."""
        return self.num_tokens / max(self.num_documents, 1)

    def postings(self, term: str) -> Postings:
        """The live documents of a term, ascending, and how often it is in each."""
        parts = [segment.postings(term) for segment in self.segments]
        moved = (part.positions + start for part, start in zip(parts, self.starts, strict=False))
        return Postings(
            np.concatenate([np.empty(0, np.int64), *moved]),
            np.concatenate([np.empty(0, np.int64), *(part.frequencies for part in parts)]),
        )

    def term_frequencies(self, position: int) -> dict[str, int]:
        """The terms of a document and how often each is in it."""
        segment, local_position = self.locate(position)
        return segment.term_frequencies(local_position)
