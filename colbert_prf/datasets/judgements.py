"""Read relevance judgements (qrels): TREC's four columns, BEIR's three with a header, or a dataset of ir_datasets."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import NamedTuple

from colbert_prf.datasets.irds import irds_entries, is_irds
from colbert_prf.datasets.opening import Source, read_lines
from colbert_prf.errors import DatasetError

__all__ = ["read_qrels"]

_BEIR_HEADER = ["query-id", "corpus-id", "score"]
_GRADE = re.compile(r"[+-]?[0-9]{1,18}")


class _Judgement(NamedTuple):
    line: int
    query_id: str
    doc_id: str
    grade: str


def read_qrels(source: Source) -> dict[str, dict[str, int]]:
    r"""Read the grade of each judged document of each query.

    Parameters
    ----------
    source
        A path, ``-`` for standard input, or ``irds:NAME``; plain, gzip or zstd. Either four columns separated by white
        space (query id, an unused column, document id, grade), or BEIR's form: a header ``query-id corpus-id score``,
        then three columns separated by tabs.

    Returns
    -------
    dict of str to dict of str to int
        ``qrels[query_id][doc_id]`` is a grade, which may be negative; queries and documents in the order of the file.
        A judgement that is repeated with the same grade is read once; with another grade it is an error.

    Raises
    ------
    DatasetError
        With file and line: a bad line, a grade that is no integer, two different grades for one document.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "qrels.txt")
    ...     _ = path.write_text("q1 0 d7 2\nq1 0 d9 0\n")
    ...     read_qrels(path)
    {'q1': {'d7': 2, 'd9': 0}}
    """
    name = os.fspath(source)
    qrels: dict[str, dict[str, int]] = {}
    lines: dict[tuple[str, str], int] = {}
    for line, query_id, doc_id, written in _irds_judgements(name) if is_irds(name) else _judgements(name):
        if not _GRADE.fullmatch(written):
            message = f"the grade {written!r} is not an integer; write a whole number, such as 0 or 1"
            raise DatasetError(message, path=name, line=line)
        grade = int(written)
        first = lines.setdefault((query_id, doc_id), line)
        known = qrels.setdefault(query_id, {}).setdefault(doc_id, grade)
        if known != grade:
            message = (
                f"document {doc_id!r} of query {query_id!r} has grade {grade}, but {known} at line {first}; keep one"
            )
            raise DatasetError(message, path=name, line=line)
    if not qrels:
        raise DatasetError("no judgement found; the file is empty", path=name)
    return qrels


def _judgements(name: str) -> Iterator[_Judgement]:
    beir: bool | None = None
    for number, line in read_lines(name):
        if not line.strip():
            continue
        columns = line.split("\t") if beir else line.split()
        if beir is None:
            beir = columns == _BEIR_HEADER
            if beir:
                continue
        if beir:
            if len(columns) != 3 or not all(column.strip() for column in columns):
                message = f"expected 3 columns separated by tabs, query-id, corpus-id and score, found {line!r}"
                raise DatasetError(message, path=name, line=number)
            if padded := next((column for column in columns[:2] if column != column.strip()), None):
                message = f"the id {padded!r} begins or ends with a space; remove it"
                raise DatasetError(message, path=name, line=number)
            yield _Judgement(number, *columns)
        else:
            if len(columns) != 4:
                message = (
                    f"expected 4 columns, query id, 0, document id and grade, found {len(columns)}; "
                    "3 columns need the header 'query-id corpus-id score' of BEIR"
                )
                raise DatasetError(message, path=name, line=number)
            yield _Judgement(number, columns[0], columns[2], columns[3])


def _irds_judgements(name: str) -> Iterator[_Judgement]:
    for number, entry in enumerate(irds_entries(name, "qrels"), start=1):
        yield _Judgement(number, entry.query_id, entry.doc_id, str(entry.relevance))
