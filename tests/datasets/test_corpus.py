from __future__ import annotations

import gzip
import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard

from colbert_prf.datasets import Document, read_corpus, read_corpus_with_metadata
from colbert_prf.errors import DatasetError, InputError

Write = Callable[[str, "str | bytes"], Path]


def message_of(source: str | Path, **options: Any) -> str:
    with pytest.raises(DatasetError) as caught:
        list(read_corpus(source, **options))
    return str(caught.value)


def test_tsv(written: Write) -> None:
    documents = list(read_corpus(written("c.tsv", 'd1\tfirst "text" \n\nd2\tsecond\n')))
    assert documents == [("d1", 'first "text" '), ("d2", "second")]
    assert documents[0] == Document(doc_id="d1", text='first "text" ')


@pytest.mark.parametrize("compress", [bytes, gzip.compress, zstandard.ZstdCompressor().compress])
def test_a_corpus_may_be_compressed(written: Write, compress: Callable[[bytes], bytes]) -> None:
    assert list(read_corpus(written("c.tsv.gz", compress(b"d1\ttext\n")))) == [("d1", "text")]


def test_standard_input(standard_input: Callable[[bytes], None]) -> None:
    standard_input(b'{"_id": "d1", "text": "from a pipe"}\n')
    assert list(read_corpus("-")) == [("d1", "from a pipe")]


def test_the_corpus_is_streamed(written: Write) -> None:
    line = "x" * 1000
    path = written("c.tsv.gz", gzip.compress("".join(f"{number}\t{line}\n" for number in range(50_000)).encode()))
    documents = read_corpus(path)
    tracemalloc.start()
    try:
        assert sum(len(text) for _, text in documents) == 50_000_000
        assert tracemalloc.get_traced_memory()[1] < 40_000_000
    finally:
        tracemalloc.stop()


def test_a_missing_file_is_an_error_of_the_call(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="no such file; check the path"):
        read_corpus(tmp_path / "c.tsv")


def test_documents_before_a_bad_line_are_given(written: Write) -> None:
    documents = read_corpus(written("c.tsv", "d1\ttext\nbad\n"))
    assert next(documents) == ("d1", "text")
    with pytest.raises(DatasetError, match="line 2: expected 2 tab-separated columns"):
        next(documents)


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("d2 no tab", "1 (there is no tab)"),
        ("d2\thttp://a.b\ttitle\tbody", "4; keep two, or write the others as JSON lines"),
    ],
)
def test_tsv_with_another_number_of_columns(written: Write, line: str, found: str) -> None:
    path = written("c.tsv", f"d1\ttext\n{line}\n")
    assert message_of(path) == f"{path}, line 2: expected 2 tab-separated columns, id and text, found {found}"


def test_json_lines_in_beir_form(written: Write) -> None:
    lines = [
        {"_id": "d1", "title": "A title", "text": "a text", "metadata": {"url": "u", "year": 2001}},
        {"_id": "d2", "title": "", "text": "no title", "metadata": {}},
        {"_id": "d3", "title": None, "text": "null title"},
        {"_id": "d4", "title": "Only a title", "text": ""},
    ]
    path = written("c.jsonl", "\n \n".join(map(json.dumps, lines)))
    assert list(read_corpus_with_metadata(path)) == [
        (("d1", "A title a text"), {"title": "A title", "url": "u", "year": 2001}),
        (("d2", "no title"), {"title": ""}),
        (("d3", "null title"), {"title": None}),
        (("d4", "Only a title"), {"title": "Only a title"}),
    ]


@pytest.mark.parametrize("id_key", ["_id", "id", "docid", "doc_id", "docno"])
@pytest.mark.parametrize("text_key", ["text", "contents"])
def test_json_lines_by_other_key_names(written: Write, id_key: str, text_key: str) -> None:
    path = written("c.jsonl", json.dumps({id_key: 7, text_key: "a text", "tags": ["x"]}))
    assert list(read_corpus_with_metadata(path)) == [(("7", "a text"), {"tags": ["x"]})]


def test_the_preferred_key_is_the_id_and_the_other_is_metadata(written: Write) -> None:
    path = written("c.jsonl", '{"id": "other", "_id": "d1", "contents": "c", "text": "t"}')
    assert list(read_corpus_with_metadata(path)) == [(("d1", "t"), {"id": "other", "contents": "c"})]


