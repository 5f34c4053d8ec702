"""Segments: what those of all kinds of index have in common, opened and checked in one way."""

from __future__ import annotations

import json
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from colbert_prf.errors import IndexFormatError
from colbert_prf.storage.array_specs import ArraySpec, check_specs
from colbert_prf.storage.arrays import Array, ArrayInfo, check_array, open_array
from colbert_prf.storage.blobs import Blobs
from colbert_prf.storage.fields import Fields
from colbert_prf.storage.identifiers import Identifiers
from colbert_prf.storage.layout import IndexLayout, damaged_array
from colbert_prf.storage.manifest import DeletionInfo, SegmentInfo

__all__ = ["StoredSegment"]


class StoredSegment:
    """An immutable run of documents, memory-mapped; positions count from 0 within the segment.

    Parameters
    ----------
    layout
        The layout of the index.
    folder
        The folder of the segment.
    info
        The manifest's description of the segment.
    specs
        The arrays that the segment must have.

    Attributes
    ----------
    arrays : dict
        All arrays, by name.
    doc_ids : Identifiers
        Document ids.
    deleted : array
        The tombstones: whether each document is deleted, bool of shape (num_documents,).
    deletion_arrays : dict
        The arrays about the deleted documents, by name.
    """

    DELETION_INFO: ClassVar[type[DeletionInfo]] = DeletionInfo

    def __init__(self, layout: IndexLayout, folder: Path, info: SegmentInfo, specs: dict[str, ArraySpec]) -> None:
        self._layout = layout
        self.folder = folder
        self.info = info
        check_specs(info.files, specs, folder)
        self.arrays = {name: open_array(layout.array(folder, name), file) for name, file in info.files.items()}
        self.doc_ids = Identifiers(self.arrays, folder=folder)
        self._texts = self._blobs("texts")
        self._metadata = self._blobs("metadata")
        self.deletion_arrays = self._open_deletions()
        self.deleted = self._read_deleted()

    def __len__(self) -> int:
        return self.info.num_documents

    @property
    def has_texts(self) -> bool:
        """Whether the segment keeps texts."""
        return self._texts is not None

    def text(self, position: int) -> str | None:
        """Read the text of a document; None if the segment keeps no texts."""
        return self._texts.text(position) if self._texts is not None else None

    def metadata_json(self, position: int) -> bytes:
        """Read the metadata of a document as JSON; empty if it has none."""
        return self._metadata[position] if self._metadata is not None else b""

    def metadata(self, position: int) -> dict[str, Any]:
        """Read the metadata of a document; empty if it has none."""
        encoded = self.metadata_json(position)
        try:
            metadata = json.loads(encoded) if encoded else {}
        except (ValueError, RecursionError) as error:
            raise self._damaged("metadata_blocks", f"the metadata at {position} is not JSON ({error})") from error
        if not isinstance(metadata, dict):
            raise self._damaged("metadata_blocks", f"the metadata at {position} is not an object")
        return metadata

    @cached_property
    def fields(self) -> Fields:
        """The metadata of all documents as columns, which are made from the JSON if the segment has none."""
        if "field_names" in self.arrays:
            return Fields.opened(self.arrays, num_documents=len(self), folder=self.folder)
        return self.metadata_as_fields()

    def metadata_as_fields(self) -> Fields:
        """Make columns of the metadata of all documents from the JSON."""
        return Fields.of(self.metadata(position) if self._metadata else {} for position in range(len(self)))

    def files(self) -> dict[Path, ArrayInfo]:
        """Return every file of the segment and of its deletions, with the manifest's description of it."""
        files = {self._layout.array(self.folder, name): file for name, file in self.info.files.items()}
        deletions = self.info.deletions.files if self.info.deletions else {}
        return files | {self.deletion_path(name): file for name, file in deletions.items()}

    def check(self) -> None:
        """Compare every file with its checksum.

        A writer does this before it writes the documents again: otherwise damage would get a new checksum, and nothing
        would ever find it.

        Raises
        ------
        IndexFormatError
            It names the first file that has changed since it was written.
        """
        for path, info in self.files().items():
            check_array(path, info)

    def deletion_path(self, name: str) -> Path:
        """Return the file of an array about the deleted documents."""
        assert self.info.deletions is not None
        folder = self._layout.folder(self.info.deletions.name)
        path = self._layout.array(folder, f"{self.info.name}.{name}")
        old_path = self._layout.array(folder, self.info.name)  # older lexical indexes have the array under this name
        return old_path if name == "deleted" and not path.exists() and old_path.exists() else path

    def deletion_specs(self) -> dict[str, ArraySpec]:
        """Specify the arrays about the deleted documents."""
        return {"deleted": ArraySpec.of(np.uint8, shape=(-(-len(self) // 8),))}

    def deletion_statistics(self, deleted: npt.NDArray[np.bool_]) -> tuple[dict[str, Array], dict[str, int]]:
        """Compute what a kind of index keeps about deleted documents: more arrays, and fields of its DeletionInfo."""
        return {}, {}

    def _open_deletions(self) -> dict[str, Array]:
        if self.info.deletions is None:
            return {}
        check_specs(self.info.deletions.files, self.deletion_specs(), self._layout.folder(self.info.deletions.name))
        return {name: open_array(self.deletion_path(name), file) for name, file in self.info.deletions.files.items()}

    def _read_deleted(self) -> npt.NDArray[np.bool_]:
        if self.info.deletions is None:
            return np.zeros(len(self), dtype=np.bool_)
        deleted = np.unpackbits(self.deletion_arrays["deleted"], count=len(self)).astype(np.bool_)
        if deleted.sum() != self.info.deletions.num_documents:
            message = f"expected {self.info.deletions.num_documents} deleted documents, found {deleted.sum()}: damaged"
            raise IndexFormatError(message, path=self.deletion_path("deleted"))
        check_array(self.deletion_path("deleted"), self.info.deletions.files["deleted"])
        return deleted

    def _blobs(self, name: str) -> Blobs | None:
        if f"{name}_blocks" not in self.arrays:
            return None
        path = IndexLayout.array(self.folder, f"{name}_blocks")
        return Blobs(self.arrays[f"{name}_blocks"], self.arrays[f"{name}_offsets"], num_blobs=len(self), path=path)

    def _damaged(self, name: str, problem: str) -> IndexFormatError:
        return damaged_array(self.folder, name, problem)
