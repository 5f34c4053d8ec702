"""Every exception colbert-prf raises on purpose.

::

    ColbertPrfError
    ├── InputError            a value given by the caller cannot be used
    │   ├── DatasetError      a corpus, topics, qrels or run file is malformed
    │   └── TextError         a text cannot be encoded
    ├── ModelError            a model folder or checkpoint cannot be used
    │   └── ProjectionError   a text encoder without ColBERT's projection
    ├── StorageError          an index folder, or a file of token frequencies, cannot be used
    │   ├── IndexFormatError  a file is missing, damaged, foreign or of another format version
    │   ├── IndexLockedError  another writer is at work
    │   └── IndexMismatchError  the index was made with another model, or from other documents
    ├── ServiceError          a server refused a request, or cannot be reached
    ├── ClusterError          a Ray cluster cannot be reached, or its workers cannot be used
    │   └── ShardError        a part of a distributed index does not answer
    └── MissingExtraError     an optional dependency is not installed

    UserWarning
    ├── DatasetWarning        judgements or a run are odd, but can be used
    └── OutgrownCodecWarning  an index has outgrown its codec, or holds vectors unlike its training vectors

A message says what was wrong, what was found and what to do. The command line prints it as one line and exits with 1.
"""

from __future__ import annotations

import operator
import os
from collections.abc import Iterable
from typing import Any

__all__ = [
    "ClusterError",
    "ColbertPrfError",
    "DatasetError",
    "DatasetWarning",
    "IndexFormatError",
    "IndexLockedError",
    "IndexMismatchError",
    "InputError",
    "MissingExtraError",
    "ModelError",
    "OutgrownCodecWarning",
    "ProjectionError",
    "ServiceError",
    "ShardError",
    "StorageError",
    "TextError",
    "require_positive",
    "whole_number",
]


class ColbertPrfError(Exception):
    """The root of the tree: catch it to catch everything this package raises on purpose.

    Every error can be pickled, so that it reaches the caller from another process as it was raised.
    """

    def __reduce__(self) -> tuple[Any, ...]:
        return _as_it_was, (type(self), self.args, self.__dict__)


def _as_it_was(kind: type[ColbertPrfError], arguments: tuple[Any, ...], attributes: dict[str, Any]) -> ColbertPrfError:
    """Make an error from its parts: constructors put messages together from other arguments."""
    error = kind.__new__(kind, *arguments)
    error.__dict__.update(attributes)
    return error


class InputError(ColbertPrfError, ValueError):
    """A value given by the caller cannot be used."""


class DatasetError(InputError):
    """A corpus, topics, qrels or run file is malformed.

    Parameters
    ----------
    message
        What was wrong, what was found and what to do.
    path
        The file, as the user named it; ``-`` is standard input.
    line
        The line, counted from 1, if the error is on one.

    Examples
    --------
    >>> print(DatasetError("expected 2 columns, found 1", path="corpus.tsv", line=3))
    corpus.tsv, line 3: expected 2 columns, found 1
    """

    def __init__(self, message: str, *, path: str | None = None, line: int | None = None) -> None:
        self.path = path
        self.line = line
        location = ", ".join(part for part in (path, f"line {line}" if line is not None else None) if part)
        super().__init__(f"{location}: {message}" if location else message)


class TextError(InputError):
    """A text cannot be encoded."""


class ModelError(ColbertPrfError):
    """A model folder or checkpoint is missing, damaged or of a kind that cannot be used."""


class ProjectionError(ModelError):
    """A checkpoint has no ColBERT projection: it can be trained, but not used."""


class StorageError(ColbertPrfError):
    """An index folder, or a file of token frequencies, cannot be used.

    Parameters
    ----------
    message
        What was wrong, what was found and what to do.
    path
        The file or folder.

    Examples
    --------
    >>> print(IndexFormatError("expected 80 bytes, found 12", path="my.index/manifest.json"))
    my.index/manifest.json: expected 80 bytes, found 12
    """

    def __init__(self, message: str, *, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        super().__init__(f"{self.path}: {message}")


class IndexFormatError(StorageError):
    """A file of an index is missing, truncated, damaged, foreign, or of another format version."""


class IndexLockedError(StorageError):
    """Another process is changing the index."""


class IndexMismatchError(StorageError):
    """The index was made with another model, or a build is resumed with other documents or settings."""


class ServiceError(ColbertPrfError):
    """A server refused a request, or cannot be reached.

    Parameters
    ----------
    message
        What was wrong, what was found and what to do.
    status
        The HTTP status; None if the server did not answer.
    code
        The server's name of the error, such as ``unknown_index``.

    Examples
    --------
    >>> ServiceError("there is no index 'fish'", status=404, code="unknown_index").code
    'unknown_index'
    """

    def __init__(self, message: str, *, status: int | None = None, code: str = "unreachable") -> None:
        self.status = status
        self.code = code
        super().__init__(message)


class ClusterError(ColbertPrfError):
    """A Ray cluster cannot be reached, or its workers cannot be used."""


class ShardError(ClusterError):
    """A part of a distributed index does not answer.

    Parameters
    ----------
    message
        What was wrong, what was found and what to do.
    shards
        The numbers of the shards that do not answer.
    """

    def __init__(self, message: str, *, shards: Iterable[int] = ()) -> None:
        self.shards = frozenset(shards)
        super().__init__(message)


class DatasetWarning(UserWarning):
    """Judgements or a run are odd: they can be used, yet may not be what was meant."""


class OutgrownCodecWarning(UserWarning):
    """An index has outgrown its codec, or holds vectors unlike those that the codec was trained on."""


class MissingExtraError(ColbertPrfError, ImportError):
    """An optional dependency is not installed.

    Examples
    --------
    >>> print(MissingExtraError("Loading a PyTorch checkpoint", extra="hub"))
    Loading a PyTorch checkpoint needs packages that are not installed: pip install "colbert-prf[hub]"
    """

    def __init__(self, purpose: str, *, extra: str) -> None:
        self.extra = extra
        super().__init__(f'{purpose} needs packages that are not installed: pip install "colbert-prf[{extra}]"')


def require_positive(**numbers: int | None) -> None:
    """Refuse an argument that is no whole number of at least 1; None passes.

    Raises
    ------
    InputError
        It names the argument.

    Examples
    --------
    >>> require_positive(k=10, depth=None)
    >>> require_positive(threads=0)
    Traceback (most recent call last):
    ...
    colbert_prf.errors.InputError: threads must be at least 1, found 0
    """
    for name, number in numbers.items():
        if number is not None:
            whole_number(name, number, least=1)


def whole_number(name: str, value: Any, *, least: int | None = None) -> int:
    """Return a whole number of any integer type as an ``int``.

    Raises
    ------
    InputError
        It names the argument if the value is no whole number, or is below ``least`` where there is such a limit.

    Examples
    --------
    >>> whole_number("seed", 1.5, least=0)
    Traceback (most recent call last):
    ...
    colbert_prf.errors.InputError: seed must be a whole number, found 1.5
    """
    try:
        number = operator.index(value)
    except TypeError:
        raise InputError(f"{name} must be a whole number, found {value!r:.80}") from None
    if least is not None and number < least:
        raise InputError(f"{name} must be at least {least}, found {number}")
    return number
