"""Triples as people have them, and each way a line can be wrong."""

from __future__ import annotations

import gzip
import json

import pytest

from colbert_prf.errors import DatasetError
from colbert_prf.training import Example, read_examples, write_examples

GOOD = "do fish grow\tGoldfish do.\tBank rates fell.\n"


def examples_of(tmp_path, text: str, **options) -> list[Example]:
    path = tmp_path / "triples.tsv"
    path.write_text(text, encoding="utf-8")
    return list(read_examples([path], **options))


def test_texts(tmp_path):
    assert examples_of(tmp_path, GOOD) == [Example("do fish grow", ("Goldfish do.", "Bank rates fell."))]


def test_ids(tmp_path):
    queries, collection = {"1": "do fish grow"}, {"7": "Goldfish do.", "9": "Bank rates fell."}
    found = examples_of(tmp_path, "1\t7\t9\n", queries=queries, collection=collection)
    assert found == [Example("do fish grow", ("Goldfish do.", "Bank rates fell."))]


def test_files_are_read_one_after_another_whatever_their_form(tmp_path):
    (tmp_path / "a.tsv").write_text(GOOD)
    with gzip.open(tmp_path / "b.jsonl.gz", "wt") as file:
        file.write(json.dumps({"query": "q", "documents": ["p", "n"]}) + "\n\n")
    found = list(read_examples([tmp_path / "a.tsv", tmp_path / "b.jsonl.gz"]))
    assert [example.query for example in found] == ["do fish grow", "q"]


def test_what_is_written_is_read_again(tmp_path):
    examples = [Example("q é", ("p", "n"), (1.5, -2.0)), Example("r", ("s", "t"), (0.0, 1.0))]
    assert write_examples(tmp_path / "mined.jsonl.gz", examples) == 2
    assert list(read_examples([tmp_path / "mined.jsonl.gz"])) == examples


def test_pairs_are_read_where_no_negative_is_asked_for(tmp_path):
    assert examples_of(tmp_path, "q\tp\n", negatives=0) == [Example("q", ("p",))]


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ("only a question\n", "found one column"),
        ("q\tp\n", "expected 1 negatives, found 0"),
        ("q\tp\tn\tm\n", "expected 1 negatives, found 2"),
        ("q\t \tn\n", "a document has no text"),
        ("\tp\tn\n", "a query has no text"),
        ("q\tp\tp\n", "stands twice"),
        ("{\n", "not valid JSON"),
        ('{"query": "q"}\n', "a list of strings"),
        ('{"query": "q", "documents": "pn"}\n', "a list of strings"),
        ('{"query": "q", "documents": ["p", "n"], "score": [1, 2]}\n', "unknown field 'score'"),
        ('{"query": "q", "documents": ["p", "n"], "scores": [1]}\n', "2 documents have 1 scores"),
        ('{"query": "q", "documents": ["p", "n"], "scores": [1, "2"]}\n', "a list of numbers"),
        ('{"query": "q", "documents": ["p", "n"], "scores": [1, NaN]}\n', "must be finite"),
        ('{"query": "q", "documents": ["p", "n"], "scores": [1, 2]}\n', "others none"),
    ],
)
def test_a_bad_line_is_named(tmp_path, bad, message):
    with pytest.raises(DatasetError, match=message) as caught:
        examples_of(tmp_path, GOOD + "\n" + bad)
    assert caught.value.line == 3
    assert str(caught.value.path).endswith("triples.tsv")


@pytest.mark.parametrize(("line", "noun"), [("2\t7\t9", "query"), ("1\t8\t9", "document")])
def test_an_unknown_id_is_named(tmp_path, line, noun):
    with pytest.raises(DatasetError, match=f"line 1: no {noun} has the id"):
        examples_of(tmp_path, line, queries={"1": "q"}, collection={"7": "p", "9": "n"})


def test_a_passage_without_text_behind_an_id_is_named(tmp_path):
    with pytest.raises(DatasetError, match="the document '7' has no text"):
        examples_of(tmp_path, "1\t7\t9", queries={"1": "q"}, collection={"7": " ", "9": "n"})


def test_an_empty_file_is_refused(tmp_path):
    with pytest.raises(DatasetError, match="nothing to learn from"):
        examples_of(tmp_path, "\n")


def test_half_of_a_surrogate_pair_is_refused_with_its_line(tmp_path):
    examples = [{"query": query, "documents": ["b", "c"]} for query in ("a", "a\ud83d")]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, examples)))
    with pytest.raises(DatasetError, match="line 2: a query holds half of a surrogate pair"):
        list(read_examples([tmp_path / "a.jsonl"]))
