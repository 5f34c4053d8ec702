"""What all kinds of index on disk offer, whatever they keep of a document."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Generic, TypeVar

from colbert_prf.storage.snapshot import StoredSnapshot
from colbert_prf.storage.store import Store
from colbert_prf.storage.verification import Verification

__all__ = ["StoredIndex"]

SnapshotType = TypeVar("SnapshotType", bound=StoredSnapshot[Any])


class StoredIndex(Generic[SnapshotType]):
    """An index folder that shows one generation: its own changes take it to the next, others' only :meth:`reload` does.

    Parameters
    ----------
    path
        The folder.
    snapshot_type
        What opens a generation.
    check
        Refuses arrays of a segment that contradict each other.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        snapshot_type: type[SnapshotType],
        check: Callable[[SnapshotType, Any], None],
    ) -> None:
        self._store = Store(path, snapshot_type)
        self._check = check
        self._snapshot = self._store.open()

    @property
    def path(self) -> Path:
        """The folder."""
        return self._store.layout.path

    @property
    def snapshot(self) -> SnapshotType:
        """The generation this object shows: take it once where several calls must see the same."""
        return self._snapshot

    @property
    def generation(self) -> int:
        """How many times the index was changed, its creation included."""
        return self._snapshot.manifest.generation

    @property
    def num_documents(self) -> int:
        """Documents that are not deleted: N."""
        return self._snapshot.num_documents

    @property
    def num_positions(self) -> int:
        """One more than the largest position; deleted documents keep theirs until a merge."""
        return self._snapshot.num_positions

    def reload(self) -> None:
        """See the newest generation."""
        self._snapshot = self._store.open()

    def delete(self, doc_ids: Iterable[str]) -> None:
        """Delete documents, all of them or none; an unknown id is an :class:`InputError` that names it."""
        self._store.delete(doc_ids)
        self.reload()

    def verify(self) -> Verification:
        """Check every byte against its checksum and every array against the others.

        Raises
        ------
        IndexFormatError
            Naming the first file that is not as it was written.
        """
        return self._store.verify(self._check)
