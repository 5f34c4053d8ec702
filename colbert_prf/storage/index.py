"""The classes that all kinds of index on disk extend: reading a generation, and owning a folder."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from colbert_prf.storage.snapshot import StoredSnapshot
from colbert_prf.storage.store import Store
from colbert_prf.storage.verification import Verification

__all__ = ["SnapshotReader", "StoredIndex"]

SnapshotType = TypeVar("SnapshotType", bound=StoredSnapshot[Any])


class SnapshotReader(Generic[SnapshotType]):
    """Shows one generation of an index; each call sees the generation that is current when it begins.

    Documents are named by their ids. The library itself works with positions, which count from 0 over all segments and
    change with a merge; most methods that take an id take a position as well.
    """

    _snapshot: SnapshotType

    @property
    def snapshot(self) -> SnapshotType:
        """The generation this object shows: take it once if several calls must see the same."""
        return self._snapshot

    @property
    def generation(self) -> int:
        """The number of changes to the index, its creation included."""
        return self._snapshot.manifest.generation

    @property
    def num_documents(self) -> int:
        """The number of documents that are not deleted: N."""
        return self._snapshot.num_documents

    @property
    def num_positions(self) -> int:
        """One more than the largest position; deleted documents keep theirs until a merge."""
        return self._snapshot.num_positions

    def doc_id(self, position: int) -> str:
        """Read the id of a document."""
        return self._snapshot.doc_id(position)

    def text(self, document: str | int) -> str | None:
        """Read the text of a document, by its id or position; None if the index keeps no texts."""
        return self._snapshot.text(self._position(document))

    def metadata(self, document: str | int) -> dict[str, Any]:
        """Read the metadata of a document, by its id or position; empty if it has none."""
        return self._snapshot.metadata(self._position(document))

    def positions(self, doc_ids: Iterable[str]) -> npt.NDArray[np.int64]:
        """Find the positions of live documents; an :class:`InputError` names an unknown id."""
        return self._snapshot.positions(doc_ids)

    def _position(self, document: str | int) -> int:
        """Find the position of a document; an :class:`InputError` names an unknown or deleted id."""
        return int(self._snapshot.positions([document])[0]) if isinstance(document, str) else document


class StoredIndex(SnapshotReader[SnapshotType]):
    """An index folder, of which the object shows one generation.

    Its own changes take the object to the next generation; :meth:`reload` shows the changes of others.

    Parameters
    ----------
    path
        The folder.
    snapshot_type
        The class that opens a generation.
    verify_segment
        Refuses a segment whose arrays contradict each other.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        snapshot_type: type[SnapshotType],
        verify_segment: Callable[[SnapshotType, Any], None],
    ) -> None:
        self._store = Store(path, snapshot_type)
        self._verify_segment = verify_segment
        self._snapshot = self._store.open()

    @property
    def path(self) -> Path:
        """The folder."""
        return self._store.layout.path

    def reload(self) -> None:
        """Show the newest generation."""
        self._snapshot = self._store.open()

    def delete(self, doc_ids: Iterable[str]) -> None:
        """Delete documents, all of them or none; an :class:`InputError` names an unknown id."""
        self._store.delete(doc_ids)
        self.reload()

    def verify(self) -> Verification:
        """Check every byte against its checksum and every array against the others.

        Raises
        ------
        IndexFormatError
            It names the first file that has changed since it was written.
        """
        return self._store.verify(self._verify_segment)
