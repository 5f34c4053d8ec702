from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from colbert_prf.datasets import read_run, write_run
from colbert_prf.errors import DatasetError, DatasetWarning

Write = Callable[[str, "str | bytes"], Path]


def message_of(call: Callable[..., object], *arguments: object) -> str:
    with pytest.raises(DatasetError) as caught:
        call(*arguments)
    return str(caught.value)


def test_documents_come_by_falling_score_and_then_by_rank(written: Write) -> None:
    path = written("run", "q2 Q0 a 3 1.5 t\nq1 Q0 a 0 1 t\nq2 Q0 b 2 1.5 t\n\nq2\tQ0\tc\t1\t-7e-1\tt\nq2 Q0 d 9 2 t\n")
    run = read_run(path)
    assert [(query_id, list(docs.items())) for query_id, docs in run.items()] == [
        ("q2", [("d", 2.0), ("b", 1.5), ("a", 1.5), ("c", -0.7)]),
        ("q1", [("a", 1.0)]),
    ]


def test_ranks_that_contradict_the_scores_can_be_warned_of(written: Write) -> None:
    lines = ["q1 Q0 a 1 1.5 t", "q1 Q0 b 2 2.5 t", "q2 Q0 a 0 2 t", "q2 Q0 b 1 2 t", "q3 Q0 a 9 3 t", "q3 Q0 b 8 2 t"]
    path = written("run", "\n".join(lines))
    with pytest.warns(DatasetWarning) as caught:
        run = read_run(path, check_ranks=True)
    assert run == read_run(path)
    (warning,) = caught
    assert str(warning.message) == (
        f"{path}, line 1: the rank contradicts the score, as in 2 of 3 queries; the scores decide"
    )


def test_unsorted_lines_whose_ranks_and_scores_agree_are_not_warned_of(written: Write) -> None:
    path = written("run", "q1 Q0 c 2 1 t\nq1 Q0 b 1 2 t\nq1 Q0 a 0 2 t\n")
    assert list(read_run(path, check_ranks=True)["q1"]) == ["a", "b", "c"]


def test_standard_input(standard_input: Callable[[bytes], None]) -> None:
    standard_input(gzip.compress(b"q1 Q0 d1 1 0.5 t\n"))
    assert read_run("-") == {"q1": {"d1": 0.5}}


def test_a_run_without_lines_has_no_query(written: Write) -> None:
    assert read_run(written("run", "\n")) == {}


COLUMNS = "expected 6 columns, query id, Q0, document id, rank, score and tag, found"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("q1 Q0 d2 2 0.5", f"{COLUMNS} 5"),
        ("q1 Q0 d2 2 0.5 my tag", f"{COLUMNS} 7"),
        ("q1 Q0 d2 two 0.5 t", "the rank 'two' is not an integer; write a whole number"),
        ("q1 Q0 d2 2 half t", "the score 'half' is not a number; write one"),
        ("q1 Q0 d2 2 1_0 t", "the score '1_0' is not a number; write one"),
        ("q1 Q0 d2 2 nan t", "the score is nan; write a finite number"),
        ("q1 Q0 d2 2 -inf t", "the score is -inf; write a finite number"),
        ("q1 Q0 d2 2 1e999 t", "the score is inf; write a finite number"),
        ("q1 Q0 d1 2 0.4 t", "document 'd1' of query 'q1' was ranked before, at line 1; keep one line"),
        ("q1 Q0 d1 1 0.5 t", "document 'd1' of query 'q1' was ranked before, at line 1; keep one line"),
    ],
)
def test_a_bad_line(written: Write, line: str, expected: str) -> None:
    path = written("run", f"q1 Q0 d1 1 0.5 t\n{line}\n")
    assert message_of(read_run, path) == f"{path}, line 2: {expected}"


def test_what_is_written(tmp_path: Path) -> None:
    write_run(tmp_path / "run", {"q1": {"a": 0.1, "b": 3, "c": 0.1}, "q0": [("a", 1e-30)], "none": {}}, "mine")
    assert (tmp_path / "run").read_text() == (
        "q1 Q0 b 1 3.0 mine\nq1 Q0 a 2 0.1 mine\nq1 Q0 c 3 0.1 mine\nq0 Q0 a 1 1e-30 mine\n"
    )


def test_rankings_may_be_an_iterator_of_pairs(tmp_path: Path) -> None:
    write_run(tmp_path / "run", iter([("q1", iter([("a", 1.0)]))]), "mine")
    assert (tmp_path / "run").read_text() == "q1 Q0 a 1 1.0 mine\n"


def test_numpy_scores_are_written_as_plain_numbers(tmp_path: Path) -> None:
    numpy = pytest.importorskip("numpy")
    write_run(tmp_path / "run", {"q1": {"a": numpy.float32(0.1)}}, "mine")
    assert (tmp_path / "run").read_text() == "q1 Q0 a 1 0.10000000149011612 mine\n"


