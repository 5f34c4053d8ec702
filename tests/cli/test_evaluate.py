"""``colbert-prf evaluate`` as a user types it."""

from __future__ import annotations

import csv
import io
import json

import pytest
from click.testing import CliRunner

from colbert_prf.cli import cli, main
from colbert_prf.errors import DatasetError, DatasetWarning, InputError

QRELS = "q1 0 d1 2\nq1 0 d2 1\nq2 0 d1 2\nq3 0 d1 2\n"
# The ranks of d1, the only document of grade 2: 2, 2, 2 and 1, 1, 1.
OLD = "".join(f"q{query} Q0 d2 1 2 old\nq{query} Q0 d1 2 1 old\n" for query in (1, 2, 3))
NEW = "".join(f"q{query} Q0 d1 1 2 new\nq{query} Q0 d2 2 1 new\n" for query in (1, 2, 3))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, content in {"qrels.txt": QRELS, "old.run": OLD, "new.res.gz": NEW}.items():
        (tmp_path / name).write_text(content)
    return tmp_path


def evaluate(*arguments):
    done = CliRunner().invoke(cli, ["evaluate", *arguments], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def fail(*arguments):
    """What a user sees of an error: the exit code and standard error."""
    done = CliRunner().invoke(cli, ["evaluate", *arguments])
    return done.exit_code, done.stderr + str(done.exception)


def test_the_table_on_a_terminal(folder):
    shown = evaluate("qrels.txt", "old.run", "new.res.gz", "--rel", "2", "--baseline", "old.run", "-m", "MAP")
    assert [line.split() for line in shown.splitlines() if line] == [
        ["system", "MAP"],
        ["old", "(a)", "0.5000"],
        ["new", "1.0000", "a"],
        "system baseline measure difference p p (Holm) wins ties losses".split(),
        "new old MAP +0.5000 0 0 3 0 0".split(),
        (
            "3 topics; relevant in binary measures: grade 2 or more. Letters: significantly higher than that baseline, "
            "paired t-test, p < 0.05 after Holm's correction over all comparisons by a measure."
        ).split(),
    ]


def test_the_default_measures(folder):
    found = json.loads(evaluate("qrels.txt", "old.run", "--json"))
    assert found["measures"] == {"MAP": "AP", "nDCG@10": "nDCG@10", "MRR": "RR", "MRR@10": "RR@10", "R@1000": "R@1000"}
    # q1: both relevant, AP = 1; q2 and q3: 1/2.
    assert found["systems"][0]["means"]["MAP"] == pytest.approx(2 / 3)
    assert "comparisons" not in found


def test_json_has_all(folder):
    options = ["--rel", "2", "-m", "MRR", "-m", "nDCG@10", "--baseline", "all", "--family", "system", "--per-query"]
    found = json.loads(evaluate("qrels.txt", "old.run", "new.res.gz", *options, "--format", "json"))
    assert found["num_topics"] == 3
    assert (found["relevance"], found["alpha"], found["correction"], found["family"]) == (2, 0.05, "holm", "system")
    assert found["measures"] == {"MRR": "RR(rel=2)", "nDCG@10": "nDCG@10"}
    old, new = found["systems"]
    assert (old["name"], old["letter"], old["improves_on"]["MRR"]) == ("old", "a", [])
    assert (new["name"], new["letter"], new["improves_on"]["MRR"]) == ("new", "b", ["old"])
    assert {query: values["MRR"] for query, values in old["per_query"].items()} == {"q1": 0.5, "q2": 0.5, "q3": 0.5}
    assert found["comparisons"][0] == {
        "system": "old",
        "baseline": "new",
        "measure": "MRR",
        "difference": -0.5,
        "p_value": 0.0,
        "corrected_p_value": 0.0,
        "wins": 0,
        "ties": 0,
        "losses": 3,
    }


def test_every_format(folder):
    arguments = ["qrels.txt", "old.run", "new.res.gz", "--rel", "2", "-m", "MRR", "--baseline", "old"]
    assert evaluate(*arguments, "--format", "csv") == "system,letter,MRR,MRR letters\nold,a,0.5,\nnew,,1.0,a\n"
    assert "| new | **1.0000**<sup>a</sup> |" in evaluate(*arguments, "--format", "markdown")
    assert r"new & \textbf{1.0000}$^{a}$ \\" in evaluate(*arguments, "--format", "latex")


def test_per_query_and_comparisons_choose_the_table(folder):
    arguments = ["qrels.txt", "old.run", "new.res.gz", "-m", "P@1", "--format", "csv"]
    queries = list(csv.DictReader(io.StringIO(evaluate(*arguments, "--per-query"))))
    assert [row["query"] for row in queries] == ["q1", "q1", "q2", "q2", "q3", "q3", "all", "all"]
    assert [float(row["P@1"]) for row in queries] == pytest.approx([1, 1, 0, 1, 0, 1, 1 / 3, 1])
    (row,) = csv.DictReader(io.StringIO(evaluate(*arguments, "--comparisons", "--baseline", "old.run")))
    assert (row["wins"], row["ties"], row["losses"]) == ("2", "1", "0")


def test_a_baseline_that_is_no_run_comes_first(folder):
    shown = evaluate("qrels.txt", "new.res.gz", "--baseline", "old.run", "-m", "MRR", "--rel", "2", "--format", "csv")
    assert shown.splitlines()[1:] == ["old,a,0.5,", "new,,1.0,a"]


def test_runs_of_the_same_name_are_told_apart_by_their_paths(folder):
    for name in ("a", "b"):
        (folder / name).mkdir()
        (folder / name / "mine.run").write_text(NEW)
    found = json.loads(evaluate("qrels.txt", "a/mine.run", "b/mine.run", "old.run", "--json"))
    assert [system["name"] for system in found["systems"]] == ["a/mine.run", "b/mine.run", "old"]


def test_a_run_comes_from_standard_input(folder):
    done = CliRunner().invoke(cli, ["evaluate", "qrels.txt", "-", "-m", "MRR", "--format", "csv"], input=NEW)
    assert done.stdout == "system,MRR\n-,1.0\n"


def test_documents_can_be_left_out(folder):
    (folder / "pool.txt").write_text("d1\nd3\n")
    arguments = ["qrels.txt", "old.run", "-m", "MAP", "-m", "NumRet", "--format", "csv"]
    assert evaluate(*arguments, "--only-documents", "pool.txt").splitlines() == ["system,MAP,NumRet", "old,1.0,1.0"]
    (folder / "pool.txt").write_text("x1\n")
    code, message = fail(*arguments, "--only-documents", "pool.txt")
    assert code == 1
    assert "none of the documents of run 'old'" in message


def test_only_found(folder):
    (folder / "short.run").write_text("q1 Q0 d1 1 1 t\n")
    with pytest.warns(DatasetWarning, match="lacks 2 of 3 judged queries"):
        assert evaluate("qrels.txt", "short.run", "-m", "P@1", "--format", "csv").endswith(f"short,{1 / 3}\n")
    with pytest.warns(DatasetWarning, match="the 1 of 3 judged queries"):
        assert evaluate("qrels.txt", "short.run", "-m", "P@1", "--format", "csv", "--only-found").endswith(
            "short,1.0\n"
        )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "bad.run: no ranked document found; the file is empty"),
        ("q1 Q0 d1 1 0.5 t\nq1 Q0 d1 2 0.4 t\n", "bad.run, line 2: document 'd1' of query 'q1' was ranked before"),
        ("q1 Q0 d1 1 0.5 t\nq1 Q0 d2 2 nan t\n", "bad.run, line 2: the score is nan; write a finite number"),
        ("q1 Q0 d1 1 0.5\n", "bad.run, line 1: expected 6 columns"),
    ],
)
def test_a_bad_run_is_named_with_its_line(folder, content, message):
    (folder / "bad.run").write_text(content)
    with pytest.raises(DatasetError) as caught:
        CliRunner().invoke(cli, ["evaluate", "qrels.txt", "bad.run"], catch_exceptions=False)
    assert str(caught.value).startswith(message)


