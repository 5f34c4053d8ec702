"""One writer at a time: a lock the system itself releases when the process ends, however it ends."""

from __future__ import annotations

import errno
import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timezone

from filelock import FileLock, Timeout

from colbert_prf.errors import IndexLockedError, StorageError
from colbert_prf.index.layout import IndexLayout

__all__ = ["writing"]

NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)
"""What the system says when it cannot write more."""


@contextmanager
def writing(layout: IndexLayout, action: str) -> Iterator[None]:
    """Be the only writer of an index folder, or fail at once.

    Parameters
    ----------
    layout
        Of a folder that exists.
    action
        What is done, for the message another writer gets.

    Raises
    ------
    IndexLockedError
        If another process, or another :class:`Index` in this one, is writing; it says which.
    StorageError
        If the folder is not there or cannot be written to, or the disk is full.
    """
    if not layout.path.is_dir():
        raise StorageError("there is no such folder", path=layout.path)
    lock = FileLock(layout.lock, timeout=0)
    try:
        lock.acquire()
    except Timeout:
        raise IndexLockedError(
            f"{_holder(layout)} is changing the index; wait until it has finished or end it", path=layout.path
        ) from None
    except OSError as error:
        raise StorageError(f"cannot be written to ({error.strerror})", path=layout.path) from error
    try:
        now = datetime.now(timezone.utc).isoformat(timespec="seconds")
        who = {"action": action, "host": socket.gethostname(), "process": os.getpid(), "since": now}
        layout.writer.write_text(json.dumps(who), encoding="utf-8")
        yield
    except OSError as error:
        if error.errno not in NO_ROOM:
            raise
        raise StorageError(
            f"{action}: {os.strerror(error.errno)}; what was there before is whole: make room and try again",
            path=layout.path,
        ) from error
    finally:
        layout.writer.unlink(missing_ok=True)
        lock.release()


def _holder(layout: IndexLayout) -> str:
    """Name the writer; its note may be half written, or gone, or a dead writer's, and only people read it."""
    try:
        who = json.loads(layout.writer.read_text(encoding="utf-8"))
        return f"process {who['process']} on {who['host']} (action: {who['action']}, since {who['since']})"
    except (OSError, ValueError, KeyError, TypeError):
        return "another process"
