"""Arrays on disk: ``.npy`` files written in pieces with a checksum, opened memory-mapped, and never unpickled.

A mapped file takes one of the descriptors a process may have, often 1,024. Small files are read instead of mapped, so
that an index may have many small segments.
"""

from __future__ import annotations

import io
import os
import zlib
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

import numpy as np
import numpy.typing as npt

from colbert_prf.errors import IndexFormatError
from colbert_prf.storage.durable import sync_file
from colbert_prf.storage.files import open_file, refuse_link, unreadable
from colbert_prf.storage.layout import IndexLayout

__all__ = [
    "Array",
    "ArrayInfo",
    "ArrayWriter",
    "check_array",
    "expand_ranges",
    "open_array",
    "write_array",
    "write_arrays",
]

Array: TypeAlias = npt.NDArray[Any]

READ_BYTES = 1 << 20
MAPPED_BYTES = 1 << 20
"""The size from which a file is mapped."""
_MAGIC = b"\x93NUMPY\x01\x00"


@dataclass(frozen=True)
class ArrayInfo:
    """The manifest's description of an array, which reveals a file of another size, dtype or shape at once.

    The checksum is the CRC-32 of the data and then the header, because the header is known last. CRC-32 finds every
    flip of up to three bits and runs at 2.3 GB/s, against 1.0 for SHA-256; nobody is expected to forge an index.
    """

    dtype: str
    shape: tuple[int, ...]
    num_bytes: int
    checksum: int


class ArrayWriter:
    """Writes an array row by row, without holding it in memory.

    Parameters
    ----------
    path
        A new file.
    dtype
        The dtype of the array.
    row_shape
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

    def __init__(self, path: Path, dtype: npt.DTypeLike, row_shape: tuple[int, ...] = ()) -> None:
        self.dtype = np.dtype(dtype).newbyteorder("<")
        self.row_shape = row_shape
        self.num_rows = 0
        self._checksum = 0
        self._file = path.open("xb")
        self._file.write(self._header())

    def append(self, rows: Array) -> None:
        """Add rows, of shape (n, *row_shape)."""
        assert rows.shape[1:] == self.row_shape, (rows.shape, self.row_shape)
        data = np.ascontiguousarray(rows, dtype=self.dtype)
        if data.size:
            content = data.reshape(-1).view(np.uint8).data
            self._file.write(content)
            self._checksum = zlib.crc32(content, self._checksum)
        self.num_rows += len(rows)

    def finish(self) -> ArrayInfo:
        """Write the header, wait for the disk and close the file."""
        header = self._header()
        num_bytes = self._file.tell()
        self._file.seek(0)
        self._file.write(header)
        self._file.flush()
        sync_file(self._file.fileno())
        self._file.close()
        shape = (self.num_rows, *self.row_shape)
        return ArrayInfo(self.dtype.str, shape, num_bytes, zlib.crc32(header, self._checksum))

    def close(self) -> None:
        """Close the file without finishing it."""
        self._file.close()

    def _header(self) -> bytes:
        return _header(self.dtype, (self.num_rows, *self.row_shape))


def write_array(path: Path, array: Array) -> ArrayInfo:
    """Write a whole array to a new file."""
    with closing(ArrayWriter(path, array.dtype, array.shape[1:])) as writer:
        writer.append(array)
        return writer.finish()


def write_arrays(folder: Path, arrays: Mapping[str, Array], *, prefix: str = "") -> dict[str, ArrayInfo]:
    """Write arrays to the files of their names in a folder, which may share a prefix."""
    return {name: write_array(IndexLayout.array(folder, f"{prefix}{name}"), array) for name, array in arrays.items()}


def open_array(path: Path, info: ArrayInfo) -> Array:
    """Open an array, memory-mapped, and check its size, dtype and shape; :func:`check_array` checks its content.

    Raises
    ------
    IndexFormatError
        It names the file if the file is missing, does not fit ``info``, or is a link, a pipe or a device.
    StorageError
        If the file may not be read, or too many files are open.
    """
    with _open_array_file(path) as file:
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
        It names the file if a single bit has changed since it was written.
    """
    with _open_array_file(path) as file:
        start = _data_start(file, path, info)
        file.seek(0)
        header = file.read(start)
        checksum = 0
        for block in iter(partial(file.read, READ_BYTES), b""):
            checksum = zlib.crc32(block, checksum)
    if zlib.crc32(header, checksum) != info.checksum:
        raise IndexFormatError(
            "the checksum is not the one in the manifest: the file was damaged or replaced; restore it from a copy or "
            "build the index again",
            path=path,
        )


def expand_ranges(starts: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """List the numbers of several ranges, one range after the other.

    >>> expand_ranges(np.array([7, 2]), np.array([2, 3])).tolist()
    [7, 8, 2, 3, 4]
    """
    num_before = np.cumsum(lengths) - lengths
    return np.repeat(starts - num_before, lengths) + np.arange(lengths.sum())


def _open_array_file(path: Path) -> BinaryIO:
    """Open the file of an array; neither the file nor its folder may be a link that leads elsewhere."""
    refuse_link(path.parent)
    return open_file(path)


def _data_start(file: BinaryIO, path: Path, info: ArrayInfo) -> int:
    """Return where the data begins, after every check that does not read the data."""
    size = os.fstat(file.fileno()).st_size
    if size != info.num_bytes:
        raise IndexFormatError(f"expected {info.num_bytes} bytes, found {size}: truncated or foreign", path=path)
    if file.read(len(_MAGIC)) != _MAGIC:
        raise IndexFormatError("not a .npy file of version 1.0: damaged or foreign", path=path)
    description = file.read(int.from_bytes(file.read(2), "little")).rstrip()
    # Compared as text, because parsing would fail in many ways: NumPy writes one spelling, and pads it with spaces.
    dtype = np.dtype(info.dtype)
    if dtype.hasobject or description != _header(dtype, info.shape)[len(_MAGIC) + 2 :].rstrip():
        message = f"expected {info.dtype} of shape {info.shape}, found {description.decode('latin1'):.200}"
        raise IndexFormatError(f"{message}: damaged or foreign", path=path)
    return file.tell()


def _header(dtype: np.dtype[Any], shape: tuple[int, ...]) -> bytes:
    """Return the header of a ``.npy`` file; NumPy leaves room for a longer first axis, so it can be written again."""
    buffer = io.BytesIO()
    description = {"descr": dtype.str, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(buffer, description)
    return buffer.getvalue()