@pytest.mark.parametrize("suffix", ["", ".gz", ".zst"])
def test_a_compressed_run_reads_back(tmp_path: Path, suffix: str) -> None:
    run = {"q1": {"b": 2.0, "a": 1.0}}
    write_run(tmp_path / f"run{suffix}", run, "mine")
    assert read_run(tmp_path / f"run{suffix}") == run


words = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\ufeff"), min_size=1).filter(
    lambda word: word.split() == [word]
)
scores = st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from([0.0, -0.0, 1.0])
rankings = st.dictionaries(words, st.dictionaries(words, scores, min_size=1, max_size=8), max_size=4)


@settings(deadline=None)
@given(rankings=rankings, tag=words, suffix=st.sampled_from(["", ".gz", ".zst"]))
def test_reading_returns_what_was_written(
    tmp_path_factory: pytest.TempPathFactory, rankings: dict[str, dict[str, float]], tag: str, suffix: str
) -> None:
    path = tmp_path_factory.getbasetemp() / f"round-trip{suffix}"
    write_run(path, rankings, tag)
    expected = [
        (query_id, sorted(docs.items(), key=lambda pair: pair[1], reverse=True)) for query_id, docs in rankings.items()
    ]
    assert [(query_id, list(docs.items())) for query_id, docs in read_run(path).items()] == expected


@settings(deadline=None)
@given(rankings=rankings)
def test_ranks_rise_from_one_and_scores_never_rise(
    tmp_path_factory: pytest.TempPathFactory, rankings: dict[str, dict[str, float]]
) -> None:
    path = tmp_path_factory.getbasetemp() / "columns"
    write_run(path, rankings, "t")
    rows = [line.split() for line in path.read_text(encoding="utf-8").split("\n") if line]
    for query_id, docs in rankings.items():
        own = [row for row in rows if row[0] == query_id]
        assert [int(row[3]) for row in own] == list(range(1, len(docs) + 1))
        written_scores = [float(row[4]) for row in own]
        assert written_scores == sorted(written_scores, reverse=True)


SPACE = "holds white space, which separates the columns of a run file; replace it"


@pytest.mark.parametrize(
    ("rankings", "tag", "expected"),
    [
        ({}, "my tag", f"the tag 'my tag' {SPACE}"),
        ({}, "", "the tag is empty; a run file needs a word there"),
        ({"q 1": {}}, "t", f"the query id 'q 1' {SPACE}"),
        ({"": {}}, "t", "the query id is empty; a run file needs a word there"),
        ({"q1": {"d\t1": 1.0}}, "t", f"for query 'q1', the document id 'd\\t1' {SPACE}"),
        ({"q1": {"d1\u3000": 1.0}}, "t", f"for query 'q1', the document id 'd1\\u3000' {SPACE}"),
        ({"q1": {"": 1.0}}, "t", "for query 'q1', the document id is empty; a run file needs a word there"),
        ({"\ufeffq": {}}, "t", "the query id '\\ufeffq' holds a character that text files cannot; replace it"),
        ({"\ud800": {}}, "t", "the query id '\\ud800' holds a character that text files cannot; replace it"),
        ({"\0": {}}, "t", "the query id '\\x00' holds a character that text files cannot; replace it"),
        (
            {"q1": {"d1": float("nan")}},
            "t",
            "document 'd1' of query 'q1' has the score nan; give a finite number",
        ),
        (
            {"q1": {"d0": 1.0, "d1": float("-inf")}},
            "t",
            "document 'd1' of query 'q1' has the score -inf; give a finite number",
        ),
        ({"q1": [("d1", 2.0), ("d1", 1.0)]}, "t", "document 'd1' comes twice for query 'q1'; keep one"),
        ([("q1", {}), ("q1", {})], "t", "query 'q1' comes twice; give each query one ranking"),
    ],
)
def test_what_cannot_be_written_leaves_the_file_alone(
    tmp_path: Path, rankings: object, tag: str, expected: str
) -> None:
    path = tmp_path / "run"
    path.write_text("before\n")
    assert message_of(write_run, path, rankings, tag) == f"{path}: {expected}"
    assert [entry.name for entry in tmp_path.iterdir()] == ["run"]
    assert path.read_text() == "before\n"


def test_every_run_of_the_paper_is_read_whole(shared_data: Path) -> None:
    paths = sorted((shared_data / "paper-runs").glob("*.res.gz"))
    assert len(paths) == 34
    assert sum(len(docs) for path in paths for docs in read_run(path).values()) == 2_227_766


def test_a_run_of_the_paper_whose_ranks_are_those_of_the_first_stage(shared_data: Path) -> None:
    run = read_run(shared_data / "paper-runs" / "bm25_VBERT.2019.res.gz")
    assert len(run) == 43
    for docs in run.values():
        assert list(docs.values()) == sorted(docs.values(), reverse=True)
