"""The life of an index folder, the same for every kind of index: create, change by one writer at a time, verify.

A change writes new files beside the old ones, then one new manifest, then removes what the manifest does not name. So a
reader sees one generation or the next, never a mixture, and a killed writer leaves the generation before.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import groupby
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from colbert_prf.errors import IndexFormatError, InputError, StorageError
from colbert_prf.storage.arrays import write_arrays
from colbert_prf.storage.durable import sync_folder
from colbert_prf.storage.files import refuse_link, storage_errors
from colbert_prf.storage.identifiers import SeenIds
from colbert_prf.storage.layout import IndexLayout
from colbert_prf.storage.lock import writer_lock
from colbert_prf.storage.manifest import Manifest, SegmentInfo
from colbert_prf.storage.segment import StoredSegment
from colbert_prf.storage.snapshot import StoredSnapshot
from colbert_prf.storage.verification import Verification, verify_snapshot

__all__ = ["IdCheck", "Store"]


class _HasId(Protocol):
    @property
    def doc_id(self) -> str: ...


DocumentType = TypeVar("DocumentType", bound=_HasId)
SnapshotType = TypeVar("SnapshotType", bound=StoredSnapshot[Any])
Siblings = Callable[[str, Callable[[str], bool]], Iterable[str]]


class IdCheck:
    """Refuses a document id that is given twice, and notes which documents of an index are replaced.

    Parameters
    ----------
    snapshot
        The generation that the documents are added to, if there is one.
    replacing
        Whether a document replaces the one of the same id; otherwise such an id is refused.
    siblings
        With ``replacing``: takes a document id and a test whether an id is in the index, and names further documents
        that are replaced with the document.

    Attributes
    ----------
    seen : SeenIds
        The ids given so far.
    replaced : array
        Whether the document at each position of ``snapshot`` is replaced.
    """

    def __init__(
        self,
        snapshot: StoredSnapshot[Any] | None = None,
        *,
        replacing: bool = False,
        siblings: Siblings | None = None,
    ) -> None:
        self.seen = SeenIds()
        self.replaced = np.zeros(snapshot.num_positions if snapshot is not None else 0, dtype=np.bool_)
        self._snapshot = snapshot
        self._replacing = replacing
        self._siblings = siblings

    def checked(self, documents: Iterable[DocumentType]) -> Iterator[DocumentType]:
        """Yield the documents, and check the id of each.

        Raises
        ------
        InputError
            It names an id that was given twice, or is in the index and must not be replaced.
        """
        snapshot = self._snapshot
        for document in documents:
            doc_id = document.doc_id
            if not self.seen.add(doc_id):
                raise InputError(f"the document id {doc_id!r} was given twice; ids must differ")
            position = snapshot.find(doc_id) if snapshot is not None else None
            if snapshot is not None and position is not None:
                if not self._replacing:
                    raise InputError(
                        f"the document {doc_id!r} is in the index already; to replace it use upsert instead of add, or "
                        "delete it first"
                    )
                self.replaced[position] = True
                if self._siblings is not None:
                    sibling_ids = self._siblings(doc_id, lambda sibling_id: snapshot.find(sibling_id) is not None)
                    self.replaced[snapshot.positions(sibling_ids)] = True
            yield document


class Store(Generic[SnapshotType]):
    """An index folder: reads its newest generation and writes new ones.

    Parameters
    ----------
    path
        The folder; it need not exist.
    snapshot_type
        The class that opens a generation of this kind of index.
    """

    def __init__(self, path: str | os.PathLike[str], snapshot_type: type[SnapshotType]) -> None:
        self.layout = IndexLayout.at(path)
        self._snapshot_type = snapshot_type

    def open(self) -> SnapshotType:
        """Open the newest generation."""
        return self._snapshot_type.open(self.layout)

    @contextmanager
    def creating(self, *, resume: bool = False) -> Iterator[None]:
        """Make the folder and hold its writer's lock; a new folder that stays empty is removed again.

        Parameters
        ----------
        resume
            Whether the folder may hold an interrupted build.

        Raises
        ------
        StorageError
            If there is something else in the folder.
        """
        layout = self.layout
        with storage_errors(layout.path, "create"):
            if layout.path.is_dir():  # refused before a lock is left in a folder of others
                self._require_new(resume=resume)
            is_new = not layout.path.exists()
            try:
                layout.path.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                message = f"cannot be made a folder ({error.strerror}); name another"
                raise StorageError(message, path=layout.path) from error
            try:
                with writer_lock(layout, "create"):
                    self._require_new(resume=resume)  # another writer may just have finished
                    yield
            except BaseException:
                if is_new and [entry.name for entry in layout.path.iterdir()] == [layout.lock.name]:
                    shutil.rmtree(layout.path, ignore_errors=True)
                raise

    def create(
        self,
        empty: Manifest,
        documents: Iterable[DocumentType],
        write: Callable[[SnapshotType, Iterable[DocumentType]], Sequence[SegmentInfo]],
    ) -> None:
        """Create an index of documents; its manifest appears when everything else is on the disk.

        Parameters
        ----------
        empty
            The manifest of generation 0, with settings and without segments.
        documents, write
            As in :meth:`add`.
        """
        with self.creating():
            self.layout.remove_unused(())
            try:
                segments = write(self._snapshot_type(self.layout, empty), IdCheck().checked(documents))
                if not segments:
                    raise InputError("an index needs at least one document, found none")
            except Exception:
                self.layout.remove_unused(())
                raise
            self.publish(empty.next(segments=tuple(segments)))

    @contextmanager
    def changing(self, action: str, *, empty: Manifest | None = None) -> Iterator[SnapshotType]:
        """Hold the writer's lock and yield the newest generation, after removing what a killed writer left.

        Parameters
        ----------
        action
            The name of the action, which other writers are told.
        empty
            The manifest of generation 0, to start from if there is no index yet.
        """
        with writer_lock(self.layout, action):
            if empty is not None and not self.layout.manifest.is_file():
                snapshot = self._snapshot_type(self.layout, empty)
            else:
                snapshot = self.open()
            self.layout.remove_unused(snapshot.manifest.folders)
            refuse_link(self.layout.building)
            if self.layout.building.exists():
                shutil.rmtree(self.layout.building)
            yield snapshot

    def publish(self, manifest: Manifest) -> None:
        """Make a manifest, whose files are all written, the generation that readers find."""
        sync_folder(self.layout.path)
        manifest.write(self.layout.manifest)
        self.layout.remove_unused(manifest.folders)

    def add(
        self,
        documents: Iterable[DocumentType],
        write: Callable[[SnapshotType, Iterable[DocumentType]], Sequence[SegmentInfo]],
        *,
        replacing: bool = False,
        siblings: Siblings | None = None,
    ) -> None:
        """Add documents as new segments, all of them or none; without documents there is no new generation.

        Parameters
        ----------
        documents
            Read once.
        write
            Takes a generation and documents, and writes these as segments of the next generation.
        replacing
            Whether documents of the same ids are replaced, in the same generation; otherwise they are refused.
        siblings
            As in :class:`IdCheck`.

        Raises
        ------
        InputError
            If an id was given twice, or is in the index and must not be replaced.
        """
        with self.changing("upsert" if replacing else "add") as snapshot:
            id_check = IdCheck(snapshot, replacing=replacing, siblings=siblings)
            segments = write(snapshot, id_check.checked(documents))
            if segments:
                old_segments = self.write_deletions(snapshot, id_check.replaced)
                self.publish(snapshot.manifest.next(segments=(*old_segments, *segments)))

    def delete(self, doc_ids: Iterable[str]) -> None:
        """Delete documents, all of them or none.

        Raises
        ------
        InputError
            If the index has no such document.
        """
        with self.changing("delete") as snapshot:
            deleted = np.zeros(snapshot.num_positions, dtype=np.bool_)
            deleted[snapshot.positions([doc_ids] if isinstance(doc_ids, str) else doc_ids)] = True
            if deleted.any():
                self.publish(snapshot.manifest.next(segments=self.write_deletions(snapshot, deleted)))

    def merge(
        self,
        write: Callable[[SnapshotType, list[Any], int], Sequence[SegmentInfo]],
        is_full: Callable[[Any], bool] = lambda segment: False,
    ) -> None:
        """Drop deleted documents and join neighbouring segments; if nothing changes, there is no new generation.

        Parameters
        ----------
        write
            Takes the generation, some of its segments and a number; writes the live documents of these segments as
            new segments, numbered from there.
        is_full
            Whether a segment is large enough to stay as it is, unless documents of it are deleted.
        """
        with self.changing("merge") as snapshot:
            segments: list[SegmentInfo] = []
            number = 0

            def stays(segment: StoredSegment) -> bool:
                return segment.info.deletions is None and is_full(segment)

            for all_stay, group in groupby(snapshot.segments, stays):
                members: list[StoredSegment] = list(group)
                if all_stay or (len(members) == 1 and members[0].info.deletions is None):
                    segments += [member.info for member in members]
                    continue
                for member in members:
                    member.check()
                merged = write(snapshot, members, number)
                segments += merged
                number += len(merged)
            if tuple(segments) != snapshot.manifest.segments:
                self.publish(snapshot.manifest.next(segments=tuple(segments)))

    def write_deletions(self, snapshot: SnapshotType, deleted: npt.NDArray[np.bool_]) -> tuple[SegmentInfo, ...]:
        """Write tombstones for more deleted documents, and return the segments for the next manifest.

        Parameters
        ----------
        snapshot
            The generation that has the documents.
        deleted
            The positions to delete, bool of shape (num_positions,).
        """
        name = self.layout.deletions_name(snapshot.manifest.generation + 1)
        folder = self.layout.folder(name)
        infos = []
        for start, segment in zip(snapshot.starts, snapshot.segments, strict=False):
            newly_deleted, info = deleted[start : start + len(segment)], segment.info
            if newly_deleted.any():
                folder.mkdir(exist_ok=True)
                all_deleted = newly_deleted | segment.deleted
                statistics, fields = segment.deletion_statistics(all_deleted)
                arrays = {"deleted": np.packbits(all_deleted), **statistics}
                files = write_arrays(folder, arrays, prefix=f"{info.name}.")
                num_deleted = int(all_deleted.sum())
                deletions = segment.DELETION_INFO(name=name, num_documents=num_deleted, files=files, **fields)
                info = replace(info, deletions=deletions)
            infos.append(info)
        if folder.is_dir():
            sync_folder(folder)
        return tuple(infos)

    def verify(self, verify_segment: Callable[[SnapshotType, Any], None]) -> Verification:
        """Check every byte and every array of the newest generation; see :func:`verify_snapshot`."""
        while True:
            snapshot = self.open()
            try:
                return verify_snapshot(snapshot, verify_segment)
            except IndexFormatError:
                # A writer may have published another generation meanwhile and removed the files of this one.
                if snapshot.MANIFEST.read(self.layout.manifest).generation == snapshot.manifest.generation:
                    raise

    def _require_new(self, *, resume: bool) -> None:
        """Refuse to create an index in a folder that has something else."""
        layout = self.layout
        if foreign := layout.foreign():
            raise StorageError(f"the folder is not empty, it has {foreign[0]!r}; give a new folder", path=layout.path)
        refuse_link(layout.building)
        is_interrupted = layout.building.exists()
        if layout.manifest.exists() and not (resume and is_interrupted):
            message = "there is an index in the folder already; add to it or upsert, or give a new folder"
            raise StorageError(message, path=layout.path)
        if is_interrupted and not resume:
            message = (
                "there is an interrupted build; continue it with resume=True (--resume on the command line), or remove "
                "it"
            )
            raise StorageError(message, path=layout.path)
