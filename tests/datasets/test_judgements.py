from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from colbert_prf.datasets import read_qrels
from colbert_prf.errors import DatasetError

Write = Callable[[str, "str | bytes"], Path]


def message_of(source: str | Path) -> str:
    with pytest.raises(DatasetError) as caught:
        read_qrels(source)
    return str(caught.value)


def test_four_columns_of_any_white_space(written: Write) -> None:
    path = written("qrels.txt", "q2 0 d1 3\nq1\tQ0\td1   0\n\n  q2 0 d0 -2\n")
    qrels = read_qrels(path)
    assert qrels == {"q2": {"d1": 3, "d0": -2}, "q1": {"d1": 0}}
    assert [(query_id, list(docs)) for query_id, docs in qrels.items()] == [("q2", ["d1", "d0"]), ("q1", ["d1"])]


def test_beir_form(written: Write) -> None:
    path = written("test.tsv", "query-id\tcorpus-id\tscore\nq1\tdoc one\t2\n\nq1\td2\t0\n")
    assert read_qrels(path) == {"q1": {"doc one": 2, "d2": 0}}


def test_standard_input(standard_input: Callable[[bytes], None]) -> None:
    standard_input(b"q1 0 d1 1\n")
    assert read_qrels("-") == {"q1": {"d1": 1}}


def test_a_judgement_repeated_with_the_same_grade_is_read_once(written: Write) -> None:
    assert read_qrels(written("qrels", "q1 0 d1 1\nq1 1 d1 1\nq2 0 d1 2\n")) == {"q1": {"d1": 1}, "q2": {"d1": 2}}


FOUR = "expected 4 columns, query id, 0, document id and grade, found {}; 3 columns need the header {!r} of BEIR"
HEADER = "query-id corpus-id score"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("q1 0 d1 2", "document 'd1' of query 'q1' has grade 2, but 1 at line 1; keep one"),
        ("q1 d2 1", FOUR.format(3, HEADER)),
        ("q1 0 d2 1 x", FOUR.format(5, HEADER)),
        ("q1 0 d2 1.0", "the grade '1.0' is not an integer; write a whole number, such as 0 or 1"),
        ("q1 0 d2 1_0", "the grade '1_0' is not an integer; write a whole number, such as 0 or 1"),
        ("q1 0 d2 high", "the grade 'high' is not an integer; write a whole number, such as 0 or 1"),
    ],
)
def test_a_bad_line(written: Write, line: str, expected: str) -> None:
    path = written("qrels.txt", f"q1 0 d1 1\n{line}\n")
    assert message_of(path) == f"{path}, line 2: {expected}"


@pytest.mark.parametrize("line", ["q1 d2 1", "q1\td2", "q1\t\t1", "q1\td2\t1\t1"])
def test_a_bad_line_in_beir_form(written: Write, line: str) -> None:
    path = written("test.tsv", f"query-id\tcorpus-id\tscore\n{line}\n")
    assert message_of(path) == (
        f"{path}, line 2: expected 3 columns separated by tabs, query-id, corpus-id and score, found {line!r}"
    )


@pytest.mark.parametrize("content", ["", "\n", "query-id\tcorpus-id\tscore\n"])
def test_a_file_without_judgements(written: Write, content: str) -> None:
    path = written("qrels.txt", content)
    assert message_of(path) == f"{path}: no judgement found; the file is empty"


@pytest.mark.parametrize(
    ("name", "num_judgements", "num_queries"),
    [
        ("msmarco-dl1920/qrels.dl19.txt", 9_260, 43),
        ("msmarco-dl1920/qrels.dl20.txt", 11_386, 54),
        ("vaswani/qrels.txt", 2_083, 93),
        ("nfcorpus/qrels.txt", 12_334, 323),
        ("nfcorpus/train.qrels.txt.gz", 110_575, 2_590),
        ("scifact/qrels.txt", 339, 300),
    ],
)
def test_the_real_judgements(shared_data: Path, name: str, num_judgements: int, num_queries: int) -> None:
    qrels = read_qrels(shared_data / name)
    assert sum(map(len, qrels.values())) == num_judgements
    assert len(qrels) == num_queries


def test_ids_of_beir_have_no_space_around_them(tmp_path):
    (tmp_path / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1 \td1\t1\n")
    with pytest.raises(DatasetError, match=r"line 2: the id 'q1 ' begins or ends with a space; remove it"):
        read_qrels(tmp_path / "test.tsv")
