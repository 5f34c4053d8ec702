"""Tell the format of a text file: from the caller, from the suffix, or from the first line, in that order."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import PurePath

from colbert_prf.errors import DatasetError

__all__ = ["format_by_first_line", "format_by_name"]

_COMPRESSIONS = (".gz", ".zst", ".zstd")
_SUFFIXES = {
    ".tsv": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".csv": "csv",
    ".trec": "trec",
    ".sgml": "trec",
    ".sgm": "trec",
    ".xml": "trec",
    ".parquet": "parquet",
}


def format_by_name(name: str, *, requested: str | None, allowed: tuple[str, ...]) -> str | None:
    """Take the requested format, or else the one of the suffix once ``.gz`` or ``.zst`` is removed.

    Parameters
    ----------
    name
        The file, as the user named it.
    requested
        The caller's choice, or None.
    allowed
        The formats that can be read here.

    Returns
    -------
    str or None
        None where the name tells nothing: look at the first line.

    Examples
    --------
    >>> format_by_name("corpus.jsonl.gz", requested=None, allowed=("tsv", "jsonl"))
    'jsonl'
    >>> format_by_name("collection.txt", requested=None, allowed=("tsv", "jsonl")) is None
    True
    """
    if requested is not None:
        if requested not in allowed:
            raise DatasetError(f"unknown format {requested!r}; choose {_either(allowed)}", path=name)
        return requested
    path = PurePath(name)
    if path.suffix.lower() in _COMPRESSIONS:
        path = path.with_suffix("")
    found = _SUFFIXES.get(path.suffix.lower())
    if found is not None and found not in allowed:
        raise DatasetError(f"a {path.suffix} file cannot be read here; convert it to {_either(allowed)}", path=name)
    return found


def format_by_first_line(
    lines: Iterator[tuple[int, str]], name: str, allowed: tuple[str, ...]
) -> tuple[str, Iterator[tuple[int, str]]]:
    r"""Guess the format from the first line that is not blank.

    Returns
    -------
    tuple of str and iterator
        The format, and all the lines again. A file of blank lines alone counts as TSV.

    Examples
    --------
    >>> found, lines = format_by_first_line(iter([(1, ""), (2, "d1\ttext")]), "-", ("tsv", "jsonl"))
    >>> found, list(lines)
    ('tsv', [(1, ''), (2, 'd1\ttext')])
    """
    blanks: list[tuple[int, str]] = []
    for number, line in lines:
        if not line.strip():
            blanks.append((number, line))
            continue
        found = _guess(line)
        if found not in allowed:
            message = f"cannot tell the format from {_shortened(line)}; say {_either(allowed)} with format="
            message += " or --corpus-format" if "csv" in allowed else ""
            raise DatasetError(message, path=name, line=number)
        return found, chain(blanks, [(number, line)], lines)
    return "tsv", iter(blanks)


def _guess(line: str) -> str:
    if line.lstrip().startswith("{"):
        return "jsonl"
    if line.lstrip().startswith("<"):
        return "trec"
    return "tsv" if "\t" in line else ""


def _either(allowed: tuple[str, ...]) -> str:
    *others, last = (repr(one) for one in allowed)
    return f"{', '.join(others)} or {last}" if others else last


def _shortened(line: str) -> str:
    return repr(line if len(line) <= 40 else line[:39] + "…")
