"""Feedback on the command line: its options, and how what it did is shown."""

from __future__ import annotations

import json

import click
import numpy as np
import pytest
from click.testing import CliRunner
from rich.console import Console

from colbert_prf import CentroidPRF, ColbertPRF, EncodedQuery, Expansion, Hit, MemoryIndex, Ranking
from colbert_prf.cli import cli
from colbert_prf.cli.expansion import expansion_words, likely_words, moves, places, print_expansion
from colbert_prf.cli.feedback import feedback_from
from colbert_prf.search.searcher import Searcher
from colbert_prf.types import ExpansionVector

CORPUS = {
    "fish": "Goldfish grow all their life if the tank is large.",
    "pond": "A goldfish in a pond becomes larger than one in a bowl.",
    "bank": "The bank raised its rates again.",
}
QUESTION = "do goldfish grow"
WORDS = ["[CLS]", "swiss", "switzerland", "potato", "cheese"]


def spell(token_ids) -> list[str]:
    return [WORDS[token_id] for token_id in token_ids]


def ranking_of(*doc_ids: str, **more) -> Ranking:
    query = EncodedQuery(np.array([3], dtype=np.int32), np.eye(1, 2, dtype=np.float32))
    hits = tuple(Hit(doc_id, 1.0 - rank / 10) for rank, doc_id in enumerate(doc_ids))
    return Ranking(query, hits, **more)


@pytest.fixture
def corpus(tmp_path):
    path = tmp_path / "passages.tsv"
    path.write_text("".join(f"{doc_id}\t{text}\n" for doc_id, text in CORPUS.items()))
    return str(path)


@pytest.fixture
def expansion() -> Expansion:
    query = EncodedQuery(np.array([3, 1, 4], dtype=np.int32), np.eye(3, dtype=np.float32))
    return Expansion(
        query,
        (
            ExpansionVector(1, ((1, 0.6), (2, 0.4)), 5.0, 0.25, (("a", 3), ("a", 7), ("b", 11))),
            ExpansionVector(4, ((4, 0.9), (3, 0.1)), 7.0, 0.35, (("b", 2),)),
        ),
        ("a", "b"),
    )


def test_options_make_the_method_they_name():
    assert feedback_from({"feedback": None}) is None
    assert feedback_from({"feedback": "prf"}) == ColbertPRF()
    assert feedback_from({"feedback": "centroid", "expansion_vectors": 3}) == CentroidPRF(expansion_vectors=3)
    options = {"feedback": "prf", "beta": 0.0, "feedback_docs": 2, "clustering": "kmedoids", "weighting": "ictf"}
    made = feedback_from({**options, "rerank": True, "k": 3})
    assert made == ColbertPRF(beta=0.0, feedback_docs=2, clustering="kmedoids", weighting="ictf", rerank=True)
    assert feedback_from({"feedback": "centroid", "weight": 0.5}) == CentroidPRF(weight=0.5)


def test_few_clusters_mean_few_vectors():
    assert feedback_from({"feedback": "prf", "clusters": 4}).expansion_vectors == 4
    assert feedback_from({"feedback": "prf", "clusters": 99}).expansion_vectors == ColbertPRF().expansion_vectors


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"beta": 0.0}, "--beta needs a feedback method"),
        ({"weight": 0.0}, "--weight needs a feedback method"),
        ({"rerank": True}, "--rerank needs a feedback method"),
        ({"non_relevant": ("d3",)}, "--non-relevant needs a feedback method"),
        ({"feedback": "centroid", "clusters": 3}, "--clusters does not apply to --feedback centroid, only to prf"),
        ({"feedback": "prf", "compat": "paper", "clustering": "kmedoids"}, "--clustering does not apply to --compat"),
        ({"feedback": "prf", "beta": float("nan")}, "--beta must be a number of at least 0, found nan"),
        (
            {"feedback": "prf", "weight": 0.1, "beta": 1.0},
            "give --weight, relative to the query, or --beta, the paper's",
        ),
    ],
)
def test_options_that_do_not_go_together_are_wrong_usage(options, message):
    with pytest.raises(click.UsageError, match=message):
        feedback_from(options)


