"""``colbert-prf sweep``: values in a file, figures beside it."""

from __future__ import annotations

import csv
import json
import sys

import pytest
from click.testing import CliRunner

from colbert_prf import Index
from colbert_prf.cli import cli
from colbert_prf.cli.sweep import _default_studies
from colbert_prf.errors import DatasetWarning, InputError

PASSAGES = [
    ("fish", "Goldfish grow all their life if the tank is large."),
    ("bank", "The bank raised its rates again."),
    ("tank", "The tank bombarded the troops."),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sweep")
    Index.create(folder / "my.index", PASSAGES, bits=4)
    (folder / "topics.tsv").write_text("q1\tdo fish grow\nq2\tmoney\n")
    (folder / "qrels.txt").write_text("q1 0 fish 1\nq2 0 bank 1\n")
    return folder


def sweep(folder, *options, qrels="qrels.txt"):
    arguments = [str(folder / "my.index"), str(folder / "topics.tsv"), str(folder / qrels), "--k", "10"]
    return CliRunner().invoke(cli, ["sweep", *arguments, *options], catch_exceptions=False)


def test_values_and_figures(folder, tmp_path):
    options = ["--param", "clusters=4,8", "--param", "expansion-vectors=2,4", "--study", "expansion"]
    done = sweep(folder, "-o", str(tmp_path / "study"), *options)
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("first pass: MAP 1.0000, 2 topics\nexpansion, Ranker: 4 settings, MAP ")
    with (tmp_path / "study/sweep.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == 1 + 2 * 4
    assert (rows[0]["system"], rows[0]["MAP"]) == ("first pass", "1.0")
    assert (rows[1]["clusters"], rows[1]["expansion_vectors"], rows[1]["weight"]) == ("4", "2", "0.15")
    assert rows[1]["beta"] == ""
    for name in ("studies.png", "heat-ranker.png", "heat-reranker.png"):
        assert (tmp_path / "study" / name).read_bytes().startswith(b"\x89PNG")


def test_json_and_another_format(folder, tmp_path):
    options = ["--study", "beta", "--param", "beta=0,1", "--format", "svg", "--json", "-m", "P@1"]
    found = json.loads(sweep(folder, "-o", str(tmp_path), *options).stdout)
    assert found["first_pass"] == {"P@1": 1.0}
    assert [(one["beta"], one["rerank"]) for one in found["studies"]["beta"]] == [
        (0.0, False),
        (1.0, False),
        (0.0, True),
        (1.0, True),
    ]
    assert {one["weight"] for one in found["studies"]["beta"]} == {None}
    assert (tmp_path / "studies.svg").is_file()


@pytest.mark.parametrize(
    ("asked", "studies"),
    [
        ([], ("expansion", "feedback_docs", "weight")),
        (["clusters"], ("expansion", "feedback_docs", "weight")),
        (["beta"], ("expansion", "feedback_docs", "beta")),
        (["beta", "weight"], ("expansion", "feedback_docs", "weight", "beta")),
    ],
)
def test_of_weight_and_beta_what_values_are_given_for_is_studied(asked, studies):
    assert _default_studies(asked) == studies


@pytest.mark.parametrize(
    ("written", "message"),
    [("cluster=3", "there is no parameter 'cluster'; choose clusters"), ("beta=x", "write numbers with commas")],
)
def test_wrong_values_are_wrong_usage(folder, tmp_path, written, message):
    done = sweep(folder, "-o", str(tmp_path), "--param", written)
    assert done.exit_code == 2
    assert message in done.stderr


def test_judgements_that_do_not_fit(folder, tmp_path):
    options = ["-o", str(tmp_path), "--study", "weight", "--param", "weight=0"]
    with pytest.raises(InputError, match="no judgement has grade 2 or more"):
        sweep(folder, *options, "--rel", "2")
    (folder / "more.txt").write_text("q1 0 fish 1\nq9 0 bank 1\n")
    with pytest.warns(DatasetWarning) as caught:
        sweep(folder, *options, qrels="more.txt")
    assert [str(one.message).split(": ", 1)[1] for one in caught] == [
        "1 of 2 topics have no judgements (first: 'q2'); they are left out",
        "1 of 2 judged queries have no topic (first: 'q9'); they are left out",
    ]


def test_without_matplotlib_there_are_values_only(folder, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    done = sweep(folder, "-o", str(tmp_path), "--study", "beta", "--param", "beta=0")
    assert 'pip install "colbert-prf[plots]"' in done.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["sweep.csv"]


def test_values_given_twice_are_joined_and_what_no_study_varies_is_fixed(folder, tmp_path):
    options = ["--study", "weight", "--param", "weight=0", "--param", "weight=1", "--param", "clusters=16", "--json"]
    found = json.loads(sweep(folder, "-o", str(tmp_path), *options).stdout)
    tried = {(one["weight"], one["clusters"]) for one in found["studies"]["weight"]}
    assert tried == {(0.0, 16), (1.0, 16)}
    done = sweep(folder, "-o", str(tmp_path), "--study", "beta", "--param", "clusters=8,16")
    assert done.exit_code == 2
    assert "--param clusters: no study that was chosen varies it; give one value, or its study." in done.stderr