ADVICE = "; say what yours is called with id_field= or text_field= (--id-field, --text-field)"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('{"_id": "d2" "text": ""}', "not valid JSON: Expecting ',' delimiter at column 14; write one object a line"),
        ('["d2", "text"]', "expected a JSON object, found an array; write one object a line"),
        ("3", "expected a JSON object, found a number; write one object a line"),
        ('"d2"', "expected a JSON object, found a string; write one object a line"),
        ('{"text": "t"}', f"expected a field _id or doc_id or docid or docno or id, found text{ADVICE}"),
        ('{"_id": "d2"}', f"expected a field text or contents, found _id{ADVICE}"),
        ("{}", f"expected a field _id or doc_id or docid or docno or id, found none{ADVICE}"),
        ('{"_id": null, "text": "t"}', "'_id' must be a string, found null"),
        ('{"_id": true, "text": "t"}', "'_id' must be a string, found a boolean"),
        ('{"_id": 1.5, "text": "t"}', "'_id' must be a string, found a number"),
        ('{"_id": "d2", "text": ["t"]}', "'text' must be a string, found an array"),
        ('{"_id": "d2", "text": "t", "title": {}}', "'title' must be a string, found an object"),
        (
            '{"_id": "d2", "text": "t", "url": 1, "metadata": {"url": 2}}',
            "'url' stands both in the object and in its 'metadata'; rename one",
        ),
        ('{"_id": "d2", "text": "\\ud83d"}', "half of a surrogate pair, '\\ud83d', is not text; repair it"),
        ('{"_id": "\\udc00", "text": "t"}', "half of a surrogate pair, '\\udc00', is not text; repair it"),
    ],
)
def test_a_bad_json_line(written: Write, line: str, expected: str) -> None:
    path = written("c.jsonl", f'{{"_id": "d1", "text": "t"}}\n{line}\n')
    assert message_of(path) == f"{path}, line 2: {expected}"


@pytest.mark.parametrize("value", ["[" * 100_000, "1" * 5000])
def test_json_that_python_cannot_hold(written: Write, value: str) -> None:
    path = written("c.jsonl", f'{{"_id": "d1", "text": "t", "x": {value}}}')
    assert message_of(path).startswith(f"{path}, line 1: not ")


TREC = """<DOC>
<DOCNO> FT-1 </DOCNO>
<!-- a comment
on two lines -->
<DOCID>17</DOCID>
<HEADLINE>A <i>big</i> headline</HEADLINE>
<TEXT>
Profits &amp; losses,   where a < b.
</TEXT>
</DOC>

<doc id="x"><docno>FT-2</docno>one line</doc><DOC><DOCNO>FT-3</DOCNO><P>another</P></DOC>
"""


@pytest.mark.parametrize("name", ["c.trec", "c.sgml", "c.xml.gz", "c.txt"])
def test_trec(written: Write, name: str) -> None:
    assert list(read_corpus_with_metadata(written(name, TREC))) == [
        (("FT-1", "A big headline Profits & losses, where a < b."), {"docid": "17"}),
        (("FT-2", "one line"), {}),
        (("FT-3", "another"), {}),
    ]


@pytest.mark.parametrize(
    ("content", "line", "expected"),
    [
        ("\n<DOC>\ntext</DOC>", 2, "expected one <DOCNO> in this <DOC>, found 0; give every document its own"),
        (
            "<DOC><DOCNO>1</DOCNO><DOCNO>2</DOCNO>\n</DOC>",
            1,
            "expected one <DOCNO> in this <DOC>, found 2; give every document its own",
        ),
        ("<DOC>\n<DOCNO>1</DOCNO>\n<DOC>", 3, "a new <DOC> before the one of line 1 is closed; add </DOC>"),
        ("\n\n<DOC>\n<DOCNO>1</DOCNO>", 3, "this <DOC> is never closed; add </DOC>, or fetch the file again"),
        ("<DOC><DOCNO>1</DOCNO>t</DOC>\nstray", 2, "text outside <DOC>: 'stray'; put it inside one"),
        ("<DOC><DOCNO></DOCNO>t</DOC>", 1, "the document id is empty; give every document an id"),
    ],
)
def test_bad_trec(written: Write, content: str, line: int, expected: str) -> None:
    path = written("c.trec", content)
    assert message_of(path) == f"{path}, line {line}: {expected}"


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("\n d1\ttext\n", None),
        ('  {"_id": "d1", "text": "text"}\n', [("d1", "text")]),
        ("<DOC><DOCNO>d1</DOCNO>text</DOC>", [("d1", "text")]),
        ("d1\ttext\n", [("d1", "text")]),
    ],
)
def test_the_first_line_tells_the_format(written: Write, content: str, expected: list[object] | None) -> None:
    path = written("collection", content)
    if expected is None:
        assert message_of(path) == f"{path}, line 2: the document id ' d1' begins or ends with a space; remove it"
    else:
        assert list(read_corpus(path)) == expected


def test_the_caller_overrides_suffix_and_content(written: Write) -> None:
    path = written("c.jsonl", '<d1\t{"text"}\n')
    assert list(read_corpus(path, format="tsv")) == [("<d1", '{"text"}')]


def test_an_unknown_format_lists_the_known(written: Write) -> None:
    path = written("c.tsv", "d1\ttext\n")
    known = "'tsv', 'jsonl', 'csv', 'trec' or 'parquet'"
    assert message_of(path, format="ods") == f"{path}: unknown format 'ods'; choose {known}"


def test_a_format_that_cannot_be_told(written: Write) -> None:
    path = written("c.txt", "\nd1,a text with commas that goes on and on and on\n")
    assert message_of(path) == (
        f"{path}, line 2: cannot tell the format from 'd1,a text with commas that goes on and …'; "
        "say 'tsv', 'jsonl', 'csv', 'trec' or 'parquet' with format= or --corpus-format"
    )


