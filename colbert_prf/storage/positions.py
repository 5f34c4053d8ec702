"""The documents of several segments as one row: positions count from 0 over all of them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from colbert_prf.errors import InputError
from colbert_prf.storage.identifiers import Identifiers

__all__ = ["Positions"]


class _Documents(Protocol):
    doc_ids: Identifiers
    deleted: npt.NDArray[np.bool_]

    def __len__(self) -> int: ...

    def text(self, position: int, /) -> str | None: ...


SegmentType = TypeVar("SegmentType", bound=_Documents)


class Positions(Generic[SegmentType]):
    """Finds documents by position and by id.

    Parameters
    ----------
    segments
        Each with its document ids, and which documents are deleted.
    """

    def __init__(self, segments: Sequence[SegmentType]) -> None:
        self.segments = segments
        self.starts = np.cumsum([0, *map(len, segments)], dtype=np.int64)
        self._bounds: list[int] = self.starts.tolist()  # one position at a time is found faster in a list

    @property
    def num_positions(self) -> int:
        """One more than the largest position; deleted documents keep theirs until a merge."""
        return int(self.starts[-1])

    def place(self, position: int) -> tuple[SegmentType, int]:
        """The segment of a position and the position within it."""
        if not 0 <= position < self._bounds[-1]:
            raise InputError(f"position {position} is not in the index, which has {self.num_positions}, from 0 on")
        number = bisect_right(self._bounds, position) - 1
        return self.segments[number], int(position) - self._bounds[number]

    def places(self, positions: npt.NDArray[np.int64]) -> list[npt.NDArray[np.int64]]:
        """The positions of some, ascending, within each segment."""
        if len(self.segments) == 1:
            return [positions]
        bounds = np.searchsorted(positions, self.starts)
        return [
            positions[first:last] - start for start, first, last in zip(self.starts, bounds, bounds[1:], strict=False)
        ]

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
            if not isinstance(doc_id, str):
                raise InputError(f"a document id is a string, found {doc_id!r}")
            place = self.find(doc_id)
            if place is None:
                raise InputError(f"the index has no document {doc_id!r}")
            found.append(place)
        return np.array(found, dtype=np.int64)

    def doc_id(self, position: int) -> str:
        """The id of a document."""
        segment, place = self.place(position)
        return segment.doc_ids[place]

    def doc_ids_of(self, positions: npt.NDArray[np.int64]) -> list[str]:
        """The ids of some documents."""
        if len(self.segments) == 1:
            return self.segments[0].doc_ids.many(positions)
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
