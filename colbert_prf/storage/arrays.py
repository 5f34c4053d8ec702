"""Arrays on disk: ``.npy`` files written in pieces with a checksum, opened memory-mapped, and never unpickled.

A mapped file takes one of the descriptors a process may have, often 1,024. So that an index may have many small
segments, what is small is read instead.
"""

from __future__ import annotations

import ast
import io
import os
import zlib
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, TypeAlias

import numpy as np
import numpy.typing as npt

from colbert_prf.errors import IndexFormatError
from colbert_prf.storage.durable import sync_file
from colbert_prf.storage.files import open_file, refuse_link, unreadable

__all__ = ["Array", "ArrayInfo", "ArrayWriter", "check_array", "open_array", "rows_of", "write_array"]

Array: TypeAlias = npt.NDArray[Any]

READ_BYTES = 1 << 20
MAPPED_BYTES = 1 << 20
"""Files of at least so many bytes are mapped."""
_MAGIC = b"\x93NUMPY\x01\x00"


@dataclass(frozen=True)
class ArrayInfo:
    """What the manifest knows of an array: enough to see at once that a file is another one.

    The checksum is the CRC-32 of data and header, in this order, because the header is known last. CRC-32 finds every
    flip of up to three bits and runs at 2.3 GB/s here, against 1.0 for SHA-256; nobody is expected to forge an index.
    """

    dtype: str
    shape: tuple[int, ...]
    num_bytes: int
    checksum: int


class ArrayWriter:
    """Writes an array row by row, holding none of it.

    Parameters
    ----------
    path
        A new file.
    dtype
        Of the array.
    tail
        The shape of one row; empty for an array of one dimension.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     writer = ArrayWriter(Path(folder, "a.npy"), np.uint8, (2,))
    ...     writer.append(np.array([[1, 2], [3, 4]]))
    ...     info = writer.finish()
    ...     open_array(Path(folder, "a.npy"), info).tolist(), info.shape
    ([[1, 2], [3, 4]], (2, 2))
    """

    def __init__(self, path: Path, dtype: npt.DTypeLike, tail: tuple[int, ...] = ()) -> None:
        self.dtype = np.dtype(dtype).newbyteorder("<")
        self.tail = tail
        self.num_rows = 0
        self._checksum = 0
        self._file = path.open("xb")
        # NumPy leaves room for a longer first axis, so the header can be written again in place.
        self._file.write(self._header())

    def append(self, rows: Array) -> None:
        """Add rows, of shape (n, *tail)."""
        assert rows.shape[1:] == self.tail, (rows.shape, self.tail)
        data = np.ascontiguousarray(rows, dtype=self.dtype)
        if data.size:
            content = data.reshape(-1).view(np.uint8).data
            self._file.write(content)
            self._checksum = zlib.crc32(content, self._checksum)
        self.num_rows += len(rows)

    def finish(self) -> ArrayInfo:
        """Write the header, wait for the disk and close."""
        header = self._header()
        num_bytes = self._file.tell()
        self._file.seek(0)
        self._file.write(header)
        self._file.flush()
        sync_file(self._file.fileno())
        self._file.close()
        shape = (self.num_rows, *self.tail)
        return ArrayInfo(self.dtype.str, shape, num_bytes, zlib.crc32(header, self._checksum))

    def close(self) -> None:
        """Give up: close without finishing."""
        self._file.close()

    def __enter__(self) -> ArrayWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _header(self) -> bytes:
        buffer = io.BytesIO()
        np.lib.format.write_array_header_1_0(buffer, _description(self.dtype, (self.num_rows, *self.tail)))
        return buffer.getvalue()


def write_array(path: Path, array: Array) -> ArrayInfo:
    """Write a whole array."""
    with ArrayWriter(path, array.dtype, array.shape[1:]) as writer:
        writer.append(array)
        return writer.finish()


def open_array(path: Path, info: ArrayInfo) -> Array:
    """Map an array, after checking size, dtype and shape; its content is checked by :func:`check_array`.

    Raises
    ------
    IndexFormatError
        Naming the file, if it is missing, not the one the manifest speaks of, or a link, a pipe or a device.
    StorageError
        If it may not be read, or too many files are open.
    """
    with _opened(path) as file:
        start = _data_start(file, path, info)
        dtype = np.dtype(info.dtype)
        if 0 in info.shape:
            return np.empty(info.shape, dtype=dtype)
        if info.num_bytes < MAPPED_BYTES:
            return np.frombuffer(file.read(), dtype=dtype).reshape(info.shape)
        try:
            mapped = np.memmap(file, dtype=dtype, mode="r", offset=start, shape=info.shape)
        except OSError as error:
            raise unreadable(path, error) from error
    return mapped.view(np.ndarray)


def check_array(path: Path, info: ArrayInfo) -> None:
    """Read the whole file and compare its checksum.

    Raises
    ------
    IndexFormatError
        Naming the file, if a single bit is not as it was written.
    """
    with _opened(path) as file:
        start = _data_start(file, path, info)
        file.seek(0)
        header = file.read(start)
        checksum = 0
        for piece in iter(partial(file.read, READ_BYTES), b""):
            checksum = zlib.crc32(piece, checksum)
    if zlib.crc32(header, checksum) != info.checksum:
        raise IndexFormatError(
            "the checksum is not the one in the manifest: the file was damaged or replaced; restore it from a copy or "
            "build the index again",
            path=path,
        )


def _opened(path: Path) -> BinaryIO:
    """Open an array, which stands in a folder of the index: neither may be a link that leads elsewhere."""
    refuse_link(path.parent)
    return open_file(path)


def _data_start(file: BinaryIO, path: Path, info: ArrayInfo) -> int:
    """Where the data begins, after everything that can be checked without reading it."""
    size = os.fstat(file.fileno()).st_size
    if size != info.num_bytes:
        raise IndexFormatError(f"expected {info.num_bytes} bytes, found {size}: truncated or foreign", path=path)
    if file.read(len(_MAGIC)) != _MAGIC:
        raise IndexFormatError("not a .npy file of version 1.0: damaged or foreign", path=path)
    length = int.from_bytes(file.read(2), "little")
    header = file.read(length)
    start = file.tell()
    # Not NumPy's own reader: a damaged header sends it through the tokenizer, which raises whatever it likes.
    try:
        found = ast.literal_eval(header.decode("latin1").strip())
    except (ValueError, SyntaxError, MemoryError, RecursionError) as error:
        raise IndexFormatError(f"not an array ({error}): damaged or foreign", path=path) from error
    if found != _description(np.dtype(info.dtype), info.shape) or np.dtype(info.dtype).hasobject:
        raise IndexFormatError(f"expected {info.dtype} of shape {info.shape}, found {found}: a foreign file", path=path)
    return start


def _description(dtype: np.dtype[Any], shape: tuple[int, ...]) -> dict[str, Any]:
    return {"descr": dtype.str, "fortran_order": False, "shape": shape}


def rows_of(starts: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The rows of runs, one run after the other.

    >>> rows_of(np.array([7, 2]), np.array([2, 3])).tolist()
    [7, 8, 2, 3, 4]
    """
    before = np.cumsum(lengths) - lengths
    return np.repeat(starts - before, lengths) + np.arange(lengths.sum())