def test_moves_are_against_the_first_pass():
    before = ranking_of("a", "b", "c", "d")
    after = ranking_of("d", "b", "new", "a", read_before=lambda: before)
    assert moves(after) == ["↑3", "=", "new", "↓3"]
    assert moves(before) == ["", "", "", ""]


def test_likely_tokens_are_spelled_as_in_the_paper():
    def vector(*likely):
        return ExpansionVector(likely[0][0], likely, 1.0, 1.0)

    assert likely_words(vector((1, 0.6), (2, 0.3), (3, 0.1)), spell) == "(swiss|switzerland)"
    assert likely_words(vector((1, 0.7), (2, 0.3)), spell) == "swiss"
    assert likely_words(vector((1, 0.1), (2, 0.1)), spell) == "swiss"
    assert likely_words(vector((1, 0.4), (2, 0.3), (3, 0.3)), spell) == "(swiss|switzerland)"


def test_places_count_the_passages_learned_from():
    assert places([("b", 3), ("b", 7), ("a", 11)], ["a", "b"]) == "d2:3,7 d1:11"


def test_what_was_added_is_shown_by_weight(expansion, capsys):
    assert expansion_words(expansion, spell) == ["cheese", "(swiss|switzerland)"]
    ranking = ranking_of("b", "a", expansion=expansion, read_before=lambda: ranking_of("a", "b"))
    ranking = Ranking(expansion.query, ranking.hits, expansion=expansion, read_before=ranking.read_before)
    print_expansion(Console(width=100), ranking, spell)
    lines = [line.split() for line in capsys.readouterr().out.splitlines() if line.strip()]
    assert lines == [
        ["original", "tokens:", "potato"],
        ["learned", "from:", "d1", "a,", "d2", "b"],
        ["expansion", "P(t|υ)", "σ", "weight", "from"],
        ["cheese", "0.90", "7.00", "0.350", "d2:2"],
        ["(swiss|switzerland)", "0.60", "5.00", "0.250", "d1:3,7", "d2:11"],
        ["before", "score", "after", "score", "move"],
        ["1.", "a", "1.000", "b", "1.000", "↑1"],
        ["2.", "b", "0.900", "a", "0.900", "↓1"],
    ]


def test_json_has_the_expansion_and_the_ranking_before(corpus, encoder):
    arguments = ["search", corpus, QUESTION, "--feedback", "prf", "--feedback-docs", "1", "--clusters", "3", "--json"]
    (found,) = json.loads(CliRunner().invoke(cli, arguments).stdout)
    searcher = Searcher(MemoryIndex.create(CORPUS.items(), encoder=encoder, progress=False))
    feedback = ColbertPRF(feedback_docs=1, clusters=3, expansion_vectors=3)
    expected = searcher.search(QUESTION, feedback=feedback)
    assert [hit["doc_id"] for hit in found["hits"]] == expected.doc_ids
    assert [hit["score"] for hit in found["before"]] == [hit.score for hit in expected.before]
    assert found["expansion"]["feedback"] == ["fish"]
    shown = found["expansion"]["vectors"]
    assert [vector["weight"] for vector in shown] == [vector.weight for vector in expected.expansion.vectors]
    assert [vector["token"] for vector in shown] == found["tokens"][expected.expansion.num_original :]
    assert shown[0]["likely"][shown[0]["token"]] == shown[0]["probability"]
    assert shown[0]["sources"][0]["doc_id"] == "fish"


def test_without_feedback_json_has_neither(corpus):
    (found,) = json.loads(CliRunner().invoke(cli, ["search", corpus, QUESTION, "--json"]).stdout)
    assert not found.keys() & {"expansion", "before"}


