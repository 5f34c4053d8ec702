from __future__ import annotations

import io
import os
import sys
from threading import Thread

import pytest

from colbert_prf.errors import DatasetError, InputError
from colbert_prf.evaluation import read_doc_ids, restrict_qrels, restrict_run


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("ids.txt", "d1\n\n d2 \n"),
        ("corpus.tsv", "d1\ta text\nd2\t\n"),
        ("corpus", "\nd1\ta text\nd2\tanother\n"),
        ("corpus.jsonl", '{"_id": "d1", "text": "a"}\n{"_id": "d2", "text": "b"}\n'),
        ("corpus.trec", "<DOC><DOCNO>d1</DOCNO>a</DOC>\n<DOC><DOCNO>d2</DOCNO>b</DOC>\n"),
    ],
)
def test_ids_come_from_a_list_or_a_corpus(tmp_path, name, content):
    (tmp_path / name).write_text(content)
    assert read_doc_ids(tmp_path / name) == {"d1", "d2"}


def test_ids_come_from_parquet(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pyarrow.table({"_id": ["d1"], "text": ["a"]}), tmp_path / "corpus.parquet")
    assert read_doc_ids(tmp_path / "corpus.parquet") == {"d1"}


def test_standard_input_is_a_list(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"d1\nd2\n")))
    assert read_doc_ids("-") == {"d1", "d2"}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("d1\nd2 d3\n", "line 2: expected one document id a line, found 'd2 d3'"),
        ("\n", "no document id found; the file is empty"),
        ("d1\ta\nd1\tb\n", "line 2: the document id 'd1' was used before"),
    ],
)
def test_a_bad_file(tmp_path, content, message):
    (tmp_path / "ids").write_text(content)
    with pytest.raises(DatasetError, match=message):
        read_doc_ids(tmp_path / "ids")


def test_what_is_not_kept_is_left_out_and_queries_stay():
    assert restrict_run({"q1": {"d9": 2.0, "d1": 1.0}, "q2": {"d9": 1.0}}, {"d1"}) == {"q1": {"d1": 1.0}, "q2": {}}
    assert restrict_qrels({"q1": {"d9": 2, "d1": 0}, "q2": {"d9": 1}}, {"d1"}) == {"q1": {"d1": 0}, "q2": {}}


def test_ids_of_another_collection():
    with pytest.raises(InputError, match=r"none of the documents of run 'mine' \(such as 'd9'\) is among the 1 "):
        restrict_run({"q1": {"d9": 1.0}}, {"x1"}, name="mine")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_list_may_come_through_a_pipe(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writing = Thread(target=pipe.write_text, args=["\n" + "".join(f"d{number}\n" for number in range(50_000))])
    writing.start()
    assert len(read_doc_ids(pipe)) == 50_000
    writing.join()