def test_a_repeated_id_names_both_lines(written: Write) -> None:
    path = written("c.tsv", "d1\ta\n\nd2\tb\nd1\tc\n")
    assert message_of(path) == f"{path}, line 4: the document id 'd1' was used before, at line 1; make the ids unique"


def test_a_repeated_id_on_one_line(written: Write) -> None:
    path = written("c.trec", "<DOC><DOCNO>1</DOCNO>a</DOC><DOC><DOCNO>1</DOCNO>b</DOC>")
    assert message_of(path) == f"{path}, line 1: the document id '1' was used before, at line 1; make the ids unique"


@pytest.mark.parametrize("line", ["\ttext", "  \ttext"])
def test_an_empty_id(written: Write, line: str) -> None:
    path = written("c.tsv", f"d1\ttext\n{line}\n")
    assert message_of(path) == f"{path}, line 2: the document id is empty; give every document an id"


@pytest.mark.parametrize("content", ["", "\n\n"])
def test_a_corpus_without_documents(written: Write, content: str) -> None:
    for name in ("c.tsv", "c.jsonl", "c.trec", "c.txt"):
        path = written(name, content)
        assert message_of(path) == f"{path}: no document found; the file is empty"


def test_an_empty_document_is_refused_kept_or_skipped(written: Write) -> None:
    path = written("c.tsv", "d1\ttext\nd2\t \u3000\nd3\t\nd4\tmore\n")
    assert message_of(path) == (
        f"{path}, line 2: document 'd2' has no text; keep such documents (empty='keep', --empty keep) or skip them "
        "(empty='skip', --empty skip)"
    )
    assert list(read_corpus(path, empty="keep")) == [("d1", "text"), ("d2", " \u3000"), ("d3", ""), ("d4", "more")]
    assert list(read_corpus(path, empty="skip")) == [("d1", "text"), ("d4", "more")]


def test_an_id_used_by_a_skipped_document_is_still_used(written: Write) -> None:
    path = written("c.tsv", "d1\t\nd1\ttext\n")
    assert message_of(path, empty="skip").startswith(f"{path}, line 2: the document id 'd1' was used before, at line 1")


def test_an_unknown_policy(written: Write) -> None:
    with pytest.raises(InputError, match="unknown empty='warn'; choose 'error', 'keep' or 'skip'"):
        read_corpus(written("c.tsv", "d1\tt"), empty="warn")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("folder", "num_docs", "first_id"),
    [
        ("msmarco-dl1920", 41_867, "0"),
        ("vaswani", 11_429, "1"),
        ("nfcorpus", 3_633, "MED-10"),
        ("scifact", 5_183, "4983"),
    ],
)
def test_the_real_corpora(shared_data: Path, folder: str, num_docs: int, first_id: str) -> None:
    documents = list(read_corpus(shared_data / folder / "collection.tsv.gz"))
    assert len(documents) == num_docs
    assert documents[0].doc_id == first_id


def test_csv_with_quotes_line_breaks_and_numbers(written: Write) -> None:
    path = written("c.csv", 'id,title,text,year,code\nd1,T,"a ""b"",\nand more",1999,007\n\nd2,,plain,,x\n')
    assert list(read_corpus_with_metadata(path)) == [
        (("d1", 'T a "b",\nand more'), {"title": "T", "year": 1999, "code": "007"}),
        (("d2", "plain"), {"title": "", "code": "x"}),
    ]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("id,text\nd1,a,b\n", "line 2: expected 2 values, as many as the header has, found 3"),
        ("id,text\nd1,a\nd1,b\n", "line 3: the document id 'd1' was used before, at line 2; make the ids unique"),
        ("id,text,id\n", "line 1: the header has 'id' twice; rename one"),
        ('id,text\nd1,"a\n', "line 2: not valid CSV: unexpected end of data; quote a value with a comma, a quote or a"),
        ("key,text\nd1,a\n", "line 2: expected a field _id or doc_id or docid or docno or id, found key, text;"),
    ],
)
def test_bad_csv(written: Write, content: str, expected: str) -> None:
    path = written("c.csv", content)
    assert message_of(path).startswith(f"{path}, {expected}")


def test_fields_may_be_called_otherwise(written: Write) -> None:
    path = written("c.jsonl", '{"key": "d1", "body": "a text", "head": "A", "title": "B", "id": "x"}')
    named = {"id_field": "key", "text_field": "body"}
    assert [text for _, text in read_corpus(path, **named)] == ["B a text"]
    assert [text for _, text in read_corpus(path, **named, title_field="head")] == ["A a text"]
    ((document, metadata),) = read_corpus_with_metadata(path, **named, title_field="")
    assert document == ("d1", "a text")
    assert metadata == {"head": "A", "title": "B", "id": "x"}
    with pytest.raises(DatasetError, match="TSV has no named fields; leave out id_field"):
        read_corpus(written("c.tsv", "d1\ttext"), id_field="key")
