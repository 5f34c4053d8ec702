"""Derived files: what readers compute from the segments, kept so that the next reader need not compute it again.

Derived files are no part of the index: the manifest does not list them, ``verify`` ignores them, and a writer removes
those of old segments. Readers write them without the writer's lock, each under a temporary name that becomes the real
one at the end. The last four bytes are the CRC-32 of all bytes before.
"""

from __future__ import annotations

import os
import uuid
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from colbert_prf.errors import IndexFormatError
from colbert_prf.storage.durable import sync_file, sync_folder
from colbert_prf.storage.files import open_file

__all__ = ["open_derived", "writing_derived"]

READ_BYTES = 1 << 20
CHECKSUM_BYTES = 4


@contextmanager
def writing_derived(path: Path) -> Iterator[Callable[[bytes], int]]:
    """Yield a function that writes the next bytes; the file gets its name when the block ends without an error.

    Parameters
    ----------
    path
        The file; its folder is made.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     with writing_derived(Path(folder, "derived", "a")) as write:
    ...         _ = write(b"some "), write(b"bytes")
    ...     with open_derived(Path(folder, "derived", "a")) as file:
    ...         file.read(10)
    b'some bytes'
    """
    path.parent.mkdir(exist_ok=True)
    temporary = path.with_name(f"{path.name}.{uuid.uuid4().hex}.new")
    checksum = 0

    def write(block: bytes) -> int:
        nonlocal checksum
        checksum = zlib.crc32(block, checksum)
        return file.write(block)

    try:
        with temporary.open("xb") as file:
            yield write
            file.write(checksum.to_bytes(CHECKSUM_BYTES, "little"))
            file.flush()
            sync_file(file.fileno())
        temporary.replace(path)
        sync_folder(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


def open_derived(path: Path) -> BinaryIO:
    """Open a derived file at its beginning, after checking every byte of it.

    Raises
    ------
    IndexFormatError
        It names the file if a byte has changed since it was written.
    StorageError
        If the file cannot be read.
    """
    file = open_file(path)
    try:
        end = os.fstat(file.fileno()).st_size - CHECKSUM_BYTES
        checksum = 0
        for block in iter(lambda: file.read(max(0, min(READ_BYTES, end - file.tell()))), b""):
            checksum = zlib.crc32(block, checksum)
        if end < 0 or file.read() != checksum.to_bytes(CHECKSUM_BYTES, "little"):
            raise IndexFormatError("the checksum is wrong: truncated, damaged or foreign; remove the file", path=path)
        file.seek(0)
    except BaseException:
        file.close()
        raise
    return file