def test_marked_passages_are_learned_from(corpus):
    arguments = ["search", corpus, QUESTION, "--feedback", "prf", "--relevant", "bank", "--non-relevant", "pond"]
    done = CliRunner().invoke(cli, [*arguments, "--weight", "9", "--clusters", "5", "--explain"])
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert lines[1].split()[:2] == ["1.", "↑2"]
    assert lines[1].split()[3] == "bank"
    assert "learned from: d1 bank" in lines


def test_wrong_options_are_exit_code_2(corpus):
    done = CliRunner().invoke(cli, ["search", corpus, QUESTION, "--weight", "1"])
    assert done.exit_code == 2
    assert "--feedback prf" in done.output


@pytest.mark.parametrize("command", ["search", "run", "expansions", "sweep"])
def test_the_old_option_says_what_to_write_instead(command):
    done = CliRunner().invoke(cli, [command, "--absolute-beta"])
    assert done.exit_code == 2
    assert "--absolute-beta is gone: --beta is now the paper's" in " ".join(done.stderr.split())
    assert "--absolute-beta" not in CliRunner().invoke(cli, [command, "--help"]).stdout


def test_the_help_explains_both_meanings():
    shown = " ".join(CliRunner().invoke(cli, ["search", "--help"], env={"COLUMNS": "80"}).stdout.split())
    assert "relative to the query: 0.5 is half as much as the query; 0 leaves the ranking alone." in shown
    assert "Default: 0.15, 0.1 with centroid." in shown
    assert "The paper's β, instead of --weight: an added vector weighs β·σ, so with 0.5 one of σ = 4 weighs 2" in shown
    assert "Cluster as the authors' code does; the default is then beta 0.1. With prf only." in shown


def test_a_weight_and_a_beta_give_the_weights_they_say(corpus):
    arguments = ["search", corpus, QUESTION, "--feedback", "prf", "--clusters", "4", "--json"]
    expansions = {}
    for option, value in (("--weight", "0.5"), ("--beta", "0.5")):
        (found,) = json.loads(CliRunner().invoke(cli, [*arguments, option, value]).stdout)
        expansions[option] = found["expansion"]["vectors"]
    for vector in expansions["--beta"]:
        assert vector["weight"] == pytest.approx(0.5 * vector["sigma"], rel=1e-5)
    relative = expansions["--weight"]
    unit = relative[0]["weight"] / relative[0]["sigma"]
    assert [vector["weight"] for vector in relative] == pytest.approx([unit * v["sigma"] for v in relative], rel=1e-5)
    assert unit != pytest.approx(0.5, rel=1e-2)


def test_plot_draws_what_feedback_learned(corpus, tmp_path):
    pytest.importorskip("matplotlib")
    path = tmp_path / "figure.png"
    arguments = [
        "plot",
        corpus,
        QUESTION,
        "-o",
        str(path),
        "--feedback-docs",
        "2",
        "--clusters",
        "4",
        "--clusters",
        "6",
    ]
    done = CliRunner().invoke(cli, [*arguments, "--compare", "The tank bombarded the troops.", "--json"])
    assert done.exit_code == 0, done.output
    shown = json.loads(done.stdout)
    assert path.read_bytes().startswith(b"\x89PNG")
    assert shown["figure"] == str(path)
    assert [panel["feedback"] for panel in shown["panels"]] == [["fish", "pond"]] * 2
    assert [len(panel["centroids"]) == len(panel["sigmas"]) <= 6 for panel in shown["panels"]] == [True, True]
    assert "2 panels, learned from fish, pond." in CliRunner().invoke(cli, arguments).stdout


@pytest.mark.parametrize(("name", "message"), [("f.gif", "a figure ends in"), ("nowhere/f.png", "does not exist")])
def test_plot_refuses_a_bad_name_before_it_reads_anything(name, message):
    done = CliRunner().invoke(cli, ["plot", "nowhere.tsv", QUESTION, "-o", name])
    assert done.exit_code == 1
    assert message in str(done.exception)
