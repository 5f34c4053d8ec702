"""A configuration is read whole or refused with its file and key, before anything runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from colbert_prf.errors import InputError
from colbert_prf.experiments.config import read_experiment

SHIPPED = sorted((Path(__file__).parents[2] / "experiments").glob("*.toml"))


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_the_shipped_configurations_are_sound(path):
    found = read_experiment(path)
    assert found.reference == "ColBERT E2E"
    assert any(row.baseline for row in found.rows)
    assert "colbert" in {row.entry.kind for row in found.rows if row.entry}


def test_the_design_of_the_pool_is_that_of_the_paper():
    found = read_experiment(next(path for path in SHIPPED if path.stem == "trec-dl-pool"))
    assert [collection.relevance for collection in found.collections] == [2, 2]
    assert len({collection.corpus_name for collection in found.collections}) == 1
    published = [row for row in found.rows if row.runs]
    assert len(published) == 17
    # The paper's baselines have letters, its own systems none.
    assert sum(row.baseline for row in published) == 13
    absolute = [row.entry.parameters["beta"] for row in found.rows if row.entry and "beta" in row.entry.parameters]
    assert absolute == [1, 1, 0.5, 0.5, 1]


def test_what_is_left_out_has_defaults(built, configured):
    found = read_experiment(configured())
    assert (found.depth, found.bits, found.alpha, found.family, found.model) == (1000, 4, 0.05, "measure", None)
    assert found.reference == "old"
    assert found.rows[1].entry.parameters == {"order": ["a", "b"]}
    assert found.collections[0].relevance == 1


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('title = "Three topics"', "title = 3", "title must be a text, found 3"),
        ('title = "Three topics"', 'titel = ""', "unknown key 'titel'; known are collections, systems, measures"),
        ('title = "Three topics"', "bits = 3", "bits one of (2, 4, 16)"),
        ('title = "Three topics"', 'family = "all"', "family must be 'measure' or 'system' or 'baseline', found 'all'"),
        ('title = "Three topics"', 'reference = "x"', "reference is 'x', which is no row; there are old, new"),
        ('"MRR", "P@1"', '"MPR"', "there is no measure 'MPR'"),
        ('topics = "topics.tsv"\n', "", "[[collections]] 'Fish': the key 'topics' is missing"),
        ('topics = "topics.tsv"', "topic = 1", "[[collections]] 'Fish': the key 'topics' is missing"),
        ('corpus_name = "fish"', 'corpus_nam = "fish"', "[[collections]] 'Fish': unknown key 'corpus_nam'"),
        ('name = "new"', "name = 7", "[[systems]] 7: name must be a text, found 7"),
        ('name = "new"', 'name = "Old"', "two [[systems]] are called 'old' and 'Old', too much alike"),
        (
            'kind = "told"\norder = ["a"',
            'kind = "tell"\norder = ["a"',
            "system 'new': there is no kind of system 'tell'",
        ),
        ('order = ["a", "b"]', 'ordre = ["a"]', "kind 'told' has no parameter 'ordre'; it has order"),
        ('order = ["a", "b"]', 'order = "a"', "system 'new': order must be a list, each item a text, found 'a'"),
        ("baseline = true", "baseline = 1", "[[systems]] 'old': baseline must be true or false, found 1"),
        ("baseline = true", "baseline = true\nhidden = true", "a hidden row cannot be a baseline"),
        ('kind = "told"\norder = ["b", "a"]', "", "write either a kind, of a system to run, or runs, of files to read"),
        ('kind = "told"\norder = ["b", "a"]', 'runs = {Fisch = "x"}', "for each of Fish; found 'Fisch' = 'x'"),
        ('kind = "told"\norder = ["b", "a"]', "runs = {}", "runs has no file for the collection 'Fish'"),
        ("[[systems]]", "[[rows]]", "there is no [[systems]]; write one or more"),
        ("[[systems]]", "[[systems", "this is no TOML"),
    ],
)
def test_mistakes_are_named_with_file_and_key(built, configured, old, new, message):
    text = configured().read_text()
    assert old in text
    path = configured(text.replace(old, new))
    with pytest.raises(InputError) as caught:
        read_experiment(path)
    assert str(caught.value).startswith(str(path))
    assert message in str(caught.value)


def test_two_corpora_of_one_name_are_refused(built, configured):
    more = '[[collections]]\nname = "More"\ncorpus = "other.tsv"\ncorpus_name = "fish"\ntopics = "t"\nqrels = "q"\n'
    with pytest.raises(InputError, match=r"'corpus\.tsv' and 'other\.tsv' are both kept as corpus_name 'fish'"):
        read_experiment(configured(configured().read_text() + more))


def test_a_missing_file(tmp_path):
    with pytest.raises(InputError, match=r"none\.toml: cannot be read: No such file"):
        read_experiment(tmp_path / "none.toml")