def test_ranks_that_contradict_the_scores_are_warned_of(folder):
    (folder / "odd.run").write_text("q1 Q0 d1 2 9 t\nq1 Q0 d2 1 8 t\nq2 Q0 d1 1 1 t\nq3 Q0 d1 1 1 t\n")
    with pytest.warns(DatasetWarning, match=r"odd.run, line 2: the rank contradicts the score, as in 1 of 3 queries"):
        evaluate("qrels.txt", "odd.run")


def test_a_threshold_that_nothing_reaches(folder):
    with pytest.raises(InputError, match="no judgement has grade 3 or more, the highest is 2"):
        CliRunner().invoke(cli, ["evaluate", "qrels.txt", "old.run", "--rel", "3"], catch_exceptions=False)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["qrels.txt"], "Missing argument 'RUN...'"),
        (["qrels.txt", "old.run", "old.run"], "the run old.run is given twice."),
        (["qrels.txt", "old.run", "--comparisons"], "--comparisons needs a --baseline"),
        (["qrels.txt", "old.run", "--baseline", "all", "--comparisons", "--per-query"], "ask for one of them"),
        (["qrels.txt", "old.run", "--baseline", "all", "--baseline", "new.res.gz"], "leave the other baselines out"),
        (["qrels.txt", "old.run", "--rel", "0"], "'--rel'"),
    ],
)
def test_wrong_usage(folder, arguments, message):
    code, shown = fail(*arguments)
    assert code == 2
    assert message in shown


def test_errors_and_warnings_are_one_line_each(folder, capsys):
    (folder / "more.run").write_text(NEW + "q9 Q0 d1 1 1 t\n")
    with pytest.raises(SystemExit) as stopped, pytest.warns(DatasetWarning):
        main(["evaluate", "qrels.txt", "more.run", "-m", "MRR", "--format", "csv"])
    assert stopped.value.code == 0
    with pytest.raises(SystemExit) as stopped:
        main(["evaluate", "qrels.txt", "nowhere.run"])
    assert stopped.value.code == 1
    assert capsys.readouterr().err.splitlines()[-1] == "Error: nowhere.run: no such file; did you mean more.run?"


def test_names_with_markup_are_shown_as_they_are(folder):
    (folder / "[red]x.run").write_text(NEW)
    assert "[red]x" in evaluate("qrels.txt", "[red]x.run", "-m", "MRR")


def test_a_name_that_two_runs_have_is_no_baseline(folder):
    for name in ("x", "y"):
        (folder / name).mkdir()
        (folder / name / "bm25.run").write_text(OLD)
    code, message = fail("qrels.txt", "x/bm25.run", "y/bm25.run", "--baseline", "bm25")
    assert code == 2
    assert "--baseline bm25 is the name of 2 runs; give its path." in message


def test_a_baseline_spelled_otherwise_is_the_same_run(folder):
    shown = evaluate("qrels.txt", "old.run", "new.res.gz", "--baseline", "./old.run", "-m", "RR", "--json")
    assert [system["name"] for system in json.loads(shown)["systems"]] == ["old", "new"]
