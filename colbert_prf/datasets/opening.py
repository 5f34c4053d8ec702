"""Open a file, or standard input, as numbered lines of strict UTF-8, compressed or not.

Compression is recognised by its first bytes, never by the name: a gzip file called ``corpus.tsv`` is read all the same.
Everything that can go wrong (a directory, a missing file, no permission, a damaged archive, another encoding) is a
:class:`~colbert_prf.errors.DatasetError` with its own message.
"""

from __future__ import annotations

import difflib
import os
import re
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from itertools import chain, islice
from pathlib import Path
from typing import BinaryIO, Protocol, TypeAlias, TypeVar

import zstandard

from colbert_prf.errors import DatasetError

__all__ = ["STANDARD_INPUT", "Source", "open_binary", "read_lines", "started"]

Source: TypeAlias = "str | os.PathLike[str]"
"""A path; the string ``-`` is standard input."""

STANDARD_INPUT = "-"

_CHUNK_BYTES = 1 << 20
_PACKED_CHUNK_BYTES = 1 << 14  # smaller: a thousand times as much may come out
_HEAD_BYTES = 10
_GZIP = re.compile(rb"\x1f\x8b\x08")
_ZSTD = re.compile(rb"\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18")  # a pzstd file begins with a skippable frame
_REFUSED = {
    re.compile(rb"PAR1\x15"): "a Parquet file; only a corpus is read from Parquet, with format='parquet'",
    re.compile(rb"PK\x03\x04"): "a zip archive; unpack it first (only gzip and zstd are read as they are)",
    re.compile(rb"BZh[1-9]1AY&SY"): "compressed with bzip2; unpack it first (only gzip and zstd are read as they are)",
    re.compile(rb"\xfd7zXZ\x00"): "compressed with xz; unpack it first (only gzip and zstd are read as they are)",
}

_Item = TypeVar("_Item")


class _Decompressor(Protocol):
    """What zlib's and zstandard's decompression objects have in common."""

    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, /) -> bytes: ...


def read_lines(source: Source) -> Iterator[tuple[int, str]]:
    r"""Read the lines of a file without their ends, numbered from 1.

    Parameters
    ----------
    source
        A path, or ``-`` for standard input; plain, gzip or zstd.

    Yields
    ------
    tuple of int and str
        The line number and the line, without ``\n`` or ``\r\n``. A UTF-8 byte order mark is dropped.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "two.txt")
    ...     _ = path.write_bytes(b"one\r\ntwo\n")
    ...     list(read_lines(path))
    [(1, 'one'), (2, 'two')]
    """
    name = os.fspath(source)
    with open_binary(source) as stream:
        for number, raw in enumerate(_split(_plain_chunks(stream, name)), start=1):
            line = _decode(raw.removesuffix(b"\r"), name, number)
            yield number, line.removeprefix("\ufeff") if number == 1 else line


def started(items: Iterator[_Item]) -> Iterator[_Item]:
    """Draw the first item now, so that a missing file is an error of the call and not of a later loop.

    Examples
    --------
    >>> list(started(iter([1, 2, 3])))
    [1, 2, 3]
    """
    for first in items:
        return chain([first], items)
    return iter(())


@contextmanager
def open_binary(source: Source) -> Iterator[BinaryIO]:
    """Open the raw bytes of a source; a failure to open or to read is a ``DatasetError``.

    Standard input is lent, not closed.
    """
    name = os.fspath(source)
    try:
        with _standard_input() if name == STANDARD_INPUT else _open_path(name) as stream:
            yield stream
    except OSError as error:
        raise DatasetError(_why_not(Path(name), error), path=name) from error


def _standard_input() -> AbstractContextManager[BinaryIO]:
    if sys.stdin is None:
        raise DatasetError("standard input is closed; name a file instead", path=STANDARD_INPUT)
    return nullcontext(sys.stdin.buffer)


