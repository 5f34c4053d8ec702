"""What a ranking gives: hits by rank, ids, scores and texts, a frame, a run, one line."""

from __future__ import annotations

import builtins

import numpy as np
import pytest

from colbert_prf import EncodedQuery, Expansion, Hit, Index, InputError, MemoryIndex, Ranking
from colbert_prf.errors import MissingExtraError
from colbert_prf.types import Hits

QUERY = EncodedQuery(np.array([5], np.int32), np.array([[1, 0]], np.float32))
GIVEN = (Hit("b", 2.0, lambda: "Bank rates."), Hit("a", 1.0), Hit("c", 0.5, None, lambda: {"year": 2020}))
LAZY = Hits(
    ["b", "a", "c"], [2.0, 1.0, 0.5], ["Bank rates.", None, None].__getitem__, [{}, {}, {"year": 2020}].__getitem__
)


@pytest.fixture(params=[GIVEN, LAZY], ids=["given", "lazy"])
def ranking(request):
    return Ranking(QUERY, request.param, {"encode": 0.5}, Expansion(QUERY))


def test_hits_by_rank_and_columns(ranking):
    assert ranking[0] == Hit("b", 2.0)
    assert ranking[-1].metadata == {"year": 2020}
    assert ranking[1].metadata == {}
    assert ranking.doc_ids == [hit.doc_id for hit in ranking] == ["b", "a", "c"]
    assert ranking.scores == [2.0, 1.0, 0.5]
    assert ranking.texts == ["Bank rates.", None, None]
    with pytest.raises(IndexError):
        ranking[3]


def test_a_slice_is_the_ranking_of_those_hits(ranking):
    part = ranking[1:]
    assert isinstance(part, Ranking)
    assert (part.doc_ids, part.scores, len(part)) == (["a", "c"], [1.0, 0.5], 2)
    assert part[1].metadata == {"year": 2020}
    assert (part.query, part.timings, part.expansion) == (ranking.query, ranking.timings, ranking.expansion)
    assert ranking[:1].texts == ["Bank rates."]


def test_a_slice_keeps_the_ranking_before_feedback():
    ranking = Ranking(QUERY, GIVEN, read_before=lambda: Ranking(QUERY, GIVEN[1:]))
    assert ranking[:1].before.doc_ids == ["a", "c"]


def test_a_run_is_what_evaluate_takes(ranking):
    assert ranking.to_run("q7") == {"q7": {"b": 2.0, "a": 1.0, "c": 0.5}}


def test_a_frame_has_a_row_for_each_hit(ranking):
    pytest.importorskip("pandas")
    frame = ranking.to_frame()
    assert frame.columns.tolist() == ["rank", "doc_id", "score", "text", "metadata"]
    assert frame.values.tolist() == [
        [1, "b", 2.0, "Bank rates.", {}],
        [2, "a", 1.0, None, {}],
        [3, "c", 0.5, None, {"year": 2020}],
    ]
    empty = ranking[:0].to_frame()
    assert (len(empty), empty.columns.tolist()) == (0, frame.columns.tolist())


def test_without_pandas_a_frame_says_what_to_install(ranking, monkeypatch):
    real = builtins.__import__

    def without(name, *rest):
        if name == "pandas":
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingExtraError, match=r'pip install "colbert-prf\[frames\]"'):
        ranking.to_frame()


def test_the_repr_is_one_line():
    assert repr(Ranking(QUERY, GIVEN)) == "Ranking(3 hits: 'b' 2.000, 'a' 1.000, 'c' 0.500)"
    assert repr(Ranking(QUERY, ())) == "Ranking(0 hits)"
    many = Ranking(QUERY, [*GIVEN, Hit("d", 0.25)], expansion=Expansion(QUERY))
    assert repr(many) == "Ranking(4 hits: 'b' 2.000, 'a' 1.000, 'c' 0.500, …; 0 vectors added)"
    assert repr(QUERY) == "EncodedQuery(1 vectors of dim 2)"


@pytest.fixture(scope="module")
def index(tmp_path_factory, encoder):
    documents = [("366", "Goldfish grow all their life.", {"source": "garden"}), ("7", "Bank rates fell.", {})]
    return Index.create(tmp_path_factory.mktemp("ids") / "my.index", documents, encoder=encoder, progress=False)


def test_documents_are_named_by_their_ids(index):
    assert index.metadata("366") == index.metadata(0) == {"source": "garden"}
    assert index.text("7") == index.text(1) == "Bank rates fell."
    assert index.token_ids("7").tolist() == index.token_ids(1).tolist()
    assert np.array_equal(index.vectors("366"), index.vectors(0))
    for read in (index.metadata, index.text, index.vectors, index.token_ids):
        with pytest.raises(InputError, match="no document '0'"):
            read("0")


def test_documents_in_memory_are_named_by_their_ids(encoder):
    index = MemoryIndex.create([("366", "Goldfish grow."), ("7", "Bank rates fell.")], encoder=encoder, progress=False)
    assert (index.text("7"), index.text(1), index.metadata("7")) == ("Bank rates fell.", "Bank rates fell.", {})
    for read in (index.text, index.metadata):
        with pytest.raises(InputError, match="no document '0'"):
            read("0")


def test_hits_of_a_search_have_their_metadata(index):
    from colbert_prf import Searcher

    ranking = Searcher(index).search("do goldfish grow", k=2, feedback=None)
    assert ranking[0].metadata == {"source": "garden"}
    assert {hit.doc_id: hit.text for hit in ranking} == {"366": index.text("366"), "7": index.text("7")}
