"""Read topics, that is query ids with their texts: TSV, JSON lines, TREC topics or a dataset of ir_datasets."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Literal, TypeAlias

from colbert_prf.datasets.formats import format_by_first_line, format_by_name
from colbert_prf.datasets.irds import irds_records, is_irds
from colbert_prf.datasets.opening import Source, read_lines
from colbert_prf.datasets.records import Keys, Record, check_records, json_records, tsv_records
from colbert_prf.datasets.sgml import Element, read_elements, strip_tags
from colbert_prf.errors import DatasetError

__all__ = ["TopicsFormat", "read_topics"]

TopicsFormat: TypeAlias = Literal["tsv", "jsonl", "trec"]

_FORMATS = ("tsv", "jsonl", "trec")
_KEYS = Keys(ids=("_id", "query_id", "qid", "id"), texts=("text", "query"))
_ATTRIBUTE = re.compile(r"\b(?:number|num|qid|id)\s*=\s*[\"']?([^\"'\s]+)", re.IGNORECASE)
_NUMBER = re.compile(r"<(?:num|number|qid)\s*>(?:\s*Number\s*:)?([^<]*)", re.IGNORECASE)
# Up to the closing tag, with what is marked up inside; where there is none, up to the next tag of any kind.
_TITLE = re.compile(
    r"<(title|query)\s*>(?:\s*Topic\s*:)?((?:(?!<(?:num|title|query|desc|narr|top)\b).)*?(?=</\1\s*>)|.*?(?=</?[a-z]|\Z))",
    re.IGNORECASE | re.DOTALL,
)


def read_topics(source: Source, *, format: TopicsFormat | None = None) -> dict[str, str]:
    r"""Read the queries of a topics file.

    Parameters
    ----------
    source
        A path, ``-`` for standard input, or ``irds:NAME``; plain, gzip or zstd.
    format
        ``"tsv"``: ``query_id<TAB>text``, no header.
        ``"jsonl"``: one object a line with ``_id`` (or ``query_id``, ``qid``, ``id``) and ``text`` (or ``query``).
        ``"trec"``: ``<top>`` with ``<num>`` and ``<title>``, closed or not, or ``<topic number="1">`` with ``<query>``
        or ``<title>``. The number is kept as it stands: some old topics have ``051`` where the judgements have ``51``.
        None: by the suffix, else by the first line, as in :func:`~colbert_prf.datasets.read_corpus`.

    Returns
    -------
    dict of str to str
        The text of each query id, in the order of the file.

    Raises
    ------
    DatasetError
        With file and line: a bad line, a query id that is empty or used twice, a query without text.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "queries.tsv")
    ...     _ = path.write_text("q1\twho wrote it\n")
    ...     read_topics(path)
    {'q1': 'who wrote it'}
    """
    name = os.fspath(source)
    topics: dict[str, str] = {}
    for line, query_id, text, _ in check_records(_records(name, format), name, noun="query"):
        if not text.strip():
            message = f"query {query_id!r} has no text; write one, or remove the query"
            raise DatasetError(message, path=name, line=line)
        topics[query_id] = text
    return topics


def _records(name: str, requested: str | None) -> Iterator[Record]:
    if is_irds(name):
        return irds_records(name, "queries")
    found = format_by_name(name, requested=requested, allowed=_FORMATS)
    lines = read_lines(name)
    if found is None:
        found, lines = format_by_first_line(lines, name, _FORMATS)
    if found == "jsonl":
        return json_records(lines, name, _KEYS)
    if found == "tsv":
        return tsv_records(lines, name)
    return (_trec_record(element, name) for element in read_elements(lines, ("top", "topic"), name))


def _trec_record(element: Element, name: str) -> Record:
    line, attributes, body = element
    number = _NUMBER.search(body) or _ATTRIBUTE.search(attributes)
    if number is None:
        raise DatasetError("this topic has no <num>; number every topic", path=name, line=line)
    title = _TITLE.search(body)
    if title is None and "<" in body:
        raise DatasetError("this topic has neither <title> nor <query>; add one", path=name, line=line)
    return Record(line, strip_tags(number[1]), strip_tags(title[2] if title else body), {})
