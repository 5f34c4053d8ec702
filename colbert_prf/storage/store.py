"""The life of an index folder, the same for every kind of index: made, changed by one writer at a time, verified.

A change writes new files beside the old ones, then one new manifest, then removes what no manifest names. So a reader
sees the generation before or the one after, never a mixture, and a writer that is killed leaves the one before.
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
from colbert_prf.storage.arrays import write_array
from colbert_prf.storage.durable import sync_folder
from colbert_prf.storage.files import refuse_link, storage_errors
from colbert_prf.storage.identifiers import SeenIds
from colbert_prf.storage.layout import IndexLayout
from colbert_prf.storage.lock import writing
from colbert_prf.storage.manifest import Manifest, SegmentInfo
from colbert_prf.storage.segment import StoredSegment
from colbert_prf.storage.snapshot import StoredSnapshot
from colbert_prf.storage.verification import Verification, verify_snapshot

__all__ = ["Intake", "Store"]


class _Document(Protocol):
    @property
    def doc_id(self) -> str: ...


DocumentType = TypeVar("DocumentType", bound=_Document)
SnapshotType = TypeVar("SnapshotType", bound=StoredSnapshot[Any])
Siblings = Callable[[str, Callable[[str], bool]], Iterable[str]]


class Intake:
    """Lets documents into an index, each id once.

    Parameters
    ----------
    old
        The generation they are added to, if there is one.
    replacing
        Whether a document of the same id is replaced; else it is an error.
    siblings
        With ``replacing``: given the id of a document and a test of ids, names known documents that it replaces too.

    Attributes
    ----------
    seen : SeenIds
        The ids so far.
    replaced : array
        Whether the document at each position of ``old`` is replaced.
    """

    def __init__(
        self,
        old: StoredSnapshot[Any] | None = None,
        *,
        replacing: bool = False,
        siblings: Siblings | None = None,
    ) -> None:
        self.seen = SeenIds()
        self.replaced = np.zeros(old.num_positions if old is not None else 0, dtype=np.bool_)
        self._old = old
        self._replacing = replacing
        self._siblings = siblings

    def checked(self, documents: Iterable[DocumentType]) -> Iterator[DocumentType]:
        """Pass documents on.

        Raises
        ------
        InputError
            Naming the id, if it was given twice, or is in the index and not to be replaced.
        """
        for document in documents:
            doc_id = document.doc_id
            if not self.seen.add(doc_id):
                raise InputError(f"the document id {doc_id!r} was given twice; ids must differ")
            position = self._old.find(doc_id) if self._old is not None else None
            if position is not None:
                if not self._replacing:
                    raise InputError(
                        f"the document {doc_id!r} is in the index already; to replace it use upsert instead of add, or "
                        "delete it first"
                    )
                self.replaced[position] = True
                if self._siblings is not None and self._old is not None:
                    self.replaced[self._old.positions(self._siblings(doc_id, self._is_known))] = True
            yield document

    def _is_known(self, doc_id: str) -> bool:
        return self._old is not None and self._old.find(doc_id) is not None


class Store(Generic[SnapshotType]):
    """An index folder.

    Parameters
    ----------
    path
        The folder, which need not be there.
    snapshot_type
        What opens a generation of this kind of index.
    """

    def __init__(self, path: str | os.PathLike[str], snapshot_type: type[SnapshotType]) -> None:
        self.layout = IndexLayout.at(path)
        self._snapshot_type = snapshot_type

    def open(self) -> SnapshotType:
        """Open the newest generation."""
        return self._snapshot_type.open(self.layout)

    @contextmanager
    def creating(self, *, resume: bool = False) -> Iterator[None]:
        """Make the folder and be its only writer; if nothing comes of it, take it away again.

        Parameters
        ----------
        resume
            Whether there may be an interrupted build.

        Raises
        ------
        StorageError
            If there is something in the folder.
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
                with writing(layout, "create"):
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
        """Make an index of documents; its manifest appears when everything else is on the disk.

        Parameters
        ----------
        empty
            Generation 0, with its settings and without segments.
        documents, write
            As in :meth:`add`.
        """
        with self.creating():
            self.layout.remove_unused(())
            try:
                written = write(self._snapshot_type(self.layout, empty), Intake().checked(documents))
                if not written:
                    raise InputError("an index needs at least one document, found none")
            except Exception:
                self.layout.remove_unused(())
                raise
            self.publish(empty.next(segments=tuple(written)))

    @contextmanager
    def changing(self, action: str, *, empty: Manifest | None = None) -> Iterator[SnapshotType]:
        """Be the only writer, and start from the newest generation without what a killed writer left.

        Parameters
        ----------
        action
            What is done, for the message another writer gets.
        empty
            Generation 0, to start from where there is no index yet.
        """
        with writing(self.layout, action):
            if empty is not None and not self.layout.manifest.is_file():
                newest = self._snapshot_type(self.layout, empty)
            else:
                newest = self.open()
            self.layout.remove_unused(newest.manifest.folders)
            refuse_link(self.layout.building)
            if self.layout.building.exists():
                shutil.rmtree(self.layout.building)
            yield newest

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
        """Add documents as new segments, all of them or none; nothing given makes no generation.

        Parameters
        ----------
        documents
            Read once.
        write
            Writes documents as segments of the generation after the one it is given.
        replacing
            Whether documents of the same ids are replaced, in the same generation; else they are an error.
        siblings
            As in :class:`Intake`.

        Raises
        ------
        InputError
            If an id was given twice, or is in the index and not to be replaced.
        """
        with self.changing("upsert" if replacing else "add") as old:
            intake = Intake(old, replacing=replacing, siblings=siblings)
            written = write(old, intake.checked(documents))
            if written:
                kept = self.without(old, intake.replaced)
                self.publish(old.manifest.next(segments=(*kept, *written)))

    def delete(self, doc_ids: Iterable[str]) -> None:
        """Delete documents, all of them or none.

        Raises
        ------
        InputError
            If the index has no such document.
        """
        wanted = [doc_ids] if isinstance(doc_ids, str) else doc_ids
        with self.changing("delete") as old:
            gone = np.zeros(old.num_positions, dtype=np.bool_)
            gone[old.positions(wanted)] = True
            if gone.any():
                self.publish(old.manifest.next(segments=self.without(old, gone)))

    def merge(
        self,
        write: Callable[[SnapshotType, list[Any], int], Sequence[SegmentInfo]],
        is_full: Callable[[Any], bool] = lambda segment: False,
    ) -> None:
        """Drop deleted documents and join neighbouring segments; nothing to do makes no generation.

        Parameters
        ----------
        write
            Takes the generation, some of its segments and a number; writes the live documents of these segments as
            new ones, numbered from there.
        is_full
            Whether a segment is large enough to stay as it is, unless documents of it are deleted.
        """
        with self.changing("merge") as old:
            segments: list[SegmentInfo] = []
            number = 0
            for stays, group in groupby(old.segments, lambda each: each.info.deletions is None and is_full(each)):
                members: list[StoredSegment] = list(group)
                if stays or (len(members) == 1 and members[0].info.deletions is None):
                    segments += [member.info for member in members]
                    continue
                for member in members:
                    member.check()
                written = write(old, members, number)
                segments += written
                number += len(written)
            if tuple(segments) != old.manifest.segments:
                self.publish(old.manifest.next(segments=tuple(segments)))

    def without(self, old: SnapshotType, gone: npt.NDArray[np.bool_]) -> tuple[SegmentInfo, ...]:
        """The segments of a generation with more documents deleted, for the generation after it.

        Parameters
        ----------
        old
            The generation.
        gone
            Which positions to delete, of shape (num_positions,).
        """
        layout, name = self.layout, self.layout.deletions_name(old.manifest.generation + 1)
        folder = layout.folder(name)
        infos = []
        for start, segment in zip(old.starts, old.segments, strict=False):
            here, info = gone[start : start + len(segment)], segment.info
            if here.any():
                folder.mkdir(exist_ok=True)
                deleted = here | segment.deleted
                arrays, fields = segment.deletion_details(deleted)
                files = {
                    key: write_array(layout.array(folder, f"{info.name}.{key}"), array)
                    for key, array in {"deleted": np.packbits(deleted), **arrays}.items()
                }
                deletions = segment.DELETION_INFO(name=name, num_documents=int(deleted.sum()), files=files, **fields)
                info = replace(info, deletions=deletions)
            infos.append(info)
        if folder.is_dir():
            sync_folder(folder)
        return tuple(infos)

    def verify(self, check: Callable[[SnapshotType, Any], None]) -> Verification:
        """Check every byte and every array of the newest generation; see :func:`verify_snapshot`."""
        while True:
            snapshot = self.open()
            try:
                return verify_snapshot(snapshot, check)
            except IndexFormatError:
                # A writer may have published another generation meanwhile and removed the files of this one.
                if snapshot.MANIFEST.read(self.layout.manifest).generation == snapshot.manifest.generation:
                    raise

    def _require_new(self, *, resume: bool) -> None:
        """Refuse to build where something else is."""
        layout = self.layout
        if foreign := layout.foreign():
            raise StorageError(f"the folder is not empty, it has {foreign[0]!r}; give a new folder", path=layout.path)
        refuse_link(layout.building)
        interrupted = layout.building.exists()
        if layout.manifest.exists() and not (resume and interrupted):
            message = "the folder is not empty, there is an index already; open it, or give a new folder"
            raise StorageError(message, path=layout.path)
        if interrupted and not resume:
            message = (
                "there is an interrupted build; continue it with resume=True (--resume on the command line), or remove "
                "it"
            )
            raise StorageError(message, path=layout.path)
