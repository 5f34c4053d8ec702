"""Learning the weights of terms on the command line."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from colbert_prf.baselines.lexical import TermRegression
from colbert_prf.cli import cli
from colbert_prf.cli.term_weights import read_answers
from colbert_prf.errors import DatasetError

TRIPLES = (
    "do fish grow\tGoldfish grow.\tRates fell.\nwhich rates\tRates fell.\tGoldfish grow.\nfish\tGoldfish grow.\tx\n"
)


def test_queries_of_a_passage_are_put_together(tmp_path):
    (tmp_path / "a.tsv").write_text(TRIPLES)
    (tmp_path / "b.jsonl").write_text(json.dumps({"query": "why", "documents": ["Rates fell.", "x"]}) + "\n\n")
    found = read_answers((str(tmp_path / "a.tsv"), str(tmp_path / "b.jsonl")))
    assert found == {"Goldfish grow.": ["do fish grow", "fish"], "Rates fell.": ["which rates", "why"]}


def test_what_is_learned_is_written(tmp_path, encoder):
    (tmp_path / "a.tsv").write_text(TRIPLES)
    output = tmp_path / "weights.json"
    done = CliRunner().invoke(cli, ["term-weights", str(tmp_path / "a.tsv"), str(output), "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.output)["passages"] == 2
    weights = dict(next(TermRegression.load(output, encoder=encoder).weights(["Goldfish grow."])))
    assert set(weights) == {"goldfish", "grow", "."}


@pytest.mark.parametrize("line", ["no tab", "query\t", '{"query": "a"}', '{"query": "a", "documents": []}', "{"])
def test_a_bad_line_is_named(tmp_path, line):
    (tmp_path / "a.tsv").write_text("a\tb\n" + line + "\n")
    with pytest.raises(DatasetError, match="line 2"):
        read_answers((str(tmp_path / "a.tsv"),))
