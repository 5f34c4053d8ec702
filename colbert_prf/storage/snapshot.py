"""Snapshots: one generation of an index, open for reading; writers never change it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from colbert_prf.errors import IndexFormatError, InputError, whole_number
from colbert_prf.storage.arrays import ArrayInfo
from colbert_prf.storage.fields import Fields
from colbert_prf.storage.layout import IndexLayout
from colbert_prf.storage.manifest import Manifest
from colbert_prf.storage.segment import StoredSegment

__all__ = ["StoredSnapshot", "position_below", "positions_of"]

SegmentType = TypeVar("SegmentType", bound=StoredSegment)
SnapshotType = TypeVar("SnapshotType", bound="StoredSnapshot")  # type: ignore[type-arg]


class StoredSnapshot(ABC, Generic[SegmentType]):
    """All arrays of one generation, memory-mapped: they stay readable even after a later writer removed the files.

    The position of a document counts from 0 over all segments; its local position counts from 0 in its segment.

    Parameters
    ----------
    layout
        The layout of the index.
    manifest
        The generation.

    Attributes
    ----------
    segments : sequence
        The segments, in the order of positions.
    starts : array
        The first position of each segment, and the number of positions.
    """

    MANIFEST: ClassVar[type[Manifest]] = Manifest

    def __init__(self, layout: IndexLayout, manifest: Manifest) -> None:
        self.layout = layout
        self.manifest = manifest
        self.segments: Sequence[SegmentType] = self._open_segments()
        self.starts = np.cumsum([0, *map(len, self.segments)], dtype=np.int64)
        self._bounds: list[int] = self.starts.tolist()  # a single position is found faster in a list

    @classmethod
    def open(cls: type[SnapshotType], layout: IndexLayout) -> SnapshotType:
        """Open the newest generation.

        A writer may publish a generation after the manifest is read, and remove files of this one before they are
        mapped; then the next generation is opened.
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
        """The number of documents that are not deleted: N."""
        return self.manifest.num_documents

    @property
    def num_positions(self) -> int:
        """One more than the largest position; deleted documents keep theirs until a merge."""
        return self._bounds[-1]

    def array_files(self) -> dict[Path, ArrayInfo]:
        """Return every array file of the generation, with the manifest's description of it."""
        return {path: info for segment in self.segments for path, info in segment.files().items()}

    def locate(self, position: int) -> tuple[SegmentType, int]:
        """Find the segment of a document, and its local position."""
        position = position_below(self.num_positions, position)
        number = bisect_right(self._bounds, position) - 1
        return self.segments[number], position - self._bounds[number]

    def local_positions(self, positions: npt.NDArray[np.int64]) -> list[npt.NDArray[np.int64]]:
        """Split ascending positions into the local positions of each segment."""
        if len(self.segments) == 1:
            return [positions]
        bounds = np.searchsorted(positions, self.starts)
        return [
            positions[first:last] - start for start, first, last in zip(self.starts, bounds, bounds[1:], strict=False)
        ]

    def by_segment(
        self, positions: npt.NDArray[np.int64]
    ) -> Iterator[tuple[SegmentType, npt.NDArray[np.int64], npt.NDArray[np.int64]]]:
        """Group positions in any order by segment: yield each segment, the rows of its positions, and these as local.

        Row ``i`` stands for ``positions[i]``.
        """
        numbers = np.searchsorted(self.starts, positions, side="right") - 1
        for number in np.unique(numbers).tolist():
            rows = np.flatnonzero(numbers == number)
            yield self.segments[number], rows, positions[rows] - self.starts[number]

    def find(self, doc_id: str) -> int | None:
        """Find the position of a live document; None if there is none of this id."""
        if not isinstance(doc_id, str):
            raise InputError(f"a document id is a string, found {doc_id!r:.80}")
        for start, segment in zip(self._bounds, self.segments, strict=False):
            local_position = segment.doc_ids.find(doc_id)
            if local_position is not None and not segment.deleted[local_position]:
                return start + local_position
        return None

    def positions(self, doc_ids: Iterable[str]) -> npt.NDArray[np.int64]:
        """Find the positions of live documents, in the order of the ids; see :func:`positions_of`."""
        return positions_of(doc_ids, self.find)

    def doc_id(self, position: int) -> str:
        """Read the id of a document."""
        segment, local_position = self.locate(position)
        return segment.doc_ids[local_position]

    def doc_ids_of(self, positions: npt.NDArray[np.int64]) -> list[str]:
        """Read the ids of several documents."""
        if len(self.segments) == 1:
            return self.segments[0].doc_ids.many(positions)
        doc_ids = np.empty(len(positions), dtype=object)
        for segment, rows, local_positions in self.by_segment(positions):
            doc_ids[rows] = segment.doc_ids.many(local_positions)
        return list(doc_ids)

    def text(self, position: int) -> str | None:
        """Read the text of a document; None if the index keeps no texts."""
        segment, local_position = self.locate(position)
        return segment.text(local_position)

    def metadata(self, position: int) -> dict[str, Any]:
        """Read the metadata of a document; empty if it has none."""
        segment, local_position = self.locate(position)
        return segment.metadata(local_position)

    @property
    def fields(self) -> list[Fields]:
        """The metadata as columns, one for each segment in the order of positions, deleted documents included."""
        return [segment.fields for segment in self.segments]

    @abstractmethod
    def _open_segments(self) -> list[SegmentType]:
        """Open the segments of the manifest."""


def position_below(num_positions: int, position: int) -> int:
    """Return a position as an ``int``; an :class:`InputError` says that no document can have it."""
    position = whole_number("a position", position)
    if not 0 <= position < num_positions:
        raise InputError(f"position {position} is not in the index, which has {num_positions}, from 0 on")
    return position


def positions_of(doc_ids: Iterable[str], find: Callable[[str], int | None]) -> npt.NDArray[np.int64]:
    """Look up the position of each id, in the order of the ids.

    Raises
    ------
    InputError
        It names the first id that ``find`` does not know.
    """
    if not isinstance(doc_ids, Iterable):
        raise InputError(f"give document ids, such as ['d1'], found {doc_ids!r:.80}")
    positions = []
    for doc_id in doc_ids:
        position = find(doc_id)
        if position is None:
            raise InputError(f"the index has no document {doc_id!r}")
        positions.append(position)
    return np.array(positions, dtype=np.int64)
