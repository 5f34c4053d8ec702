"""Files of an index as the system gives them: only plain files of its own folder, and errors that say what to do.

This is the one place that decides whether a path may be opened, and that turns an :class:`OSError` into a
:class:`StorageError`.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from colbert_prf.errors import IndexFormatError, StorageError

__all__ = ["check_reachable", "open_file", "refuse_link", "storage_errors", "unreadable"]

# The flags make `open` refuse a link that replaced the file after the check, and not wait for a pipe without a writer.
_FLAGS: int = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)
_MISSING = (errno.ENOENT, errno.ENOTDIR)
_PERMISSION_ADVICE = "ask its owner for the right to use it, or change its mode"
_OPEN_FILES_ADVICE = "merge the index, close others, or raise the limit (`ulimit -n`)"
_ADVICE = {
    **dict.fromkeys(_DISK_FULL, "what was there before is whole: make room and try again"),
    **dict.fromkeys((errno.EACCES, errno.EPERM), _PERMISSION_ADVICE),
    **dict.fromkeys((errno.EMFILE, errno.ENFILE), _OPEN_FILES_ADVICE),
    errno.ENAMETOOLONG: "give a shorter path",
}
"""What to do about errors that are no damage of the file."""


def check_reachable(path: Path) -> None:
    """Refuse a path that the system cannot look up; the file need not exist.

    Raises
    ------
    StorageError
        If the path holds a NUL, is too long, or leads through a folder that may not be searched.
    """
    if "\0" in str(path):
        raise StorageError("no path has a NUL character in it; give another", path=repr(str(path))[1:-1])
    try:
        path.lstat()
    except OSError as error:
        if error.errno not in _MISSING:
            raise unreadable(path, error) from error


def refuse_link(path: Path) -> None:
    """Refuse a symbolic link, because it may lead anywhere; the path need not exist.

    Raises
    ------
    IndexFormatError
        It names the path.
    StorageError
        If the system refuses to look at the path.
    """
    try:
        is_link = path.is_symlink()
    except OSError as error:
        raise unreadable(path, error) from error
    if is_link:
        message = "a symbolic link, and what belongs to an index stands in its own folder; put there what it leads to"
        raise IndexFormatError(message, path=path)


def open_file(path: Path, *, missing: str | None = None) -> BinaryIO:
    """Open a plain file of an index for reading; links, pipes, devices and folders are refused.

    Parameters
    ----------
    path
        The file.
    missing
        What a missing file means, for the message.

    Raises
    ------
    IndexFormatError
        It names the file if the file is missing or not a plain file.
    StorageError
        If the file itself may be sound: it may not be read, or too many files are open.

    Examples
    --------
    >>> open_file(Path("no.index/manifest.json"), missing="not an index")
    Traceback (most recent call last):
    ...
    colbert_prf.errors.IndexFormatError: no.index/manifest.json: no such file: not an index
    """
    refuse_link(path)
    try:
        descriptor = os.open(path, _FLAGS)
    except OSError as error:
        if missing is not None and error.errno in _MISSING:
            raise IndexFormatError(f"no such file: {missing}", path=path) from error
        raise unreadable(path, error) from error
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        file_type = "Is a directory" if stat.S_ISDIR(mode) else "a pipe, a socket or a device"
        raise unreadable(path, OSError(errno.EISDIR, file_type))
    return os.fdopen(descriptor, "rb")


def unreadable(path: Path, error: OSError) -> StorageError:
    """Make the error for a file of an index that the system refuses to read."""
    advice = _ADVICE.get(error.errno or 0)
    if advice is None:
        message = f"cannot be read ({_reason(error)}); restore it from a copy or build the index again"
        return IndexFormatError(message, path=path)
    return StorageError(f"cannot be read ({_reason(error)}); {advice}", path=path)


@contextmanager
def storage_errors(folder: Path, action: str) -> Iterator[None]:
    """Turn an :class:`OSError` about the folder of an index into a :class:`StorageError`.

    An error about another file, such as a corpus that is read meanwhile, is raised as it is.

    Parameters
    ----------
    folder
        The folder of the index.
    action
        The name of the action, for the message.

    Examples
    --------
    >>> with storage_errors(Path("no.index"), "add"):
    ...     Path("no.index/writer.json").read_text()
    Traceback (most recent call last):
    ...
    colbert_prf.errors.StorageError: no.index/writer.json: add: No such file or directory; look at what is there, or ...
    """
    try:
        yield
    except OSError as error:
        path = Path(os.fsdecode(error.filename)) if isinstance(error.filename, str | bytes) else None
        if error.errno not in _DISK_FULL and (path is None or not _overlap(path, folder)):
            raise
        advice = _ADVICE.get(error.errno or 0, "look at what is there, or name another folder")
        raise StorageError(f"{action}: {_reason(error)}; {advice}", path=path or folder) from error


def _overlap(path: Path, folder: Path) -> bool:
    """Tell whether one of two paths is the other or contains it."""
    return path.is_relative_to(folder) or folder.is_relative_to(path)


def _reason(error: OSError) -> str:
    return error.strerror or str(error)
