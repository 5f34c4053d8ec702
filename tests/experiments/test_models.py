"""Rows whose models are not there are left out where they say so, and a model that changed is used anew."""

from __future__ import annotations

import pytest

from colbert_prf.errors import InputError
from colbert_prf.experiments import Context, experiment, known_kinds, read_experiment, registry, run_experiment, system
from colbert_prf.experiments.config import Row
from colbert_prf.experiments.context import digest_of_encoder, digest_of_model
from colbert_prf.experiments.experiment import absent_models, digests_of
from colbert_prf.experiments.registry import Entry
from colbert_prf.search.retriever import Retriever

ROWS = """
[[systems]]
name = "model"
kind = "opened"
model = "MODEL"
optional = true

[[systems]]
name = "upon it"
kind = "upon"
first = "model"
"""


@pytest.fixture
def kinds(built, monkeypatch) -> None:
    """Make kinds known that open a model, and that build on another row."""

    @system("opened", models=("model",))
    def opened(context: Context, *, model: str) -> Retriever:
        return context.system("new")

    @system("upon")
    def upon(context: Context, *, first: Retriever) -> Retriever:
        return first


@pytest.fixture
def run(kinds, data, tmp_path, configured):
    def start(text, told):
        path = configured(configured().read_text() + text.replace("MODEL", str(tmp_path / "model")))
        return run_experiment(read_experiment(path), data, tmp_path / "out", progress=False, tell=told.append)

    return start


def test_an_optional_row_without_its_model_is_left_out_with_what_builds_on_it(run, tmp_path):
    told = []
    results = run(ROWS, told)
    assert [row.name for row in results.rows] == ["old", "new"]
    assert results.notes == (f"Left out, for there is no {tmp_path / 'model'}: model; upon it.",)
    assert told[0] == results.notes[0]


def test_it_runs_where_the_model_is_there_and_again_where_that_changed(run, built, tmp_path):
    model = tmp_path / "model"
    model.mkdir()
    (model / "weights").write_text("1")
    told = []
    assert [row.name for row in run(ROWS, told).rows] == ["old", "new", "model", "upon it"]
    searched = [len(one.asked) for one in built]
    run(ROWS, told)
    assert [len(one.asked) for one in built] == searched
    (model / "weights").write_text("2")
    run(ROWS, told)
    # The two rows over the model, each over three topics and once before to warm up.
    assert sum(len(one.asked) for one in built) == sum(searched) + 2 * 4


def test_everything_runs_again_where_the_encoder_changed(run, built, monkeypatch):
    run("", [])
    searched = sum(len(one.asked) for one in built)
    monkeypatch.setattr(experiment, "digest_of_encoder", lambda model: "another")
    run("", [])
    assert sum(len(one.asked) for one in built) == 2 * searched


def test_an_encoder_is_told_by_what_it_holds(encoder, tmp_path):
    assert digest_of_encoder(None) == encoder.query_fingerprint
    assert digest_of_encoder("some/name-on-the-hub") == "some/name-on-the-hub"
    (tmp_path / "weights").write_text("1")
    assert digest_of_encoder(str(tmp_path)) == digest_of_model(tmp_path)


def test_what_else_is_asked_for_is_refused(run, configured):
    with pytest.raises(InputError, match="optional is of systems to run"):
        run('\n[[systems]]\nname = "theirs"\noptional = true\nruns = {Fish = "x"}\n', [])
    with pytest.raises(InputError, match="optional must be true or false"):
        run(ROWS.replace("optional = true", "optional = 1"), [])


def test_nothing_to_show_says_why(run, kinds, data, tmp_path, configured):
    head, *_ = configured().read_text().partition("[[systems]]")
    path = configured(head + ROWS)
    with pytest.raises(InputError, match=r"no row to show\. Left out, for there is no MODEL: model; upon it\."):
        run_experiment(read_experiment(path), data, tmp_path / "out", progress=False)


def test_only_optional_rows_are_looked_at(kinds):
    rows = [Row("a", entry=Entry("a", "opened", {"model": "no such model"}))]
    assert absent_models(rows) == {}
    rows.append(Row("b", entry=Entry("b", "opened", {"model": "none here"}), optional=True))
    assert absent_models(rows) == {"b": ["none here"]}


def test_a_digest_is_of_names_and_bytes(kinds, tmp_path):
    file, folder = tmp_path / "file", tmp_path / "folder"
    file.write_text("ab")
    (folder / "inner").mkdir(parents=True)
    (folder / "inner" / "one").write_text("ab")
    first = digest_of_model(folder)
    assert len({first, digest_of_model(file)}) == 2
    (folder / "inner" / "one").rename(folder / "inner" / "two")
    assert digest_of_model(folder) != first
    entries = {
        "below": Entry("below", "opened", {"model": str(file)}),
        "above": Entry("above", "upon", {"first": "below"}),
        "far": Entry("far", "opened", {"model": "name/on-the-hub"}),
    }
    assert digests_of(entries["above"], entries) == {str(file): digest_of_model(file)}
    assert digests_of(entries["far"], entries) == {}


def test_every_parameter_that_names_a_model_is_one_of_its_kind():
    for name in known_kinds():
        kind = registry.find_kind(name)
        assert set(kind.models) <= set(kind.parameters)
        assert ("model" in kind.parameters) == ("model" in kind.models)
