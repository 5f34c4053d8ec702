"""Crash-safe writing: after a crash a file is complete, or it does not exist under its name."""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO

__all__ = ["open_new", "sync_file", "sync_folder", "write_atomically"]


def sync_file(descriptor: int) -> None:
    """Wait until the content of an open file is on the disk."""
    os.fsync(descriptor)


def sync_folder(folder: Path) -> None:
    """Wait until the file names in a folder are on the disk, if the system can (Windows cannot and need not)."""
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def open_new(path: Path) -> BinaryIO:
    """Open a new file for writing; it removes what has the name, so that nothing is written through a link."""
    path.unlink(missing_ok=True)
    return path.open("xb")


def write_atomically(path: Path, content: bytes) -> None:
    """Replace a file: a reader sees the old content or the new one, even after a power failure.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write_atomically(Path(folder, "a.json"), b"{}")
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
