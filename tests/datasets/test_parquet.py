from __future__ import annotations

import datetime
import io
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from colbert_prf.datasets import read_corpus, read_corpus_with_metadata
from colbert_prf.errors import DatasetError

Write = Callable[[str, "str | bytes"], Path]


def parquet(**columns: list[object]) -> bytes:
    pyarrow = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    sink = io.BytesIO()
    pq.write_table(pyarrow.table(columns), sink)
    return sink.getvalue()


def message_of(path: str | Path) -> str:
    with pytest.raises(DatasetError) as caught:
        list(read_corpus(path, format="parquet"))
    return str(caught.value)


def test_columns_are_named_as_in_json_lines(written: Write) -> None:
    path = written("c.parquet", parquet(docid=[1, 2], title=["A", None], text=["one", "two"], year=[1999, None]))
    assert list(read_corpus_with_metadata(path)) == [
        (("1", "A one"), {"title": "A", "year": 1999}),
        (("2", "two"), {"title": None, "year": None}),
    ]


def test_metadata_can_be_written_as_json(written: Write) -> None:
    day = datetime.date(2020, 1, 2)
    path = written("c.parquet", parquet(id=["d1"], text=["t"], day=[day], parts=[[{"on": day}]]))
    [(_, metadata)] = read_corpus_with_metadata(path)
    assert json.dumps(metadata) == '{"day": "2020-01-02", "parts": [{"on": "2020-01-02"}]}'


def test_more_rows_than_a_batch(written: Write) -> None:
    ids = [f"d{number}" for number in range(3000)]
    path = written("c.parquet", parquet(_id=ids, text=["t"] * 3000))
    assert [doc_id for doc_id, _ in read_corpus(path)] == ids


def test_the_row_stands_for_the_line(written: Write) -> None:
    path = written("c.parquet", parquet(_id=["d1", "d1"], text=["t", "t"]))
    assert message_of(path) == f"{path}, line 2: the document id 'd1' was used before, at line 1; make the ids unique"
    path = written("c.parquet", parquet(_id=["d1", "d2"], text=["t", None]))
    assert message_of(path) == f"{path}, line 2: 'text' must be a string, found null"


def test_a_missing_column(written: Write) -> None:
    path = written("c.parquet", parquet(_id=["d1"], body=["t"]))
    assert message_of(path).startswith(f"{path}, line 1: expected a field text or contents, found _id, body; say what")


def test_a_file_that_is_not_parquet(written: Write) -> None:
    pytest.importorskip("pyarrow")
    path = written("c.parquet", b"d1\ttext\n" * 10)
    message = message_of(path)
    assert message.startswith(f"{path}: not a readable Parquet file (")
    assert message.endswith("); fetch it again")


def test_a_parquet_file_by_another_name(written: Write) -> None:
    path = written("corpus", parquet(_id=["d1"], text=["t"]))
    with pytest.raises(DatasetError) as caught:
        read_corpus(path)
    expected = "this is a Parquet file; only a corpus is read from Parquet, with format='parquet'"
    assert str(caught.value) == f"{path}: {expected}"
    assert list(read_corpus(path, format="parquet")) == [("d1", "t")]


def test_no_parquet_from_standard_input() -> None:
    assert message_of("-") == "-: Parquet cannot be read from standard input; name a file"


def test_a_directory_and_a_missing_file_have_their_messages(tmp_path: Path) -> None:
    assert message_of(tmp_path) == f"{tmp_path}: this is a directory; name one file in it"
    assert message_of(tmp_path / "c") == f"{tmp_path / 'c'}: no such file; check the path"


def test_without_pyarrow_the_message_names_it(written: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    path = written("c.parquet", b"PAR1")
    assert message_of(path) == f"{path}: reading Parquet needs pyarrow: pip install pyarrow"


def test_bytes_are_text(written: Write) -> None:
    path = written("c.parquet", parquet(id=[b"d1"], text=["é".encode()]))
    assert list(read_corpus(path)) == [("d1", "é")]
