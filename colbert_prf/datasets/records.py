"""The common shape of documents and topics: an id with a text, read from TSV lines or JSON objects, then checked."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from colbert_prf.errors import DatasetError

__all__ = [
    "Keys",
    "Record",
    "check_records",
    "csv_records",
    "json_records",
    "jsonable",
    "record_from_fields",
    "tsv_records",
]


class Record(NamedTuple):
    """An id with its text and where they stood; a Parquet row and an ir_datasets entry count as a line."""

    line: int
    record_id: str
    text: str
    metadata: dict[str, Any]


class Keys(NamedTuple):
    """The field names to look for, in order of preference; the first found is used, the others are metadata.

    A title, where there is one, goes before the text. The advice ends the message where a field is missing.
    """

    ids: tuple[str, ...]
    texts: tuple[str, ...]
    title: str | None = None
    advice: str = ""


def tsv_records(lines: Iterator[tuple[int, str]], name: str) -> Iterator[Record]:
    r"""Read ``id<TAB>text``: no header, no quoting, exactly two columns. Empty lines are passed over.

    Examples
    --------
    >>> next(tsv_records(iter([(1, "d1\ta text")]), "corpus.tsv"))
    Record(line=1, record_id='d1', text='a text', metadata={})
    """
    for number, line in lines:
        if not line:
            continue
        columns = line.split("\t")
        if len(columns) != 2:
            found = "1 (there is no tab)" if len(columns) == 1 else str(len(columns))
            message = f"expected 2 tab-separated columns, id and text, found {found}"
            if len(columns) > 2:
                message += "; keep two, or write the others as JSON lines"
            raise DatasetError(message, path=name, line=number)
        yield Record(number, columns[0], columns[1], {})


def json_records(lines: Iterator[tuple[int, str]], name: str, keys: Keys) -> Iterator[Record]:
    """Read one JSON object a line, as BEIR writes them. Blank lines are passed over.

    Examples
    --------
    >>> line = '{"_id": "d1", "title": "A title", "text": "and a text", "year": 1999}'
    >>> next(json_records(iter([(1, line)]), "corpus.jsonl", Keys(("_id",), ("text",), "title")))
    Record(line=1, record_id='d1', text='A title and a text', metadata={'title': 'A title', 'year': 1999})
    """
    for number, line in lines:
        if not line.strip():
            continue
        try:
            fields = json.loads(line)
        except json.JSONDecodeError as error:
            message = f"not valid JSON: {error.msg} at column {error.colno}; write one object a line"
            raise DatasetError(message, path=name, line=number) from None
        except (ValueError, RecursionError) as error:
            raise DatasetError(f"not usable JSON: {error}", path=name, line=number) from None
        if not isinstance(fields, dict):
            message = f"expected a JSON object, found {_json_type(fields)}; write one object a line"
            raise DatasetError(message, path=name, line=number)
        yield record_from_fields(fields, keys, name, number)


def csv_records(lines: Iterator[tuple[int, str]], name: str, keys: Keys) -> Iterator[Record]:
    """Read comma-separated values with a header, quoted as spreadsheets do; a record may stand on several lines.

    An empty cell is absent. A number that is written as JSON would write it becomes a number, so that filters can
    compare it; ``007`` stays a string.

    Examples
    --------
    >>> lines = iter([(1, "id,text,year,code"), (2, 'd1,"A text, in quotes",1999,007')])
    >>> next(csv_records(lines, "corpus.csv", Keys(("id",), ("text",), "title")))
    Record(line=2, record_id='d1', text='A text, in quotes', metadata={'year': 1999, 'code': '007'})
    """
    csv.field_size_limit(2**31 - 1)  # a document may be longer than the 131,072 characters csv stops at
    reader = csv.reader((f"{line}\n" for _, line in lines), strict=True)
    header: list[str] | None = None
    before = 0
    while True:
        try:
            row = next(reader, None)
        except csv.Error as error:
            message = f"not valid CSV: {error}; quote a value with a comma, a quote or a line break in it"
            raise DatasetError(message, path=name, line=before + 1) from error
        if row is None:
            return
        line, before = before + 1, reader.line_num
        if not any(row):
            continue
        if header is None:
            header = row
            if twice := [one for number, one in enumerate(row) if one in row[:number]]:
                raise DatasetError(f"the header has {twice[0]!r} twice; rename one", path=name, line=line)
            continue
        if len(row) != len(header):
            message = f"expected {len(header)} values, as many as the header has, found {len(row)}"
            raise DatasetError(message, path=name, line=line)
        texts = {*keys.ids, *keys.texts, keys.title}
        cells = {key: value for key, value in zip(header, row, strict=True) if value or key in texts}
        fields = {key: value if key in texts else _number_or_text(value) for key, value in cells.items()}
        yield record_from_fields(fields, keys, name, line)


def record_from_fields(fields: Mapping[str, object], keys: Keys, name: str, line: int) -> Record:
    """Find id, title and text among the fields; the text is ``title + " " + text`` as in BEIR.

    Parameters
    ----------
    fields
        The object read. The entries of a ``metadata`` object, which BEIR writes, become metadata themselves.
    keys
        The names of the id and of the text.
    name, line
        Where the fields stood, for messages.

    Returns
    -------
    Record
        The title is also kept in the metadata, with every field that is neither id nor text.
    """
    id_key, text_key = (_first_key(fields, names, name, line, keys.advice) for names in (keys.ids, keys.texts))
    record_id, text, title = fields[id_key], fields[text_key], fields.get(keys.title) if keys.title else None
    if isinstance(record_id, int) and not isinstance(record_id, bool):
        record_id = str(record_id)
    for key, value in ((id_key, record_id), (text_key, text), (keys.title, "" if title is None else title)):
        if not isinstance(value, str):
            raise DatasetError(f"{key!r} must be a string, found {_json_type(value)}", path=name, line=line)
    metadata = {key: value for key, value in fields.items() if key not in (id_key, text_key)}
    nested = metadata.get("metadata")
    if isinstance(nested, dict):
        del metadata["metadata"]
        twice = sorted(metadata.keys() & nested.keys())
        if twice:
            message = f"{twice[0]!r} stands both in the object and in its 'metadata'; rename one"
            raise DatasetError(message, path=name, line=line)
        metadata.update(nested)
    whole = f"{title} {text}".strip() if title else str(text)
    return Record(line, str(record_id), whole, metadata)


def check_records(records: Iterator[Record], name: str, *, noun: str) -> Iterator[Record]:
    """Pass the records on, refusing an empty, padded or repeated id, a text no encoding can hold, and no record at all.

    Parameters
    ----------
    records
        The records; their ids are remembered, so memory grows with their number (about 150 bytes an id).
    name
        The file, for messages.
    noun
        What a record is: "document" or "query".
    """
    lines: dict[str, int] = {}
    for record in records:
        line, record_id, text, _ = record
        if not record_id.strip():
            raise DatasetError(f"the {noun} id is empty; give every {noun} an id", path=name, line=line)
        if record_id != record_id.strip():
            message = f"the {noun} id {record_id!r} begins or ends with a space; remove it"
            raise DatasetError(message, path=name, line=line)
        if record_id in lines:
            message = f"the {noun} id {record_id!r} was used before, at line {lines[record_id]}; make the ids unique"
            raise DatasetError(message, path=name, line=line)
        lines[record_id] = line
        _refuse_surrogates(record_id, text, name, line)
        yield record
    if not lines:
        raise DatasetError(f"no {noun} found; the file is empty", path=name)


def jsonable(value: object) -> object:
    """Return the value if JSON can hold it; what JSON cannot hold (bytes, a date, a decimal) becomes its text.

    Examples
    --------
    >>> import datetime
    >>> jsonable(3), jsonable([datetime.date(2020, 1, 2)])
    (3, ['2020-01-02'])
    """
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    copy: object = json.loads(json.dumps(value, default=str))
    return copy


def _number_or_text(text: str) -> object:
    """A number, where its JSON is the text itself."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return value if is_number and json.dumps(value) == text else text


def _first_key(fields: Mapping[str, object], keys: tuple[str, ...], name: str, line: int, advice: str) -> str:
    for key in keys:
        if key in fields:
            return key
    found = ", ".join(fields) or "none"
    raise DatasetError(f"expected a field {' or '.join(keys)}, found {found}{advice}", path=name, line=line)


def _json_type(value: object) -> str:
    if value is None:
        return "null"
    names = {bool: "a boolean", int: "a number", float: "a number", list: "an array", dict: "an object"}
    return names.get(type(value), "a string")


def _refuse_surrogates(record_id: str, text: str, name: str, line: int) -> None:
    """JSON may escape half a surrogate pair, which Python reads and no encoder can write."""
    try:
        record_id.encode()
        text.encode()
    except UnicodeEncodeError as error:
        half = ascii(error.object[error.start])
        raise DatasetError(f"half of a surrogate pair, {half}, is not text; repair it", path=name, line=line) from None
