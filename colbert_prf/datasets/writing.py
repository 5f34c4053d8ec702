"""Write a text file under a temporary name, and give it its own name only when it is complete."""

from __future__ import annotations

import gzip
import os
import secrets
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import IO, TYPE_CHECKING, cast

import zstandard

from colbert_prf.errors import DatasetError

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

__all__ = ["STANDARD_OUTPUT", "open_replacement"]

STANDARD_OUTPUT = "-"


@contextmanager
def open_replacement(name: str) -> Iterator[Callable[[str], object]]:
    """Lend a function that writes UTF-8 text to a file, compressed by its suffix (``.gz``, ``.zst``).

    An existing file is replaced at the end, in one step; after an exception it is as it was. A device or a pipe has no
    content to protect and is written directly, and so is standard output, which is ``-``.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "greeting.txt")
    ...     with open_replacement(str(path)) as write:
    ...         _ = write("hello")
    ...         before = path.exists()
    ...     before, path.read_text()
    (False, 'hello')
    """
    if name == STANDARD_OUTPUT:
        yield sys.stdout.write
        return
    inside: OSError | None = None
    try:
        path = _target(name)
        direct = path.exists() and not path.is_file()
        partial = path if direct else path.with_name(f".{path.name}.{secrets.token_hex(4)}.partial")
        try:
            with partial.open("wb" if direct else "xb") as stream:
                with _compressed(stream, Path(name).suffix.lower()) as out:
                    try:
                        yield _writer(out, name)
                    except OSError as error:
                        inside = error
                        raise
                stream.flush()
                if not direct:
                    os.fsync(stream.fileno())
            if not direct:
                partial.replace(path)
        finally:
            if not direct:
                partial.unlink(missing_ok=True)
    except OSError as error:
        if error is inside:  # the caller's own trouble, not that of this file
            raise
        raise DatasetError(_why_not(error), path=name) from error


def _target(name: str) -> Path:
    try:
        path = Path(name).resolve()  # a link stays a link, to the new content
    except ValueError as error:
        raise DatasetError(f"not a usable path: {error}", path=ascii(name)) from None
    if path.is_dir():
        raise IsADirectoryError
    if path.exists() and not os.access(path, os.W_OK):  # replacing would not ask
        raise PermissionError
    return path


def _writer(out: IO[bytes], name: str) -> Callable[[str], object]:
    def write(text: str) -> None:
        try:
            out.write(text.encode())
        except OSError as error:
            raise DatasetError(_why_not(error), path=name) from error

    return write


def _compressed(stream: IO[bytes], suffix: str) -> AbstractContextManager[IO[bytes]]:
    if suffix == ".gz":
        return cast("IO[bytes]", gzip.GzipFile(filename="", fileobj=stream, mode="wb", mtime=0))
    if suffix in (".zst", ".zstd"):
        return cast("IO[bytes]", zstandard.ZstdCompressor().stream_writer(stream, closefd=False))
    return nullcontext(stream)


def _why_not(error: OSError) -> str:
    if isinstance(error, IsADirectoryError):
        return "this is a directory; name a file to write"
    if isinstance(error, FileNotFoundError):
        return "cannot be written, for its folder does not exist; make the folder first"
    if isinstance(error, PermissionError):
        return "permission denied; choose a folder you may write to"
    return f"cannot be written: {error.strerror or error}"
