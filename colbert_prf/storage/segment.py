"""Reading a segment: what the segments of all kinds of index have, opened and checked in one way."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from colbert_prf.errors import IndexFormatError
from colbert_prf.storage.arrays import Array, ArrayInfo, check_array, open_array
from colbert_prf.storage.blobs import Blobs
from colbert_prf.storage.forms import Form, check_forms
from colbert_prf.storage.identifiers import Identifiers
from colbert_prf.storage.layout import IndexLayout
from colbert_prf.storage.manifest import DeletionInfo, SegmentInfo

__all__ = ["StoredSegment"]


class StoredSegment:
    """An immutable run of documents, memory-mapped; positions count from 0 within it.

    Parameters
    ----------
    layout
        Of the index.
    folder
        Of the segment.
    info
        What the manifest says of it.
    forms
        The forms its arrays must have.

    Attributes
    ----------
    arrays : dict
        All arrays, by name.
    doc_ids : Identifiers
        Document ids.
    deleted : array
        Whether each document is deleted, bool of shape (num_documents,).
    deletion_arrays : dict
        What is kept of the deleted documents, by name.
    """

    DELETION_INFO: ClassVar[type[DeletionInfo]] = DeletionInfo

    def __init__(self, layout: IndexLayout, folder: Path, info: SegmentInfo, forms: dict[str, Form]) -> None:
        self._layout = layout
        self.folder = folder
        self.info = info
        check_forms(info.files, forms, folder)
        self.arrays = {name: open_array(layout.array(folder, name), item) for name, item in info.files.items()}
        self.doc_ids = Identifiers(self.arrays, folder=folder)
        self._texts = self._blobs("texts")
        self.deletion_arrays = self._open_deletions()
        self.deleted = self._read_deleted()

    def __len__(self) -> int:
        return self.info.num_documents

    @property
    def has_texts(self) -> bool:
        """Whether texts are kept."""
        return self._texts is not None

    def text(self, position: int) -> str | None:
        """The text of a document, where texts are kept."""
        return self._texts.text(position) if self._texts is not None else None

    def files(self) -> dict[Path, ArrayInfo]:
        """Every file of the segment and of its deletions, with what the manifest says of it."""
        files = {self._layout.array(self.folder, name): item for name, item in self.info.files.items()}
        deletions = self.info.deletions.files if self.info.deletions else {}
        return files | {self.deletion_path(name): item for name, item in deletions.items()}

    def check(self) -> None:
        """Compare every file with its checksum.

        Before the segment is written again, for what is wrong in it would get a new checksum and never be found.

        Raises
        ------
        IndexFormatError
            Naming the first file that is not as it was written.
        """
        for path, info in self.files().items():
            check_array(path, info)

    def deletion_path(self, name: str) -> Path:
        """The file of an array about the deleted documents."""
        assert self.info.deletions is not None
        folder = self._layout.folder(self.info.deletions.name)
        path = self._layout.array(folder, f"{self.info.name}.{name}")
        earlier = self._layout.array(folder, self.info.name)  # the name that lexical indexes had for it
        return earlier if name == "deleted" and not path.exists() and earlier.exists() else path

    def deletion_forms(self) -> dict[str, Form]:
        """The forms of the arrays about the deleted documents."""
        return {"deleted": Form.of(np.uint8, shape=(-(-len(self) // 8),))}

    def deletion_details(self, deleted: npt.NDArray[np.bool_]) -> tuple[dict[str, Array], dict[str, int]]:
        """What a kind keeps of deleted documents besides which they are: arrays, and fields of its DeletionInfo."""
        return {}, {}

    def _open_deletions(self) -> dict[str, Array]:
        if self.info.deletions is None:
            return {}
        check_forms(self.info.deletions.files, self.deletion_forms(), self._layout.folder(self.info.deletions.name))
        return {name: open_array(self.deletion_path(name), item) for name, item in self.info.deletions.files.items()}

    def _read_deleted(self) -> npt.NDArray[np.bool_]:
        if self.info.deletions is None:
            return np.zeros(len(self), dtype=np.bool_)
        deleted = np.unpackbits(self.deletion_arrays["deleted"], count=len(self)).astype(np.bool_)
        expected, found = self.info.deletions.num_documents, int(deleted.sum())
        if found != expected:
            message = f"expected {expected} deleted documents, found {found}: damaged"
            raise IndexFormatError(message, path=self.deletion_path("deleted"))
        check_array(self.deletion_path("deleted"), self.info.deletions.files["deleted"])
        return deleted

    def _blobs(self, name: str) -> Blobs | None:
        if f"{name}_blocks" not in self.arrays:
            return None
        path = IndexLayout.array(self.folder, f"{name}_blocks")
        return Blobs(self.arrays[f"{name}_blocks"], self.arrays[f"{name}_offsets"], count=len(self), path=path)

    def _damaged(self, name: str, found: str) -> IndexFormatError:
        advice = "damaged; look for more with colbert-prf verify, restore it from a copy or build the index again"
        return IndexFormatError(f"{found}: {advice}", path=IndexLayout.array(self.folder, name))
