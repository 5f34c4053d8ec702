"""One generation of an index, open for reading; it stays what it is whatever writers do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import ClassVar, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from colbert_prf.errors import IndexFormatError, InputError
from colbert_prf.storage.arrays import ArrayInfo
from colbert_prf.storage.layout import IndexLayout
from colbert_prf.storage.manifest import Manifest
from colbert_prf.storage.segment import StoredSegment

__all__ = ["StoredSnapshot"]

SegmentType = TypeVar("SegmentType", bound=StoredSegment)
SnapshotType = TypeVar("SnapshotType", bound="StoredSnapshot")  # type: ignore[type-arg]


class StoredSnapshot(ABC, Generic[SegmentType]):
    """Every array of one generation, mapped: files a later writer removes stay readable until the last reader goes.

    A document's position counts from 0 over all segments.

    Parameters
    ----------
    layout
        Of the index.
    manifest
        The generation.

    Attributes
    ----------
    segments : sequence
        The segments, in the order of positions.
    starts : array
        The first position of each segment, and one more than the last of all.
    """

    MANIFEST: ClassVar[type[Manifest]] = Manifest

    def __init__(self, layout: IndexLayout, manifest: Manifest) -> None:
        self.layout = layout
        self.manifest = manifest
        self.segments: Sequence[SegmentType] = self._open_segments()
        self.starts = np.cumsum([0, *map(len, self.segments)], dtype=np.int64)
        self._bounds: list[int] = self.starts.tolist()  # one position at a time is found faster in a list

    @classmethod
    def open(cls: type[SnapshotType], layout: IndexLayout) -> SnapshotType:
        """Open the newest generation.

        Between reading the manifest and mapping its files, a writer may have replaced the one and removed the others;
        then the next generation is opened.
        """
        manifest = cls.MANIFEST.read(layout.manifest)
        while True:
            try:
                return cls(layout, manifest)
            except (IndexFormatError, FileNotFoundError):  # noqa: PERF203 - the loop is the point
                newest = cls.MANIFEST.read(layout.manifest)
                if newest.generation == manifest.generation:
                    raise
                manifest = newest

    @cached_property
    def live(self) -> npt.NDArray[np.bool_]:
        """Whether the document at each position is live, of shape (num_positions,)."""
        return ~np.concatenate([np.empty(0, dtype=np.bool_), *(segment.deleted for segment in self.segments)])

    @property
    def num_documents(self) -> int:
        """Documents that are not deleted: N."""
        return self.manifest.num_documents

    def array_files(self) -> dict[Path, ArrayInfo]:
        """Every array file of the generation, with what the manifest says of it."""
        return {path: info for segment in self.segments for path, info in segment.files().items()}

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

    @abstractmethod
    def _open_segments(self) -> list[SegmentType]:
        """Open the segments of the manifest."""
