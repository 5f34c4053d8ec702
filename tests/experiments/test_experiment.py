"""An experiment runs what is missing, once, and its table is that of the evaluation of its runs."""

from __future__ import annotations

import csv
import io
import re
import sys
from collections import namedtuple
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import ClassVar

import pytest

from colbert_prf.datasets import read_run
from colbert_prf.errors import DatasetError, DatasetWarning, InputError
from colbert_prf.evaluation import to_latex, to_markdown
from colbert_prf.experiments.config import read_experiment
from colbert_prf.experiments.experiment import run_experiment
from colbert_prf.experiments.report import comparisons_of, results_table, stages_table, write_report

Document = namedtuple("Document", "doc_id text")
Query = namedtuple("Query", "query_id text")
Judgement = namedtuple("Judgement", "query_id doc_id relevance")
PUBLISHED = """
[[systems]]
name = "theirs"
group = "Published"
runs = {Fish = "theirs.run"}
"""
THEIRS = "".join(f"q{number} Q0 x 1 3 t\nq{number} Q0 a 2 2 t\nq{number} Q0 b 3 1 t\n" for number in (1, 2, 3))


@pytest.fixture
def run(built, data, tmp_path):
    def start(path, **options):
        return run_experiment(read_experiment(path), data, tmp_path / "out", progress=False, **options)

    return start


def test_the_table(run, configured):
    results = run(configured())
    table = results_table(results)
    assert [column.title for column in table.columns] == ["MRR", "P@1", "MRT"]
    assert {column.group for column in table.columns} == {"Fish (3 queries)"}
    old, new = table.rows
    assert (old.labels, old.group, old.letter, old.cells[0].value) == (("old",), "Before", "a", 0.5)
    assert (new.labels, new.group, new.letter) == (("new",), "After", "")
    assert (new.cells[0].value, new.cells[0].letters, new.cells[1].value) == (1.0, "a", 1.0)
    assert "| **After** | | | |\n| new | **1.0000**<sup>a</sup> |" in to_markdown(table)
    assert "\\midrule\n\\multicolumn{4}{c}{After} \\\\\n\\midrule\nnew & " in to_latex(table)
    stages = stages_table(results)
    assert [column.title for column in stages.columns] == ["find", "response"]
    assert stages.rows[0].labels == ("old", "Fish")
    assert stages.rows[0].cells[0].value == pytest.approx(1.0)
    assert comparisons_of(results).rows[0].labels == ("Fish", "new", "old", "MRR")


def test_runs_are_kept_and_only_what_changed_runs_again(run, built, configured, tmp_path):
    run(configured())
    assert [len(one.asked) for one in built] == [4, 4]
    assert read_run(tmp_path / "out/runs/Fish/old.run.gz")["q1"] == {"b": 1.0, "a": 0.5}
    run(configured())
    assert len(built) == 2
    told = []
    run(configured(configured().read_text().replace('["a", "b"]', '["a"]')), tell=told.append)
    assert [one.order for one in built[2:]] == [["a"]]
    assert [line.split(",")[0] for line in told] == ["Fish: old", "Fish: new"]


def test_a_corpus_that_changed_is_run_over_again_and_one_that_is_gone_is_missed(run, built, configured, data):
    run(configured())
    (data / "corpus.tsv").write_text("a\tGoldfish grow.\nb\tBank rates rose.\n")
    run(configured())
    assert [len(one.asked) for one in built] == [4, 4, 4, 4]
    (data / "corpus.tsv").unlink()
    with pytest.raises(DatasetError, match=r"corpus\.tsv: no such file"):
        run(configured())


def test_one_system_answers_all_topics_of_a_corpus(run, built, configured, data):
    (data / "more.tsv").write_text("q9\tnine\n")
    (data / "more.txt").write_text("q9 0 b 1\n")
    more = '\n[[collections]]\nname = "More"\ncorpus = "corpus.tsv"\ncorpus_name = "fish"\n'
    more += 'topics = "more.tsv"\nqrels = "more.txt"\n'
    text = configured().read_text().replace("baseline = true", "") + more
    results = run(configured(text))
    assert len(built) == 2
    assert [cell.value for cell in results_table(results).rows[0].cells[::3]] == [0.5, 1.0]


def test_published_runs_are_restricted_to_the_corpus(run, configured, tmp_path):
    (tmp_path / "theirs.run").write_text(THEIRS)
    results = run(configured(configured().read_text() + PUBLISHED), published=tmp_path)
    row = results_table(results).rows[-1]
    assert (row.labels, row.group, row.cells[0].value, row.cells[-1].value) == (("theirs",), "Published", 1.0, None)
    assert row.cells[0].letters == "a"


def test_published_runs_that_are_not_given_are_left_out(run, configured):
    results = run(configured(configured().read_text() + PUBLISHED))
    assert [row.name for row in results.rows] == ["old", "new"]
    assert results.notes == ("1 rows of published runs are left out, for their folder was not given.",)


def test_a_published_run_that_is_missing_is_told_before_anything_runs(run, built, configured, tmp_path):
    with pytest.raises(DatasetError, match=r"theirs\.run: there is no such file; it is the published run of 'theirs'"):
        run(configured(configured().read_text() + PUBLISHED), published=tmp_path)
    assert built == []


def test_a_hidden_row_is_for_others_only(run, built, configured):
    hidden = '\n[[systems]]\nname = "first"\nkind = "told"\norder = ["b"]\nhidden = true\n'
    results = run(configured(configured().read_text() + hidden))
    assert [row.name for row in results.rows] == ["old", "new"]
    assert len(built) == 2


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("q1 Q0 a 1 1 t\nq1 Q0 a 2 0 t\n", "line 2: document 'a' of query 'q1' was ranked before"),
        ("q1 Q0 a 1 nan t\n", "line 1: the score is nan"),
    ],
)
def test_a_bad_published_run_is_refused(run, configured, tmp_path, content, message):
    (tmp_path / "theirs.run").write_text(content)
    with pytest.raises(DatasetError, match=message):
        run(configured(configured().read_text() + PUBLISHED), published=tmp_path)


