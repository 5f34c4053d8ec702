"""Search by terms on the command line."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from colbert_prf import Index
from colbert_prf.baselines.lexical import LexicalIndex
from colbert_prf.cli import cli

CORPUS = [
    ("fish", "Goldfish grow all their life if the tank is large."),
    ("pond", "A goldfish in a pond becomes larger than one in a bowl."),
    ("bank", "The bank raised its rates again."),
]


@pytest.fixture
def corpus(tmp_path):
    path = tmp_path / "passages.tsv"
    path.write_text("".join(f"{doc_id}\t{text}\n" for doc_id, text in CORPUS))
    return str(path)


def run(*arguments):
    done = CliRunner().invoke(cli, ["bm25", *arguments])
    assert done.exit_code == 0, done.output
    return done.output


def test_a_file_a_lexical_index_and_a_vector_index_answer_alike(corpus, tmp_path, encoder):
    LexicalIndex.create(tmp_path / "my.lexical", CORPUS, progress=False)
    Index.create(tmp_path / "my.index", CORPUS, encoder=encoder, bits=4, progress=False)
    answers = []
    for source in (corpus, tmp_path / "my.lexical", tmp_path / "my.index"):
        (answer,) = json.loads(run(str(source), "growing tanks", "--json"))
        answers.append([(hit["doc_id"], hit["score"], hit["text"]) for hit in answer["hits"]])
    assert answers[0] == answers[1] == answers[2]
    assert answers[0][0][0] == "fish"


def test_feedback_and_explanations_are_shown(corpus):
    output = run(corpus, "tank", "--feedback", "bo1", "--feedback-docs", "1", "--explain")
    assert "goldfish^" in output
    assert "contribution" in output
    (answer,) = json.loads(run(corpus, "tank", "--feedback", "bo1", "--explain", "--json"))
    assert answer["expansion"]["feedback"] == ["fish"]
    first = answer["hits"][0]
    assert sum(match["contribution"] for match in first["matches"]) == pytest.approx(first["score"])


def test_a_filter_holds_for_every_kind_of_source(tmp_path, encoder):
    records = [
        {"_id": doc_id, "text": text, "year": year} for (doc_id, text), year in zip(CORPUS, (2021, 2019), strict=False)
    ]
    path = tmp_path / "corpus.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    documents = [(record["_id"], record["text"], {"year": record["year"]}) for record in records]
    LexicalIndex.create(tmp_path / "my.lexical", documents, progress=False)
    Index.create(tmp_path / "my.index", documents, encoder=encoder, bits=4, progress=False)
    for source in (path, tmp_path / "my.lexical", tmp_path / "my.index"):
        (answer,) = json.loads(run(str(source), "goldfish", "--where", "year<2020", "--json"))
        assert [(hit["doc_id"], hit["metadata"]) for hit in answer["hits"]] == [("pond", {"year": 2019})]
        wrong = CliRunner().invoke(cli, ["bm25", str(source), "goldfish", "--where", "yeer<2020"])
        assert "no field 'yeer'; there are 'year'" in str(wrong.exception)


def test_info_describes_a_lexical_index(tmp_path):
    LexicalIndex.create(tmp_path / "my.lexical", CORPUS, progress=False)
    shown = CliRunner().invoke(cli, ["info", str(tmp_path / "my.lexical"), "--json"])
    facts = json.loads(shown.output)
    assert (facts["kind"], facts["num_documents"], facts["generation"]) == ("colbert-prf lexical index", 3, 1)
    assert facts["num_bytes"]["posting_documents"] > 0


@pytest.mark.parametrize("wrong", [["--original", "0.5"], ["--feedback", "kl", "--original", "0.5"]])
def test_options_without_their_method_are_refused(corpus, wrong):
    assert CliRunner().invoke(cli, ["bm25", corpus, "tank", *wrong]).exit_code == 2
