"""Systems by name: a short entry makes a row, and every mistake in it is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from colbert_prf.errors import InputError, StorageError
from colbert_prf.experiments import Context, Entry, check_entries, known_kinds, registry, system
from colbert_prf.experiments.registry import configuration_of
from colbert_prf.search.retriever import Retriever
from colbert_prf.search.searcher import Searcher
from colbert_prf.types import Ranking

CORPUS = "a\tGoldfish grow all their life.\nb\tBank rates fell.\nc\tA fish tank limits growth.\n"


class Reversed(Retriever):
    def __init__(self, first: Retriever, depth: int) -> None:
        self.first, self.depth = first, depth

    def search(self, query, k=1000):
        found = self.first.search(query, self.depth)
        return Ranking(found.query, found.hits[::-1][:k])


class Joined(Retriever):
    def __init__(self, parts: list[Retriever]) -> None:
        self.parts = parts

    def search(self, query, k=1000):
        raise NotImplementedError


@pytest.fixture
def kinds(monkeypatch):
    known_kinds()
    monkeypatch.setattr(registry, "_KINDS", dict(registry._KINDS))

    @system("reversed")
    def reversed_system(context: Context, *, first: Retriever, depth: int = 10) -> Retriever:
        return Reversed(first, depth)

    @system("joined")
    def joined_system(context: Context, *, parts: list[Retriever], title: str = "") -> Retriever:
        return Joined(parts)


@pytest.fixture
def make_context(tmp_path):
    def make(*entries: Entry) -> Context:
        (tmp_path / "corpus.tsv").write_text(CORPUS)
        return Context(str(tmp_path / "corpus.tsv"), "fish", tmp_path / "kept", {one.name: one for one in entries})

    return make


def test_a_row_is_built_from_its_parameters(make_context):
    entry = Entry("PRF", "colbert", {"feedback": "prf", "clusters": 4, "weight": 1, "rerank": True, "threads": 1})
    context = make_context(entry, Entry("E2E", "colbert"))
    built = context.system("PRF")
    assert isinstance(built, Searcher)
    feedback = built.options.feedback
    assert (feedback.clusters, feedback.expansion_vectors, feedback.rerank) == (4, 4, True)
    assert (built.options.threads, built.options.probes, built.options.rescore) == (1, None, None)
    assert context.system("PRF") is built
    assert context.system("E2E").index is built.index


def test_the_index_is_built_once_and_found_again(make_context, monkeypatch):
    assert make_context().index().num_documents == 3
    monkeypatch.setattr(Context, "documents", lambda self: pytest.fail("read again"))
    again = make_context()
    assert again.index().bits == 4
    assert again.index() is again.searcher().index


def test_another_precision_is_another_index(make_context):
    context = make_context()
    assert (context.index(2).bits, context.index().bits) == (2, 4)
    assert sorted(path.name for path in context.folder.glob("*.index")) == ["fish.2.index", "fish.4.index"]


def test_an_index_of_another_state_of_the_corpus_is_refused(make_context):
    make_context().index()
    changed = make_context()
    Path(changed.corpus).write_text(CORPUS.replace("\t", "\tOther words. "))
    with pytest.raises(StorageError, match=r"fish\.4\.index: was built of .*corpus\.tsv as it was before; remove it"):
        changed.index()
    lexical = make_context(Entry("BM25", "bm25"))
    lexical.system("BM25")
    Path(lexical.corpus).write_text(CORPUS.replace("\t", "\tOther words. "))
    again = Context(lexical.corpus, "fish", lexical.folder, lexical.entries)
    with pytest.raises(StorageError, match=r"fish\.lexical: was built of"):
        again.system("BM25")
    (changed.folder / "fish.4.index.corpus").unlink()  # one that was laid there by hand is trusted
    assert changed.index().num_documents == 3


def test_a_row_builds_on_other_rows(kinds, make_context):
    context = make_context(
        Entry("turned", "reversed", {"first": "E2E", "depth": 2}),
        Entry("both", "joined", {"parts": ["E2E", "turned"]}),
        Entry("E2E", "colbert"),
    )
    check_entries(context.entries)
    plain = context.system("E2E").search("do fish grow", 2).doc_ids
    assert context.system("turned").search("do fish grow").doc_ids == plain[::-1]
    assert context.system("both").parts == [context.system("E2E"), context.system("turned")]


def test_the_configuration_of_a_row_has_that_of_the_rows_it_builds_on(kinds):
    def configuration(bits: int, name: str = "first") -> object:
        entries = {name: Entry(name, "colbert", {"bits": bits}), "row": Entry("row", "reversed", {"first": name})}
        return configuration_of(entries["row"], entries)

    assert configuration(4) == {"kind": "reversed", "first": {"kind": "colbert", "bits": 4}}
    assert configuration(4) == configuration(4, "renamed")
    assert configuration(4) != configuration(2)


@pytest.mark.parametrize(
    ("kind", "parameters", "message"),
    [
        ("colbart", {}, "there is no kind of system 'colbart'; known are colbert"),
        ("colbert", {"feedbak": "prf"}, "there is no parameter 'feedbak' without feedback; known are feedback, bits"),
        ("colbert", {"feedback": "prg"}, "there is no feedback method 'prg'; choose prf or centroid"),
        ("colbert", {"feedback": "prf", "betta": 1}, "feedback 'prf' has no parameter 'betta'; it has feedback_docs"),
        ("colbert", {"feedback": "prf", "beta": "1"}, "beta must be a number, found '1'"),
        ("colbert", {"feedback": "prf", "beta": -1}, "beta must be a number of at least 0, found -1"),
        ("colbert", {"feedback": "prf", "weight": True}, "weight must be a number, found True"),
        ("colbert", {"feedback": "prf", "beta": 1, "weight": 1}, "weight and beta exclude each other"),
        (
            "colbert",
            {"feedback": "prf", "beta": 1, "relative": False},
            "no parameter 'relative'; weight is relative to",
        ),
        ("colbert", {"feedback": "prf", "weighting": "tf"}, "weighting must be one of ('idf', 'ictf', 'cosine')"),
        ("colbert", {"bits": "4"}, "bits must be a whole number, found '4'"),
        ("colbert", {"preset": "papers"}, "preset must be 'default' or 'paper', found 'papers'"),
        ("reversed", {}, "kind 'reversed' needs the parameter 'first'"),
        ("reversed", {"first": 3}, "first must be a text, found 3"),
        ("reversed", {"first": "nobody"}, "it builds on 'nobody', which is no system here; there are row"),
        ("reversed", {"first": "row"}, "it builds on itself"),
        ("reversed", {"first": "row", "deep": 3}, "kind 'reversed' has no parameter 'deep'; it has first, depth"),
        ("joined", {"parts": "row"}, "parts must be a list, each item a text, found 'row'"),
    ],
)
def test_mistakes_are_named(kinds, kind, parameters, message):
    with pytest.raises(InputError, match=r"^system 'row': ") as caught:
        check_entries({"row": Entry("row", kind, parameters)})
    assert message in str(caught.value)


def test_a_circle_of_rows_is_refused(kinds):
    rows = {"a": Entry("a", "reversed", {"first": "b"}), "b": Entry("b", "reversed", {"first": "a"})}
    with pytest.raises(InputError, match="system 'a': it builds on itself"):
        check_entries(rows)


def test_two_kinds_of_one_name_are_refused(kinds):
    with pytest.raises(InputError, match="there is a kind 'colbert' already"):

        @system("colbert")
        def other(context: Context) -> Retriever: ...
