"""Files of an index as the system gives them: only plain files of its own folder, and errors that say what to do.

The one place that decides whether a path may be opened, and the one that turns an :class:`OSError` into an error of
ours.
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

# A link swapped in after it was looked for is not followed, and a pipe without a writer is not waited for.
_FLAGS: int = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)
"""What the system says when it cannot write more."""
_MISSING = (errno.ENOENT, errno.ENOTDIR)
_RIGHTS = "ask its owner for the right to use it, or change its mode"
_FILES = "merge the index, close others, or raise the limit (`ulimit -n`)"
_ADVICE = {
    **dict.fromkeys(_NO_ROOM, "what was there before is whole: make room and try again"),
    **dict.fromkeys((errno.EACCES, errno.EPERM), _RIGHTS),
    **dict.fromkeys((errno.EMFILE, errno.ENFILE), _FILES),
    errno.ENAMETOOLONG: "give a shorter path",
}
"""What to do where the file itself is not to blame."""


def check_reachable(path: Path) -> None:
    """Refuse a path under which the system could find no file, or may not look for one; it need not be there.

    Raises
    ------
    StorageError
        If it holds a NUL, is too long, or leads through a folder that may not be searched.
    """
    if "\0" in str(path):
        raise StorageError("no path has a NUL character in it; give another", path=repr(str(path))[1:-1])
    try:
        path.lstat()
    except OSError as error:
        if error.errno not in _MISSING:
            raise unreadable(path, error) from error


def refuse_link(path: Path) -> None:
    """Refuse a symbolic link, for it may lead anywhere; there need be nothing under the path.

    Raises
    ------
    IndexFormatError
        Naming the path.
    StorageError
        If the system may not look.
    """
    try:
        is_link = path.is_symlink()
    except OSError as error:
        raise unreadable(path, error) from error
    if is_link:
        message = "a symbolic link, and what belongs to an index stands in its own folder; put there what it leads to"
        raise IndexFormatError(message, path=path)


def open_file(path: Path, *, missing: str | None = None) -> BinaryIO:
    """Open a file of an index for reading, if it is a plain file: no link, pipe, device or folder.

    Parameters
    ----------
    path
        The file.
    missing
        What it means that there is no such file, for the message.

    Raises
    ------
    IndexFormatError
        Naming the file, if it is missing or not a plain file.
    StorageError
        If the file is not to blame: it may not be read, or too many files are open.

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
        found = "Is a directory" if stat.S_ISDIR(mode) else "a pipe, a socket or a device"
        raise unreadable(path, OSError(errno.EISDIR, found))
    return os.fdopen(descriptor, "rb")


def unreadable(path: Path, error: OSError) -> StorageError:
    """What to raise where the system refuses to read a file that an index should have."""
    advice = _ADVICE.get(error.errno or 0)
    if advice is None:
        message = f"cannot be read ({_reason(error)}); restore it from a copy or build the index again"
        return IndexFormatError(message, path=path)
    return StorageError(f"cannot be read ({_reason(error)}); {advice}", path=path)


@contextmanager
def storage_errors(folder: Path, action: str) -> Iterator[None]:
    """Turn what the system refuses to do with a folder of an index into a :class:`StorageError`.

    What it says of other files, such as a corpus that is read meanwhile, passes as it is.

    Parameters
    ----------
    folder
        Of the index.
    action
        What is done, for the message.

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
        named = Path(os.fsdecode(error.filename)) if isinstance(error.filename, str | bytes) else None
        if error.errno not in _NO_ROOM and (named is None or not _concerns(named, folder)):
            raise
        advice = _ADVICE.get(error.errno or 0, "look at what is there, or name another folder")
        raise StorageError(f"{action}: {_reason(error)}; {advice}", path=named or folder) from error


def _concerns(path: Path, folder: Path) -> bool:
    """Whether a path is that of a folder, of something in it, or of a folder it is in."""
    return path.is_relative_to(folder) or folder.is_relative_to(path)


def _reason(error: OSError) -> str:
    return error.strerror or str(error)
