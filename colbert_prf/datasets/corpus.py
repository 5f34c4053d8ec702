"""Read a corpus as a stream of documents: TSV, JSON lines, CSV, TREC SGML, Parquet or a dataset of ir_datasets.

The corpus itself is never held in memory, but its ids are, to refuse the same id twice.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple, TypeAlias

from colbert_prf.datasets.formats import format_by_first_line, format_by_name
from colbert_prf.datasets.irds import irds_records, is_irds
from colbert_prf.datasets.opening import Source, read_lines, started
from colbert_prf.datasets.parquet import parquet_records
from colbert_prf.datasets.records import Keys, Record, check_records, csv_records, json_records, tsv_records
from colbert_prf.datasets.sgml import read_elements, strip_tags
from colbert_prf.errors import DatasetError, InputError

__all__ = ["CorpusFormat", "Document", "EmptyPolicy", "read_corpus", "read_corpus_with_metadata"]

CorpusFormat: TypeAlias = Literal["tsv", "jsonl", "csv", "trec", "parquet"]
EmptyPolicy: TypeAlias = Literal["error", "keep", "skip"]

_FORMATS = ("tsv", "jsonl", "csv", "trec", "parquet")
_POLICIES = ("error", "keep", "skip")
_KEYS = Keys(
    ids=("_id", "doc_id", "docid", "docno", "id"),
    texts=("text", "contents"),
    title="title",
    advice="; say what yours is called with id_field= or text_field= (--id-field, --text-field)",
)
_NOT_TEXT = re.compile(r"<(DOCNO|DOCID|DOCOLDNO|DOCHDR)(?:\s[^<>]*)?>(.*?)</\1\s*>", re.IGNORECASE | re.DOTALL)


class Document(NamedTuple):
    """A document: the pair of its id and its text."""

    doc_id: str
    text: str


def read_corpus(
    source: Source,
    *,
    format: CorpusFormat | None = None,
    empty: EmptyPolicy = "error",
    id_field: str | None = None,
    text_field: str | None = None,
    title_field: str | None = None,
) -> Iterator[Document]:
    r"""Read the documents of a corpus one after the other.

    Parameters
    ----------
    source
        A path, ``-`` for standard input, or ``irds:NAME``; plain, gzip or zstd.
    format
        ``"tsv"``: ``id<TAB>text``, no header, no quoting.
        ``"jsonl"``: one object a line with ``_id`` (or ``doc_id``, ``docid``, ``docno``, ``id``), ``text`` (or
        ``contents``) and perhaps ``title``; the document's text is ``title + " " + text``, as in BEIR.
        ``"csv"``: comma-separated, with a header that names the fields as in ``"jsonl"``.
        ``"trec"``: ``<DOC><DOCNO>…</DOCNO>…</DOC>``; all other elements are text, joined, without their tags.
        ``"parquet"``: columns as in ``"jsonl"``; needs pyarrow.
        None: by the suffix (``.tsv``, ``.jsonl``, ``.ndjson``, ``.json``, ``.csv``, ``.trec``, ``.sgml``, ``.sgm``,
        ``.xml``, ``.parquet``, before ``.gz`` or ``.zst``), else by the first line.
    empty
        What to do with a document without text: refuse it, keep it (it takes part, and nothing can find it) or skip it.
    id_field, text_field, title_field
        What these fields are called in JSONL, CSV or Parquet, where not as above. The title goes before the text; an
        empty string as ``title_field`` leaves it out.

    Returns
    -------
    iterator of Document
        Pairs of id and text. The file is opened in the call, so that a missing file is an error of the call.

    Raises
    ------
    DatasetError
        With file and line: a bad line, an id that is empty or used twice, an empty document, another encoding.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "corpus.tsv")
    ...     _ = path.write_text("d1\ta first text\nd2\ta second text\n")
    ...     for doc_id, text in read_corpus(path):
    ...         print(doc_id, "=", text)
    d1 = a first text
    d2 = a second text
    """
    fields = {"id_field": id_field, "text_field": text_field, "title_field": title_field}
    return (document for document, _ in read_corpus_with_metadata(source, format=format, empty=empty, **fields))


def read_corpus_with_metadata(
    source: Source,
    *,
    format: CorpusFormat | None = None,
    empty: EmptyPolicy = "error",
    id_field: str | None = None,
    text_field: str | None = None,
    title_field: str | None = None,
) -> Iterator[tuple[Document, dict[str, Any]]]:
    """Read the documents of a corpus, each with what else its record holds.

    Parameters
    ----------
    source, format, empty, id_field, text_field, title_field
        As in :func:`read_corpus`.

    Returns
    -------
    iterator of tuple of Document and dict
        The metadata can be written as JSON: every field of a JSON, CSV or Parquet record but id and text, the title
        among them; the ``DOCID``, ``DOCOLDNO`` and ``DOCHDR`` of a TREC document in lower case; nothing for TSV.
    """
    name = os.fspath(source)
    if empty not in _POLICIES:
        raise InputError(f"unknown empty={empty!r}; choose 'error', 'keep' or 'skip'")
    keys = Keys(
        (id_field,) if id_field else _KEYS.ids,
        (text_field,) if text_field else _KEYS.texts,
        _KEYS.title if title_field is None else title_field or None,
        _KEYS.advice,
    )
    return started(_documents(check_records(_records(name, format, keys), name, noun="document"), name, empty))


def _documents(records: Iterator[Record], name: str, empty: EmptyPolicy) -> Iterator[tuple[Document, dict[str, Any]]]:
    for line, doc_id, text, metadata in records:
        if not text.strip():
            if empty == "error":
                message = (
                    f"document {doc_id!r} has no text; keep such documents (empty='keep', --empty keep) or skip them "
                    "(empty='skip', --empty skip)"
                )
                raise DatasetError(message, path=name, line=line)
            if empty == "skip":
                continue
        yield Document(doc_id, text), metadata


def _records(name: str, requested: str | None, keys: Keys) -> Iterator[Record]:
    if is_irds(name):
        _refuse_keys(keys, "a dataset of ir_datasets", name)
        return irds_records(name, "docs")
    found = format_by_name(name, requested=requested, allowed=_FORMATS)
    if found == "parquet":
        return parquet_records(name, keys)
    lines = read_lines(name)
    if found is None:
        found, lines = format_by_first_line(lines, name, _FORMATS)
    if found in ("jsonl", "csv"):
        return (json_records if found == "jsonl" else csv_records)(lines, name, keys)
    _refuse_keys(keys, found.upper(), name)
    return tsv_records(lines, name) if found == "tsv" else _trec_records(lines, name)


def _refuse_keys(keys: Keys, what: str, name: str) -> None:
    if keys != _KEYS:
        message = f"{what} has no named fields; leave out id_field, text_field and title_field"
        raise DatasetError(message, path=name)


def _trec_records(lines: Iterator[tuple[int, str]], name: str) -> Iterator[Record]:
    for line, _, body in read_elements(lines, ("DOC",), name):
        named = [(match[1].upper(), strip_tags(match[2])) for match in _NOT_TEXT.finditer(body)]
        doc_ids = [value for tag, value in named if tag == "DOCNO"]
        if len(doc_ids) != 1:
            message = f"expected one <DOCNO> in this <DOC>, found {len(doc_ids)}; give every document its own"
            raise DatasetError(message, path=name, line=line)
        metadata = {tag.lower(): value for tag, value in named if tag != "DOCNO"}
        yield Record(line, doc_ids[0], strip_tags(_NOT_TEXT.sub(" ", body)), metadata)
