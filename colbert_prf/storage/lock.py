"""One writer at a time: the system itself releases the lock when the process ends, however it ends."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timezone

from filelock import BaseFileLock, FileLock, Timeout

from colbert_prf.errors import IndexLockedError, StorageError
from colbert_prf.storage.durable import open_new
from colbert_prf.storage.files import open_file, refuse_link, storage_errors
from colbert_prf.storage.layout import IndexLayout

__all__ = ["writer_lock"]


@contextmanager
def writer_lock(layout: IndexLayout, action: str) -> Iterator[None]:
    """Hold the writer's lock of an index folder, or fail at once if another writer holds it.

    Parameters
    ----------
    layout
        The layout of a folder that exists.
    action
        The name of the action, which other writers are told.

    Raises
    ------
    IndexLockedError
        If another process, or another :class:`Index` in this one, is writing; the message names it.
    StorageError
        If the folder does not exist or cannot be written to, its lock is a link, or the disk is full.
    """
    with storage_errors(layout.path, action):
        if not layout.path.is_dir():
            raise StorageError("there is no such folder", path=layout.path)
        refuse_link(layout.lock)  # not every version of filelock does
        lock = _acquire(layout)
        try:
            now = datetime.now(timezone.utc).isoformat(timespec="seconds")
            note = {"action": action, "host": socket.gethostname(), "process": os.getpid(), "since": now}
            with open_new(layout.writer) as file:
                file.write(json.dumps(note).encode())
            yield
        finally:
            with suppress(OSError):  # a note that stays does no harm, a lock would
                layout.writer.unlink(missing_ok=True)
            lock.release()


def _acquire(layout: IndexLayout) -> BaseFileLock:
    lock = FileLock(layout.lock, timeout=0)
    try:
        lock.acquire()
    except Timeout:
        raise IndexLockedError(
            f"{_holder(layout)} is changing the index; wait until it has finished or end it", path=layout.path
        ) from None
    except OSError as error:
        raise StorageError(f"cannot be written to ({error.strerror})", path=layout.path) from error
    return lock


def _holder(layout: IndexLayout) -> str:
    """Name the writer from its note, which may be half written, missing, or a dead writer's; only people read it."""
    try:
        with open_file(layout.writer) as file:
            note = json.loads(file.read())
        return f"process {note['process']} on {note['host']} (action: {note['action']}, since {note['since']})"
    except (StorageError, ValueError, KeyError, TypeError):
        return "another process"
