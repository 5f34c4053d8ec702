"""``colbert-prf train`` as a user types it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from colbert_prf.cli import cli
from colbert_prf.encoder.export import Agreement
from colbert_prf.training import Example, TrainingReport, read_examples
from colbert_prf.training.fitting import Fitted

TRIPLES = "do fish grow\tGoldfish do.\tBank rates fell.\nbank rates\tBank rates fell.\tGoldfish do.\n"


@pytest.fixture
def calls(monkeypatch):
    """What the command asks for, in place of doing it."""
    seen = []

    def record(examples, base, output, **options):
        seen.append({"examples": examples, "base": base, "output": output, **options})
        fitted = Fitted(2, 1.0, ((1, 0.7), (2, 0.5)), ((0, 0.5), (2, 0.5)))
        return TrainingReport(output, len(examples), 10, fitted, Agreement(0.0, 1.0, 1.0))

    monkeypatch.setattr("colbert_prf.training.fitting.require_trainer", lambda: None)
    monkeypatch.setattr("colbert_prf.training.train_colbert", record)
    monkeypatch.setattr("colbert_prf.training.train_cross_encoder", record)
    return seen


@pytest.fixture
def triples(tmp_path) -> Path:
    path = tmp_path / "triples.tsv"
    path.write_text(TRIPLES)
    return path


def run(*arguments, output="model"):
    return CliRunner().invoke(cli, ["train", *map(str, arguments), "--base", "b", "--output", str(output)])


def test_options_reach_the_training(calls, triples, tmp_path):
    done = run(
        triples, "--rate", "1e-5", "--steps", "7", "--layers", "2", "--dim", "64", "--no-augment", "--keep-punctuation",
        "--device", "cpu", "--float32", "--resume", output=tmp_path / "model",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    (call,) = calls
    assert call["base"] == "b"
    assert (call["settings"].learning_rate, call["settings"].steps, call["settings"].layers) == (1e-5, 7, 2)
    assert (call["settings"].loss, call["settings"].epochs) == ("pairwise", 1.0)
    assert (call["form"].dim, call["form"].augment, call["form"].skip_punctuation) == (64, False, False)
    assert (call["device"], call["int8"], call["resume"]) == ("cpu", False, True)
    assert call["examples"][0] == Example("do fish grow", ("Goldfish do.", "Bank rates fell."))
    assert "Loss: 0.7000 at first, 0.5000 at last." in done.output
    assert "did not improve" in done.stderr


def test_json(calls, triples, tmp_path):
    done = run(triples, "--json", output=tmp_path / "model")
    assert json.loads(done.stdout)["fitted"]["steps"] == 2


def test_ids(calls, tmp_path, triples):
    (tmp_path / "ids.tsv").write_text("1\t7\t9\n")
    (tmp_path / "queries.tsv").write_text("1\tdo fish grow\n")
    (tmp_path / "passages.tsv").write_text("7\tGoldfish do.\n9\tBank rates fell.\n")
    texts = ("--queries", tmp_path / "queries.tsv", "--collection", tmp_path / "passages.tsv")
    assert run(tmp_path / "ids.tsv", *texts, output=tmp_path / "model").exit_code == 0
    assert calls[0]["examples"] == [Example("do fish grow", ("Goldfish do.", "Bank rates fell."))]
    assert "go together" in run(triples, *texts[:2], output=tmp_path / "model").output


def test_questions_are_held_out(calls, triples, tmp_path):
    assert run(triples, "--hold-out", "1", output=tmp_path / "model").exit_code == 0
    assert [example.query for example in calls[0]["validation"]] == ["bank rates"]
    assert [example.query for example in calls[0]["examples"]] == ["do fish grow"]
    assert "leaves nothing" in run(triples, "--hold-out", "2", output=tmp_path / "model").output


def test_negatives_are_mined_from_an_index_and_scored_by_a_teacher(calls, tmp_path):
    (tmp_path / "pairs.tsv").write_text("do goldfish grow\tGoldfish grow.\n")
    (tmp_path / "passages.tsv").write_text("a\tGoldfish grow.\nb\tGoldfish are fish.\nc\tBank rates fell.\n")
    index = tmp_path / "my.index"
    assert CliRunner().invoke(cli, ["index", str(tmp_path / "passages.tsv"), str(index)]).exit_code == 0
    done = run(
        tmp_path / "pairs.tsv", "--mine", index, "--negatives", "1", "--depth", "2", "--teacher", "embedded",
        "--save-examples", tmp_path / "mined.jsonl", output=tmp_path / "model",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    (example,) = calls[0]["examples"]
    assert example.documents == ("Goldfish grow.", "Goldfish are fish.")
    assert example.scores[0] > example.scores[1]
    assert calls[0]["settings"].loss == "distill"
    assert list(read_examples([tmp_path / "mined.jsonl"])) == [example]


def test_negatives_are_mined_from_a_run(calls, tmp_path):
    (tmp_path / "ids.tsv").write_text("1\t7\n")
    (tmp_path / "queries.tsv").write_text("1\tdo fish grow\n")
    (tmp_path / "passages.tsv").write_text("7\tGoldfish do.\n9\tBank rates fell.\n")
    (tmp_path / "bm25.res").write_text("1 Q0 7 1 5.0 bm25\n1 Q0 9 2 4.0 bm25\n")
    mine = ("--mine", tmp_path / "bm25.res", "--negatives", "1", "--depth", "2")
    texts = ("--queries", tmp_path / "queries.tsv", "--collection", tmp_path / "passages.tsv")
    assert run(tmp_path / "ids.tsv", *texts, *mine, output=tmp_path / "model").exit_code == 0
    assert calls[0]["examples"] == [Example("do fish grow", ("Goldfish do.", "Bank rates fell."))]
    assert "needs --queries" in run(tmp_path / "ids.tsv", *mine, output=tmp_path / "model").output


def test_a_cross_encoder_reads_question_and_passage_together(calls, triples, tmp_path):
    done = run(triples, "--kind", "cross-encoder", output=tmp_path / "model")
    assert done.exit_code == 0, done.output
    assert calls[0]["max_length"] == 32 + 180


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(["--rate", "-1"], "learning_rate must be a positive number"), (["--layers", "-1"], "--layers")],
)
def test_a_bad_setting_is_said_before_anything_is_read(calls, tmp_path, arguments, message):
    done = run(tmp_path / "missing.tsv", *arguments, output=tmp_path / "model")
    assert message in done.output or message in str(done.exception)


def test_an_interruption_says_how_to_go_on(calls, triples, tmp_path, monkeypatch):
    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("colbert_prf.training.train_colbert", interrupted)
    assert "model.training: continue with --resume" in run(triples, output=tmp_path / "model").stderr


def test_an_output_that_exists_is_said_before_anything_is_read(calls, tmp_path):
    assert "exists already" in str(run(tmp_path / "missing.tsv", output=tmp_path).exception)
