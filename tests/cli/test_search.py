"""``colbert-prf search``: filters, files of queries, every form of the result, and documents ranked by passages."""

from __future__ import annotations

import csv
import io
import json

import pytest
from click.testing import CliRunner

from colbert_prf import Index, Searcher
from colbert_prf.cli import cli
from colbert_prf.datasets import read_run

CORPUS = [
    {"_id": "fish", "text": "Goldfish grow all their life if the tank is large.", "year": 2021, "source": "garden"},
    {"_id": "bank", "text": "The bank raised its rates again.", "year": 2019},
    {"_id": "tank", "text": "The tank bombarded the troops.", "year": 2020, "source": "war"},
]
QUERIES = "q1\tdo fish grow\nq2\tmoney\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("search")
    (folder / "corpus.jsonl").write_text("".join(json.dumps(record) + "\n" for record in CORPUS))
    (folder / "queries.tsv").write_text(QUERIES)
    invoke("index", folder / "corpus.jsonl", folder / "my.index", "--bits", "4")
    return folder


def invoke(*arguments, code: int = 0, text: str | None = None) -> str:
    done = CliRunner().invoke(cli, [str(argument) for argument in arguments], input=text, catch_exceptions=False)
    assert done.exit_code == code, done.output
    return done.stdout if not code else done.output


@pytest.mark.parametrize("source", ["my.index", "corpus.jsonl"])
@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        (["year>=2020"], {"fish", "tank"}),
        (["year>=2020", "source = garden"], {"fish"}),
        (['{"not": {"source": {"exists": true}}}'], {"bank"}),
        (["source!=garden"], {"bank", "tank"}),
    ],
)
def test_filters(folder, source, filters, expected):
    options = [part for text in filters for part in ("--where", text)]
    (answer,) = json.loads(invoke("search", folder / source, "fish", "--json", *options))
    assert {hit["doc_id"] for hit in answer["hits"]} == expected
    assert answer["hits"][0]["metadata"]["year"] in (2019, 2020, 2021)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("year", "expected FIELD OPERATOR VALUE"),
        ("{year: 3}", "not valid JSON"),
        ('{"year": {"~": 3}}', "--where: unknown operator '~'"),
    ],
)
def test_what_is_no_filter_is_wrong_usage(folder, text, message):
    assert message in invoke("search", folder / "my.index", "fish", "--where", text, code=2)


def test_many_queries_in_every_form(folder):
    searcher = Searcher(Index.open(folder / "my.index"))
    expected = {"q1": searcher.search("do fish grow", 2), "q2": searcher.search("money", 2)}
    asked = ["search", folder / "my.index", "--queries", folder / "queries.tsv", "--k", "2", "--format"]

    answers = [json.loads(line) for line in invoke(*asked, "jsonl").splitlines()]
    assert [(answer["query_id"], answer["query"]) for answer in answers] == [("q1", "do fish grow"), ("q2", "money")]
    answers_of_json = json.loads(invoke(*asked, "json"))
    for answer, other in zip(answers, answers_of_json, strict=True):
        assert answer["hits"] == other["hits"]
        assert [hit["doc_id"] for hit in answer["hits"]] == expected[answer["query_id"]].doc_ids

    rows = list(csv.DictReader(io.StringIO(invoke(*asked, "csv"))))
    assert [(row["query_id"], row["doc_id"], float(row["score"])) for row in rows] == [
        (query_id, hit.doc_id, hit.score) for query_id, ranking in expected.items() for hit in ranking
    ]
    assert rows[0]["text"] == CORPUS[0]["text"]

    (folder / "found.run").write_text(invoke(*asked, "trec"))
    assert read_run(folder / "found.run", check_ranks=True) == {
        query_id: {hit.doc_id: hit.score for hit in ranking} for query_id, ranking in expected.items()
    }
    assert invoke(*asked, "table").startswith("do fish grow\n")


def test_queries_of_the_command_line_are_numbered(folder):
    lines = invoke("search", folder / "my.index", "fish", "money", "-k", "1", "--format", "trec").splitlines()
    assert [line.split()[0] for line in lines] == ["1", "2"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "give a query, or a file of them with --queries"),
        (["fish", "--json", "--format", "csv"], "--json and --format csv contradict each other"),
        (["fish", "--explain", "--format", "trec"], "--explain has no place in trec"),
    ],
)
def test_wrong_usage(folder, arguments, message):
    assert message in invoke("search", folder / "my.index", *arguments, code=2)


def test_documents_by_their_best_passage(folder):
    sentences = " ".join(f"Sentence {number} is about interest rates." for number in range(20))
    long = json.dumps({"_id": "long", "text": sentences + " Goldfish grow in a pond."})
    lines = f"{long}\n{json.dumps(CORPUS[2])}\n"
    invoke("index", "-", folder / "books.index", "--passages", "40", "--stride", "20", text=lines)
    (answer,) = json.loads(
        invoke("search", folder / "books.index", "fish", "--group", "document", "--json", "--explain")
    )
    assert [hit["doc_id"] for hit in answer["hits"]] == ["long", "tank"]
    assert answer["hits"][0]["passage_id"].startswith("long#")
    assert "Goldfish" in answer["hits"][0]["text"]
    assert answer["hits"][0]["matches"]
    (plain,) = json.loads(invoke("search", folder / "books.index", "fish", "--json"))
    assert plain["hits"][0]["doc_id"] == answer["hits"][0]["passage_id"]
    invoke("run", folder / "books.index", folder / "queries.tsv", "-o", folder / "books.run", "--group", "document")
    assert read_run(folder / "books.run")["q1"].keys() == {"long", "tank"}
    invoke("delete", folder / "books.index", "long")
    (left,) = json.loads(invoke("search", folder / "books.index", "fish", "--json"))
    assert [hit["doc_id"] for hit in left["hits"]] == ["tank#0"]
