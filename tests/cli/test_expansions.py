"""``colbert-prf expansions``: the paper's table of queries and the words added to them."""

from __future__ import annotations

import csv
import io
import json

import pytest
from click.testing import CliRunner

from colbert_prf import ColbertPRF, Index, Searcher
from colbert_prf.cli import cli
from colbert_prf.cli.expansion import likely_words

PASSAGES = [
    ("fish", "Goldfish grow all their life if the tank is large."),
    ("bank", "The bank raised its rates again."),
    ("tank", "The tank bombarded the troops."),
]
OPTIONS = ["--feedback-docs", "1", "--clusters", "6"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("expansions")
    Index.create(folder / "my.index", PASSAGES, bits=4)
    (folder / "topics.tsv").write_text("7\tdo goldfish grow\n8\tmoney\n")
    return folder


def expansions(folder, *arguments):
    return CliRunner().invoke(cli, ["expansions", str(folder / "my.index"), *arguments, *OPTIONS])


def test_the_words_are_those_of_the_expansion(folder):
    done = expansions(folder, "do goldfish grow", "--format", "csv")
    (row,) = csv.DictReader(io.StringIO(done.stdout))
    assert row["query"] == "do goldfish grow"
    assert row["query tokens"] == "do gold ##fish grow"
    searcher = Searcher(Index.open(folder / "my.index"))
    method = ColbertPRF(feedback_docs=1, clusters=6, expansion_vectors=6)
    found = searcher.search("do goldfish grow", 1, feedback=method).expansion
    ordered = sorted(found.vectors, key=lambda vector: -vector.weight)
    words = [likely_words(vector, searcher.encoder.tokens) for vector in ordered]
    assert row["most likely tokens of the vectors added"].split() == list(dict.fromkeys(words))


def test_topics_by_id_in_every_format(folder, tmp_path):
    topics = ["--topics", str(folder / "topics.tsv"), "--topic", "8"]
    assert expansions(folder, *topics, "--format", "markdown").stdout.splitlines()[2].startswith("| money | money | ")
    latex = expansions(folder, "goldfish", "--format", "latex").stdout
    assert r"goldfish & gold \#\#fish & " in latex
    shown = expansions(folder, *topics).stdout.splitlines()
    assert shown[1].split()[:2] == ["money", "money"]
    facts = json.loads(expansions(folder, "goldfish", *topics[:2], "--json").stdout)
    assert [one["query"] for one in facts] == ["goldfish", "do goldfish grow", "money"]
    assert facts[0]["query_tokens"] == ["gold", "##fish"]
    assert facts[0]["feedback"] == ["fish"]
    path = tmp_path / "table.md"
    assert expansions(folder, *topics, "--format", "markdown", "-o", str(path)).stdout == ""
    assert path.read_text().startswith("| query | query tokens |")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "there is no query: write some, or name a file with --topics."),
        (["x", "--topic", "7"], "--topic needs --topics"),
        (["--topics", "TOPICS", "--topic", "9"], "has no topic '9'; its first is '7'."),
        (["x", "-o", "file"], "--output needs a --format"),
    ],
)
def test_wrong_usage(folder, arguments, message):
    given = [str(folder / "topics.tsv") if one == "TOPICS" else one for one in arguments]
    done = expansions(folder, *given)
    assert done.exit_code == 2
    assert message in done.stderr
