"""One generation of a lexical index, open for reading; it stays what it is whatever writers do."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

import numpy as np
import numpy.typing as npt

from colbert_prf.errors import IndexFormatError, InputError
from colbert_prf.index.layout import IndexLayout
from colbert_prf.lexical.manifest import LexicalManifest
from colbert_prf.lexical.segment import LexicalSegment, Postings

__all__ = ["LexicalSnapshot"]


class LexicalSnapshot:
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
        self.segments = [LexicalSegment(layout, info) for info in manifest.segments]
        self.starts = np.cumsum([0, *map(len, self.segments)], dtype=np.int64)

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

    @property
    def num_positions(self) -> int:
        """One more than the largest position; deleted documents keep theirs until a merge."""
        return int(self.starts[-1])

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

    def place(self, position: int) -> tuple[LexicalSegment, int]:
        """The segment of a position and the position within it."""
        if not 0 <= position < self.starts[-1]:
            raise InputError(f"position {position} is not in the index, whose positions go from 0 to {self.starts[-1]}")
        number = int(np.searchsorted(self.starts, position, side="right")) - 1
        return self.segments[number], int(position - self.starts[number])

    def find(self, doc_id: str) -> int | None:
        """The position of a live document."""
        for start, segment in zip(self.starts, self.segments, strict=False):
            place = segment.doc_ids.find(doc_id)
            if place is not None and not segment.deleted[place]:
                return int(start) + place
        return None

    def positions(self, doc_ids: Iterable[str]) -> npt.NDArray[np.int64]:
        """The positions of live documents, in the order of the ids."""
        found = []
        for doc_id in doc_ids:
            place = self.find(doc_id)
            if place is None:
                raise InputError(f"the lexical index has no document {doc_id!r}")
            found.append(place)
        return np.array(found, dtype=np.int64)

    def doc_ids_of(self, positions: npt.NDArray[np.int64]) -> list[str]:
        """The ids of some documents."""
        numbers = np.searchsorted(self.starts, positions, side="right") - 1
        names = np.empty(len(positions), dtype=object)
        for number in np.unique(numbers):
            here = numbers == number
            names[here] = self.segments[number].doc_ids.many(positions[here] - self.starts[number])
        doc_ids: list[str] = names.tolist()
        return doc_ids

    def text(self, position: int) -> str | None:
        """The text of a document, where texts are kept."""
        segment, place = self.place(position)
        return segment.text(place)
