"""Evaluate as if the collection held certain documents only: a pool that smaller experiments can search too."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import chain, islice
from pathlib import Path
from typing import TypeVar

from colbert_prf.datasets import Source, read_corpus
from colbert_prf.datasets.irds import is_irds
from colbert_prf.datasets.opening import STANDARD_INPUT, read_lines
from colbert_prf.errors import DatasetError, InputError

__all__ = ["read_doc_ids", "restrict_qrels", "restrict_run"]

_CORPUS_MARKS = ("\t", "{", "<")
FIRST_LINES = 100
"""Lines looked at for the first that is not empty."""

Grade = TypeVar("Grade", int, float)


def read_doc_ids(source: Source) -> frozenset[str]:
    r"""Read the ids of a corpus, or a list of ids.

    Parameters
    ----------
    source
        Anything :func:`~colbert_prf.datasets.read_corpus` reads, or a text file with one id a line; ``-``, standard
        input, is a list of ids.

    Raises
    ------
    DatasetError
        With file and line: a line of a list that is more than one word, a bad line of a corpus, no id at all.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "ids.txt")
    ...     _ = path.write_text("d1\nd2\n")
    ...     sorted(read_doc_ids(path))
    ['d1', 'd2']
    """
    name = os.fspath(source)
    if is_irds(name) or name.lower().endswith(".parquet"):
        return frozenset(doc_id for doc_id, _ in read_corpus(source, empty="keep"))
    lines = read_lines(name)  # opened once, for a pipe can be read but once
    first = list(islice(lines, FIRST_LINES))
    if name != STANDARD_INPUT and _is_corpus(first):
        if not Path(name).is_file():
            raise DatasetError("a corpus cannot be read from a pipe here; give a file, or a list of ids", path=name)
        return frozenset(doc_id for doc_id, _ in read_corpus(source, empty="keep"))
    doc_ids = frozenset(_listed(chain(first, lines), name))
    if not doc_ids:
        raise DatasetError("no document id found; the file is empty", path=name)
    return doc_ids


def restrict_run(
    run: Mapping[str, Mapping[str, float]], doc_ids: Collection[str], *, name: str = "run"
) -> dict[str, dict[str, float]]:
    """Leave out of a run what is not among some documents; a query may be left with none.

    Raises
    ------
    InputError
        Where none of the run's documents is among them, for then the ids are those of another collection.

    Examples
    --------
    >>> restrict_run({"q1": {"d1": 2.0, "d9": 1.0}}, {"d1", "d2"})
    {'q1': {'d1': 2.0}}
    """
    kept = _restricted(run, doc_ids)
    if not any(kept.values()):
        example = next((doc_id for docs in run.values() for doc_id in docs), None)
        raise InputError(
            f"none of the documents of run {name!r} (such as {example!r}) is among the {len(doc_ids):,} documents to "
            f"keep (such as {next(iter(doc_ids), None)!r}); use ids of the same collection"
        )
    return kept


def restrict_qrels(qrels: Mapping[str, Mapping[str, int]], doc_ids: Collection[str]) -> dict[str, dict[str, int]]:
    """Leave out of judgements what is not among some documents; a query keeps its place with none.

    Examples
    --------
    >>> restrict_qrels({"q1": {"d1": 2, "d9": 1}}, {"d1", "d2"})
    {'q1': {'d1': 2}}
    """
    return _restricted(qrels, doc_ids)


def _restricted(queries: Mapping[str, Mapping[str, Grade]], doc_ids: Collection[str]) -> dict[str, dict[str, Grade]]:
    return {
        query_id: {doc_id: value for doc_id, value in docs.items() if doc_id in doc_ids}
        for query_id, docs in queries.items()
    }


def _is_corpus(lines: Iterable[tuple[int, str]]) -> bool:
    """Look at the first line that is not empty."""
    first = next((line for _, line in lines if line.strip()), "")
    return _CORPUS_MARKS[0] in first or first.lstrip().startswith(_CORPUS_MARKS[1:])


def _listed(lines: Iterable[tuple[int, str]], name: str) -> Iterator[str]:
    for number, line in lines:
        words = line.split()
        if len(words) > 1:
            raise DatasetError(f"expected one document id a line, found {line!r}", path=name, line=number)
        yield from words