def test_odd_published_runs_are_warned_of(run, configured, tmp_path):
    (tmp_path / "theirs.run").write_text("q1 Q0 b 1 1 t\nq1 Q0 a 2 3 t\n")
    with pytest.warns(DatasetWarning) as caught:
        run(configured(configured().read_text() + PUBLISHED), published=tmp_path)
    messages = " ".join(str(one.message) for one in caught)
    assert "the rank contradicts the score" in messages
    assert "run 'theirs' lacks 2 of 3 judged queries" in messages


def test_topics_and_judgements_that_do_not_fit_are_warned_of(run, configured, data):
    (data / "topics.tsv").write_text("q1\tone\nq2\ttwo\nq7\tseven\n")
    with pytest.warns(DatasetWarning) as caught:
        results = run(configured())
    messages = [str(one.message) for one in caught]
    assert messages == [
        "Fish: 1 of 3 topics have no judgements (first: 'q7'); they are left out",
        "Fish: 1 of 3 judged queries have no topic (first: 'q3'); they are left out",
    ]
    assert results.outcomes[0].evaluation.query_ids == ("q1", "q2")


def test_topics_and_judgements_that_share_nothing_are_refused(run, built, configured, data):
    (data / "topics.tsv").write_text("t1\tone\n")
    with pytest.raises(InputError, match=r"Fish: none of the 1 topics \(first: 't1'\) is judged \(first: 'q1'\)"):
        run(configured())


def test_binary_judgements_with_a_threshold_of_two_are_refused_before_anything_runs(run, built, configured):
    text = configured().read_text().replace('qrels = "qrels.txt"', 'qrels = "qrels.txt"\nrelevance = 2')
    with pytest.raises(InputError, match="Fish: no judgement has grade 2 or more, the highest is 1"):
        run(configured(text))
    assert built == []


def test_collections_of_ir_datasets_work_the_same_way(run, configured, monkeypatch):
    class Dataset:
        parts: ClassVar = {
            "docs": [Document("a", "Goldfish grow."), Document("b", "Bank rates fell.")],
            "queries": [Query("q1", "one"), Query("q2", "two")],
            "qrels": [Judgement("q1", "a", 1), Judgement("q2", "a", 1)],
        }

        def __getattr__(self, name):
            if name.startswith("has_"):
                return lambda: True
            return lambda: iter(self.parts[name.removesuffix("_iter")])

    module = ModuleType("ir_datasets")
    module.load = {"fish": Dataset()}.__getitem__
    monkeypatch.setitem(sys.modules, "ir_datasets", module)
    text = configured().read_text()
    for name in ("corpus.tsv", "topics.tsv", "qrels.txt"):
        text = text.replace(f'"{name}"', '"irds:fish"')
    results = run(configured(text + PUBLISHED.replace("theirs", "x")))
    assert [row.cells[0].value for row in results_table(results).rows] == [0.5, 1.0]


def test_the_report_holds_everything(run, configured, tmp_path):
    results = run(configured())
    written = {path.name: path.read_text() for path in write_report(results, tmp_path / "out")}
    page = written["report.html"]
    assert "<h1>Three topics</h1>" in page
    assert '<tr><th class="group" colspan="4">After</th></tr>' in page
    assert "<b>1.0000</b><sup>a</sup>" in page
    assert len(re.findall(r'<img alt="[^"]+" src="data:image/svg\+xml;base64,', page)) == 2
    assert not re.search(r'(?:src|href)="(?!data:)', page)
    assert "order = [&quot;a&quot;, &quot;b&quot;]" in page
    rows = list(csv.DictReader(io.StringIO(written["results.csv"])))
    assert [(row["group"], row["system"]) for row in rows] == [("Before", "old"), ("After", "new")]
    queries = list(csv.DictReader(io.StringIO(written["queries.csv"])))
    assert len(queries) == 2 * 4
    assert (queries[0]["collection"], queries[0]["query"], queries[0]["MRR"]) == ("Fish", "q1", "0.5")
    assert {"stages.csv", "comparisons.csv", "results.tex", "results.md"} <= written.keys()


def test_the_report_without_matplotlib_says_so(run, configured, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    results = run(configured())
    page = write_report(results, tmp_path / "out")[-1].read_text()
    assert "pip install &quot;colbert-prf[plots]&quot;" in page
    assert "<img" not in page


def test_the_authors_runs_on_the_pool_by_the_shipped_configuration(shared_data, tmp_path):
    shipped = read_experiment(Path(__file__).parents[2] / "experiments" / "trec-dl-pool.toml")
    chosen = tuple(row for row in shipped.rows if row.name in ("Ranker (β=1), authors", "Ranker (β=0.5), authors"))
    results = run_experiment(
        replace(shipped, rows=chosen), shared_data, tmp_path, published=shared_data / "paper-runs", progress=False
    )
    first, second = results_table(results).rows
    # MAP and nDCG@10 of the published runs restricted to the pool: β=1 on 2019, β=0.5 on 2020.
    assert [first.cells[place].value for place in (0, 1)] == pytest.approx([0.567, 0.744], abs=0.0005)
    assert [second.cells[place].value for place in (5, 6)] == pytest.approx([0.526, 0.715], abs=0.0005)
    assert not list(tmp_path.iterdir())
