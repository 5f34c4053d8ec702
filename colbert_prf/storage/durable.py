"""Writing that survives a crash: a file is on disk in full, or it is not there under its name."""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO

__all__ = ["open_new", "sync_file", "sync_folder", "write_whole"]


def sync_file(descriptor: int) -> None:
    """Wait until what was written to an open file is on the disk."""
    os.fsync(descriptor)


def sync_folder(folder: Path) -> None:
    """Wait until the names in a folder are on the disk, where the system can (Windows cannot and need not)."""
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def open_new(path: Path) -> BinaryIO:
    """Open a file to write it from its beginning; what has its name goes first, so that no link is written through."""
    path.unlink(missing_ok=True)
    return path.open("xb")


def write_whole(path: Path, content: bytes) -> None:
    """Replace a file: a reader sees the old content or the new, whenever the power fails.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write_whole(Path(folder, "a.json"), b"{}")
    ...     [entry.name for entry in Path(folder).iterdir()]
    ['a.json']
    """
    temporary = path.with_name(f"{path.name}.new")
    with open_new(temporary) as file:
        file.write(content)
        file.flush()
        sync_file(file.fileno())
    temporary.replace(path)
    sync_folder(path.parent)
