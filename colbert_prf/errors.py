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
    └── MissingExtraError     an optional dependency is not installed

    UserWarning
    ├── DatasetWarning        judgements or a run are odd, but can be used
    └── OutgrownCodecWarning  an index has grown far past what its codec was trained for

A message says what was wrong, what was found and what to do. The command line prints it as one line and exits with 1.
"""

from __future__ import annotations

import os

__all__ = [
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
    "StorageError",
    "TextError",
    "require_positive",
]


class ColbertPrfError(Exception):
    """The root of the tree: catch it to catch everything this package raises on purpose."""


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
        The line, counted from 1, where there is one.

    Examples
    --------
    >>> print(DatasetError("expected 2 columns, found 1", path="corpus.tsv", line=3))
    corpus.tsv, line 3: expected 2 columns, found 1
    """

    def __init__(self, message: str, *, path: str | None = None, line: int | None = None) -> None:
        self.path = path
        self.line = line
        place = ", ".join(part for part in (path, f"line {line}" if line is not None else None) if part)
        super().__init__(f"{place}: {message}" if place else message)


class TextError(InputError):
    """A text cannot be encoded."""


class ModelError(ColbertPrfError):
    """A model folder or checkpoint is missing, damaged or of a kind that cannot be used."""


class ProjectionError(ModelError):
    """A text encoder without ColBERT's projection: it can be trained, not used."""


class StorageError(ColbertPrfError):
    """An index folder, or a file of token frequencies, cannot be used.

    Parameters
    ----------
    message
        What was wrong, what was found and what to do.
    path
        The file or folder concerned.

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
        Of HTTP; None if there was no answer.
    code
        The server's word for it, such as ``unknown_index``.

    Examples
    --------
    >>> ServiceError("there is no index 'fish'", status=404, code="unknown_index").code
    'unknown_index'
    """

    def __init__(self, message: str, *, status: int | None = None, code: str = "unreachable") -> None:
        self.status = status
        self.code = code
        super().__init__(message)


class DatasetWarning(UserWarning):
    """Judgements or a run are odd: they can be used, but may not be what was meant."""


class OutgrownCodecWarning(UserWarning):
    """An index has grown far past what its codec was trained for, or holds vectors unlike those it was trained on."""


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


def require_positive(**numbers: float | None) -> None:
    """Refuse numbers below 1, by their names; None passes.

    Raises
    ------
    InputError
        It names the first.

    Examples
    --------
    >>> require_positive(k=10, depth=None)
    >>> require_positive(threads=0)
    Traceback (most recent call last):
    ...
    colbert_prf.errors.InputError: threads must be at least 1, found 0
    """
    for name, number in numbers.items():
        if number is not None and number < 1:
            raise InputError(f"{name} must be at least 1, found {number}")
