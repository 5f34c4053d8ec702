from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from colbert_prf.datasets import read_topics
from colbert_prf.errors import DatasetError

Write = Callable[[str, "str | bytes"], Path]


def message_of(source: str | Path, **options: str) -> str:
    with pytest.raises(DatasetError) as caught:
        read_topics(source, **options)  # type: ignore[arg-type]
    return str(caught.value)


def test_tsv_keeps_the_order_of_the_file(written: Write) -> None:
    topics = read_topics(written("q.tsv", "9\tnine\n10\tten: a title\n1\tone\n"))
    assert list(topics.items()) == [("9", "nine"), ("10", "ten: a title"), ("1", "one")]


def test_standard_input(standard_input: Callable[[bytes], None]) -> None:
    standard_input("q1\tété\n".encode())
    assert read_topics("-") == {"q1": "été"}


@pytest.mark.parametrize("id_key", ["_id", "query_id", "qid", "id"])
@pytest.mark.parametrize("text_key", ["text", "query"])
def test_json_lines(written: Write, id_key: str, text_key: str) -> None:
    path = written("q.jsonl", f'{{"{id_key}": 7, "{text_key}": "a question", "title": "not part of it"}}\n')
    assert read_topics(path) == {"7": "a question"}


CLASSIC = """
<top>

<num> Number: 451
<title> What is a Bengals cat?

<desc> Description:
Provide information on the Bengal cat breed.

<narr> Narrative:
Item should include any information on the Bengal cat breed.
</top>

<top>
<head> Tipster Topic Description
<num> Number:  052
<dom> Domain:  International Economics
<title> Topic:  AT&amp;T and
 South African Sanctions
</top>
"""


def test_classic_trec_topics_have_no_closing_tags(written: Write) -> None:
    expected = {"451": "What is a Bengals cat?", "052": "AT&T and South African Sanctions"}
    assert read_topics(written("topics.451-500.txt", CLASSIC)) == expected


@pytest.mark.parametrize(
    "content",
    [
        "<TOP><NUM>7</NUM><TITLE>horse hooves</TITLE></TOP>",
        '<?xml version="1.0"?>\n<topics>\n<topic number="7" type="x">\n<query>horse\nhooves</query>'
        "<description>no</description></topic></topics>",
        '<topics><topic id="7"><title>horse hooves</title><question>no</question></topic></topics>',
        "<topics><topic number='7'>\n horse hooves\n</topic></topics>",
        "<xml><topic><number>7</number><query>horse hooves</query></topic></xml>",
    ],
)
def test_xml_like_variants(written: Write, content: str) -> None:
    assert read_topics(written("topics.xml", content)) == {"7": "horse hooves"}


@pytest.mark.parametrize(
    ("content", "line", "expected"),
    [
        ("<top>\n<title> t\n</top>", 1, "this topic has no <num>; number every topic"),
        ("\n<top>\n<num> 7\n<desc> d\n</top>", 2, "this topic has neither <title> nor <query>; add one"),
        ("<top>\n<num> Number: \n<title> t\n</top>", 1, "the query id is empty; give every query an id"),
        ("<top>\n<num> 7\n<title>\n<desc> d\n</top>", 1, "query '7' has no text; write one, or remove the query"),
        ("<top>\n<num> 7\n<title> t\n", 1, "this <top> is never closed; add </top>, or fetch the file again"),
        ("<top>\n<num> 7\n<top>", 3, "a new <top> before the one of line 1 is closed; add </top>"),
    ],
)
def test_bad_trec_topics(written: Write, content: str, line: int, expected: str) -> None:
    path = written("topics.trec", content)
    assert message_of(path) == f"{path}, line {line}: {expected}"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("q2 no tab", "expected 2 tab-separated columns, id and text, found 1 (there is no tab)"),
        ("q1\tagain", "the query id 'q1' was used before, at line 1; make the ids unique"),
        ("q2\t ", "query 'q2' has no text; write one, or remove the query"),
        ("\ttext", "the query id is empty; give every query an id"),
        ("q2 \ttext", "the query id 'q2 ' begins or ends with a space; remove it"),
    ],
)
def test_a_bad_line(written: Write, line: str, expected: str) -> None:
    path = written("q.tsv", f"q1\ttext\n{line}\n")
    assert message_of(path) == f"{path}, line 2: {expected}"


def test_a_file_without_queries(written: Write) -> None:
    path = written("q.tsv", "\n")
    assert message_of(path) == f"{path}: no query found; the file is empty"


def test_formats_that_hold_no_topics(written: Write) -> None:
    path = written("q.parquet", b"")
    assert message_of(path) == f"{path}: a .parquet file cannot be read here; convert it to 'tsv', 'jsonl' or 'trec'"
    path = written("q.tsv", "q1\ttext\n")
    assert message_of(path, format="parquet") == f"{path}: unknown format 'parquet'; choose 'tsv', 'jsonl' or 'trec'"


@pytest.mark.parametrize(
    ("name", "num_queries"),
    [
        ("msmarco-dl1920/queries.dl19.tsv", 43),
        ("msmarco-dl1920/queries.dl20.tsv", 54),
        ("vaswani/queries.tsv", 93),
        ("nfcorpus/queries.tsv", 323),
        ("nfcorpus/train.queries.tsv", 2_590),
        ("scifact/queries.tsv", 300),
    ],
)
def test_the_real_topics(shared_data: Path, name: str, num_queries: int) -> None:
    assert len(read_topics(shared_data / name)) == num_queries


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("<topic number='1'><query>a <b>c</b> d</query></topic>", "a c d"),
        ("<top>\n<num> 1\n<title>What <i>this</i> is</title>\n<desc> more\n</top>", "What this is"),
        ("<top>\n<num> 1\n<title> open\n<desc> more <title>not this</title>\n</top>", "open"),
    ],
)
def test_what_is_marked_up_inside_a_title_belongs_to_it(written: Write, content: str, text: str) -> None:
    assert read_topics(written("topics.trec", content), format="trec") == {"1": text}
