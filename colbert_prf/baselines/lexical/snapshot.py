"""One generation of a lexical index, open for reading; it stays what it is whatever writers do."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import numpy.typing as npt

from colbert_prf.baselines.lexical.manifest import LexicalManifest
from colbert_prf.baselines.lexical.segment import LexicalSegment, Postings
from colbert_prf.errors import IndexFormatError
from colbert_prf.storage.layout import IndexLayout
from colbert_prf.storage.positions import Positions

__all__ = ["LexicalSnapshot"]


class LexicalSnapshot(Positions[LexicalSegment]):
    """Every array of one generation, mapped; a document's position counts from 0 over all segments.

    Parameters
    ----------
    layout
        Of the lexical index.
    manifest
        The generation.
    """

    def __init__(self, layout: IndexLayout, manifest: LexicalManifest) -> None:
        self.layout = layout
        self.manifest = manifest
        super().__init__([LexicalSegment(layout, info) for info in manifest.segments])

    @classmethod
    def open(cls, layout: IndexLayout) -> LexicalSnapshot:
        """Open the newest generation, again if a writer removed its files meanwhile."""
        manifest = LexicalManifest.read(layout.manifest)
        while True:
            try:
                return cls(layout, manifest)
            except (IndexFormatError, FileNotFoundError):  # noqa: PERF203 - the loop is the point
                newest = LexicalManifest.read(layout.manifest)
                if newest.generation == manifest.generation:
                    raise
                manifest = newest

    @cached_property
    def live(self) -> npt.NDArray[np.bool_]:
        """Whether the document at each position is live, of shape (num_positions,)."""
        return ~np.concatenate([np.empty(0, dtype=np.bool_), *(segment.deleted for segment in self.segments)])

    @cached_property
    def lengths(self) -> npt.NDArray[np.int64]:
        """Terms of each document, repetitions counted, of shape (num_positions,); deleted ones included."""
        return np.concatenate([np.empty(0, dtype=np.int64), *(segment.lengths for segment in self.segments)])

    @cached_property
    def num_documents(self) -> int:
        """Live documents: N."""
        return int(self.live.sum())

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
        segment, place = self.place(position)
        return segment.term_frequencies(place)
