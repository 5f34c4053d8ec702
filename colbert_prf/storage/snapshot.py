"""One generation of an index, open for reading; it stays what it is whatever writers do."""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property
from pathlib import Path
from typing import ClassVar, TypeVar

import numpy as np
import numpy.typing as npt

from colbert_prf.errors import IndexFormatError
from colbert_prf.storage.arrays import ArrayInfo
from colbert_prf.storage.layout import IndexLayout
from colbert_prf.storage.manifest import Manifest
from colbert_prf.storage.positions import Positions
from colbert_prf.storage.segment import StoredSegment

__all__ = ["StoredSnapshot"]

SegmentType = TypeVar("SegmentType", bound=StoredSegment)
SnapshotType = TypeVar("SnapshotType", bound="StoredSnapshot")  # type: ignore[type-arg]


class StoredSnapshot(Positions[SegmentType]):
    """Every array of one generation, mapped: files a later writer removes stay readable until the last reader goes.

    A document's position counts from 0 over all segments.

    Parameters
    ----------
    layout
        Of the index.
    manifest
        The generation.
    """

    MANIFEST: ClassVar[type[Manifest]] = Manifest

    def __init__(self, layout: IndexLayout, manifest: Manifest) -> None:
        self.layout = layout
        self.manifest = manifest
        super().__init__(self._open_segments())

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

    @abstractmethod
    def _open_segments(self) -> list[SegmentType]:
        """Open the segments of the manifest."""