def _open_path(name: str) -> AbstractContextManager[BinaryIO]:
    path = Path(name)
    try:
        if path.is_dir():  # asked first: where opening a directory is "permission denied", the message would mislead
            raise IsADirectoryError
        return path.open("rb")
    except ValueError as error:
        raise DatasetError(f"not a usable path: {error}", path=ascii(name)) from None


def _why_not(path: Path, error: OSError) -> str:
    if isinstance(error, IsADirectoryError):
        names = sorted(_names_in(path))
        held = f" (it holds {', '.join(names[:3])}{', …' if names[3:] else ''})" if names else ""
        return f"this is a directory; name one file in it{held}"
    if isinstance(error, FileNotFoundError):
        folder = path.parent
        if not folder.is_dir():
            return f"no such file, for there is no folder {folder}; check the path"
        close = difflib.get_close_matches(path.name, _names_in(folder), n=1)
        return f"no such file; did you mean {close[0]}?" if close else "no such file; check the path"
    if isinstance(error, PermissionError):
        return "permission denied; ask its owner, or chmod +r it"
    return f"cannot be read: {error.strerror or error}"


def _names_in(folder: Path) -> list[str]:
    return [entry.name for entry in islice(folder.iterdir(), 1000)] if os.access(folder, os.R_OK) else []


def _plain_chunks(stream: BinaryIO, name: str) -> Iterator[bytes]:
    head = stream.read(_HEAD_BYTES)
    read = getattr(stream, "read1", stream.read)  # read1 hands over a pipe's bytes as they come
    packed = _GZIP.match(head) or _ZSTD.match(head)
    chunks = chain([head], iter(lambda: read(_PACKED_CHUNK_BYTES if packed else _CHUNK_BYTES), b""))
    for magic, what in _REFUSED.items():
        if magic.match(head):
            raise DatasetError(f"this is {what}", path=name)
    if _GZIP.match(head):
        return _decompress(chunks, lambda: zlib.decompressobj(wbits=31), (zlib.error,), "gzip", name)
    if _ZSTD.match(head):
        context = zstandard.ZstdDecompressor()
        return _decompress(chunks, context.decompressobj, (zstandard.ZstdError,), "zstd", name)
    return chunks


def _decompress(
    chunks: Iterator[bytes],
    start: Callable[[], _Decompressor],
    damage: tuple[type[Exception], ...],
    kind: str,
    name: str,
) -> Iterator[bytes]:
    decompressor: _Decompressor | None = None
    try:
        for chunk in chunks:
            data = chunk
            while data:
                if decompressor is None:
                    data = data.lstrip(b"\0") if kind == "gzip" else data  # gzip allows zeros after a member
                    if not data:
                        break
                    decompressor = start()
                yield decompressor.decompress(data)
                if not decompressor.eof:
                    break
                data, decompressor = decompressor.unused_data, None
    except damage as error:
        raise DatasetError(f"the {kind} stream is damaged ({error}); fetch or compress it again", path=name) from error
    if decompressor is not None:
        raise DatasetError(f"the {kind} stream is cut short; fetch or compress it again", path=name)


def _split(chunks: Iterator[bytes]) -> Iterator[bytes]:
    rest = b""
    for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        yield from lines
    if rest:
        yield rest


def _decode(raw: bytes, name: str, number: int) -> str:
    try:
        line = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        if number == 1 and raw.startswith((b"\xff\xfe", b"\xfe\xff")):
            raise DatasetError("UTF-16 text; convert it: iconv -f utf-16 -t utf-8", path=name, line=1) from None
        message = (
            f"byte 0x{raw[error.start]:02x} at column {error.start + 1} is not UTF-8; "
            "convert the file, for Latin-1 with: iconv -f latin1 -t utf-8"
        )
        raise DatasetError(message, path=name, line=number) from None
    if number == 1 and "\0" in line:
        message = "a NUL byte in the first line: a binary file, or UTF-16 text (iconv -f utf-16 -t utf-8)"
        raise DatasetError(message, path=name, line=1)
    return line
