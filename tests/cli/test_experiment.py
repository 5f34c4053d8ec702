"""``colbert-prf experiment``: from a configuration to a table, a report and JSON."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from colbert_prf.cli import cli, main

CONFIG = """
measures = ["MRR"]

[[collections]]
name = "Fish [1]"
corpus = "corpus.tsv"
topics = "topics.tsv"
qrels = "qrels.txt"

[[systems]]
name = "ColBERT E2E"
group = "Dense [bold]"
kind = "colbert"
baseline = true

[[systems]]
name = "Ranker"
group = "PRF"
kind = "colbert"
feedback = "prf"
clusters = 4
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "corpus.tsv").write_text("a\tGoldfish grow all their life.\nb\tBank rates fell.\n")
    (tmp_path / "topics.tsv").write_text("q1\tdo fish grow\nq2\tmoney\n")
    (tmp_path / "qrels.txt").write_text("q1 0 a 1\nq2 0 b 1\n")
    (tmp_path / "config.toml").write_text(CONFIG)
    return tmp_path


def experiment(folder, *options):
    arguments = ["experiment", str(folder / "config.toml"), "--data", str(folder), "-o", str(folder / "out"), *options]
    return CliRunner().invoke(cli, arguments, catch_exceptions=False)


def test_the_table_and_what_was_written(folder):
    done = experiment(folder)
    assert done.exit_code == 0
    lines = [line.split() for line in done.stdout.splitlines() if line.strip()]
    assert lines[0] == ["Fish", "[1]", "(2", "queries)"]
    assert lines[1] == ["system", "MRR", "MRT"]
    assert lines[2] == ["Dense", "[bold]"]
    assert lines[3][:4] == ["ColBERT", "E2E", "(a)", "1.0000"]
    assert lines[4] == ["PRF"]
    assert done.stderr.startswith("Fish [1]: ColBERT E2E, 2 topics, ")
    assert (folder / "out/report.html").is_file()
    assert (folder / "out/indexes/corpus.tsv.4.index/manifest.json").is_file()


def test_json_has_means_and_times(folder):
    found = json.loads(experiment(folder, "--json").stdout)
    (collection,) = found["collections"]
    assert (collection["name"], collection["num_topics"]) == ("Fish [1]", 2)
    first, ranker = collection["systems"]
    assert (first["letter"], first["means"]) == ("a", {"MRR": 1.0})
    assert (ranker["group"], ranker["improves_on"]) == ("PRF", {"MRR": []})
    assert "expansion" in ranker["mean_stage_milliseconds"]
    assert ranker["run"].endswith("Ranker.run.gz")


def test_a_mistake_is_one_line(folder, capsys):
    (folder / "config.toml").write_text(CONFIG.replace("clusters", "clutters"))
    with pytest.raises(SystemExit) as stopped:
        main(["experiment", str(folder / "config.toml"), "--data", str(folder), "-o", str(folder / "out")])
    assert stopped.value.code == 1
    told = capsys.readouterr().err
    assert "config.toml: system 'Ranker': feedback 'prf' has no parameter 'clutters'; it has feedback_docs" in told
    assert told.count("\n") == 1
