"""``colbert-prf run``: the rankings of the library, in a file that says how it was made."""

from __future__ import annotations

import json
import shutil

import pytest
from click.testing import CliRunner

from colbert_prf import ColbertPRF, Index, Searcher
from colbert_prf.cli import cli
from colbert_prf.datasets import read_run
from colbert_prf.errors import StorageError

PASSAGES = [
    ("fish", "Goldfish grow all their life if the tank is large."),
    ("bank", "The bank raised its rates again."),
    ("tank", "The tank bombarded the troops."),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    Index.create(folder / "my.index", PASSAGES, bits=4)
    (folder / "topics.tsv").write_text("q1\tdo fish grow\nq2\tmoney\n")
    return folder


def run(folder, *arguments):
    done = CliRunner().invoke(
        cli, ["run", str(folder / "my.index"), str(folder / "topics.tsv"), *arguments], catch_exceptions=False
    )
    assert done.exit_code == 0, done.output
    return done.stdout


def test_a_run_is_what_the_library_finds(folder, tmp_path):
    shown = run(folder, "-o", str(tmp_path / "e2e.run.gz"), "--k", "2")
    assert "2 topics, tag colbert-prf.e2e, " in shown
    found = read_run(tmp_path / "e2e.run.gz", check_ranks=True)
    searcher = Searcher(Index.open(folder / "my.index"))
    for query_id, text in {"q1": "do fish grow", "q2": "money"}.items():
        assert found[query_id] == {hit.doc_id: hit.score for hit in searcher.search(text, 2)}


def test_feedback_is_in_the_tag_and_in_the_run(folder, tmp_path):
    options = ["--feedback", "prf", "--clusters", "4", "--feedback-docs", "1", "--weight", "0.5", "--rerank", "--json"]
    facts = json.loads(run(folder, "-o", str(tmp_path / "prf.run"), *options))
    assert facts["tag"] == "colbert-prf.prf.fb1.K4.fe4.weight0.5.rerank"
    assert facts["num_topics"] == 2
    assert {"encode", "expansion", "maxsim again"} <= facts["mean_stage_milliseconds"].keys()
    assert facts["mean_response_milliseconds"] >= sum(facts["mean_stage_milliseconds"].values()) * 0.99
    method = ColbertPRF(clusters=4, expansion_vectors=4, feedback_docs=1, weight=0.5, rerank=True)
    expected = Searcher(Index.open(folder / "my.index")).search("do fish grow", 1000, feedback=method)
    assert read_run(tmp_path / "prf.run")["q1"] == {hit.doc_id: hit.score for hit in expected}


def test_another_configuration_is_refused_and_told(folder, tmp_path):
    run(folder, "-o", str(tmp_path / "my.run"))
    run(folder, "-o", str(tmp_path / "my.run"))  # nothing to do
    with pytest.raises(StorageError, match=r"k is 1000, not 5"):
        run(folder, "-o", str(tmp_path / "my.run"), "--k", "5")
    run(folder, "-o", str(tmp_path / "my.run"), "--k", "5", "--overwrite")


def test_an_index_of_other_documents_is_another_configuration(folder, tmp_path):
    arguments = [str(tmp_path / "my.index"), str(folder / "topics.tsv"), "-o", str(tmp_path / "a.run")]
    Index.create(tmp_path / "my.index", PASSAGES, bits=4)
    assert CliRunner().invoke(cli, ["run", *arguments]).exit_code == 0
    shutil.rmtree(tmp_path / "my.index")
    Index.create(tmp_path / "my.index", [(f"new-{doc_id}", text) for doc_id, text in PASSAGES], bits=4)
    done = CliRunner().invoke(cli, ["run", *arguments])
    assert "a run of another configuration is there (index.content is " in str(done.exception)


@pytest.mark.parametrize(
    ("topics", "options", "message"),
    [
        ("q 1\tfish\n", [], "the query id 'q 1' holds white space"),
        ("q1\tfish\n", ["--tag", "two words"], "the tag 'two words' holds white space"),
    ],
)
def test_what_cannot_be_written_is_told_before_anything_is_searched(
    folder, tmp_path, monkeypatch, topics, options, message
):
    (tmp_path / "topics.tsv").write_text(topics)
    monkeypatch.setattr(Searcher, "search", lambda *args, **options: pytest.fail("searched"))
    arguments = [str(folder / "my.index"), str(tmp_path / "topics.tsv"), "-o", str(tmp_path / "a.run"), *options]
    done = CliRunner().invoke(cli, ["run", *arguments])
    assert message in str(done.exception)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["topics.tsv"]


def test_document_ids_with_white_space_leave_no_answer_behind(folder, tmp_path):
    Index.create(tmp_path / "my.index", [("two words", PASSAGES[0][1])], bits=4)
    arguments = [str(tmp_path / "my.index"), str(folder / "topics.tsv"), "-o", str(tmp_path / "a.run")]
    done = CliRunner().invoke(cli, ["run", *arguments])
    assert "for query 'q1', the document id 'two words' holds white space" in str(done.exception)
    assert not (tmp_path / "a.run").exists()


def test_standard_output_is_no_file(folder):
    arguments = [str(folder / "my.index"), str(folder / "topics.tsv"), "-o", "-"]
    done = CliRunner().invoke(cli, ["run", *arguments])
    assert done.exit_code == 2
    assert "a run that can be continued is a file, not standard output" in done.stderr


def test_a_filter_is_in_the_run_and_in_its_configuration(tmp_path):
    Index.create(tmp_path / "my.index", [(*passage, {"year": year}) for year, passage in enumerate(PASSAGES, 2019)])
    (tmp_path / "topics.tsv").write_text("q1\tdo fish grow\n")
    run(tmp_path, "-o", str(tmp_path / "a.run"), "--where", "year>=2020", "--where", '{"year": {"<": 2030}}')
    assert read_run(tmp_path / "a.run")["q1"].keys() == {"bank", "tank"}
    with pytest.raises(StorageError, match="configuration"):
        run(tmp_path, "-o", str(tmp_path / "a.run"))
    wrong = CliRunner().invoke(cli, ["run", "x", "y", "-o", "z", "--where", "year"])
    assert wrong.exit_code == 2
    assert "expected FIELD OPERATOR VALUE" in wrong.output
