"""Every exception colbert-prf raises on purpose.

::

    ColbertPrfError
    ├── InputError            a value given by the caller cannot be used
    │   ├── DatasetError      a corpus, topics, qrels or run file is malformed
    │   └── TextError         a text cannot be encoded
    ├── ModelError            a model folder or checkpoint cannot be used
    └── MissingExtraError     an optional dependency is not installed

A message says what was wrong, what was found and what to do. The command line prints it as one line and exits with 1.
"""

from __future__ import annotations

__all__ = [
    "ColbertPrfError",
    "DatasetError",
    "InputError",
    "MissingExtraError",
    "ModelError",
    "TextError",
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
