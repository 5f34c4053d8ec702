"""Any ranking system answers the same way."""

from __future__ import annotations

import pytest

from colbert_prf import ColbertPRF, EndToEnd, MemoryIndex, Retriever, Searcher

TEXTS = [("a", "Goldfish grow all their life."), ("b", "Bank rates fell."), ("c", "A fish tank limits growth.")]


@pytest.fixture(scope="module")
def searcher():
    return Searcher(MemoryIndex.create(TEXTS))


def test_end_to_end_is_the_search(searcher):
    ranking = EndToEnd(searcher).search("do goldfish grow", k=2)
    expected = searcher.search("do goldfish grow", k=2)
    assert [(hit.doc_id, hit.score) for hit in ranking] == [(hit.doc_id, hit.score) for hit in expected]


def test_end_to_end_passes_feedback_and_options_on(searcher):
    feedback = ColbertPRF(feedback_docs=1, clusters=3, expansion_vectors=2)
    ranking = EndToEnd(searcher, feedback=feedback, threads=1).search("do goldfish grow", k=3)
    assert ranking.expansion is not None
    assert ranking.doc_ids == searcher.search("do goldfish grow", k=3, feedback=feedback).doc_ids


def test_a_hit_of_feedback_is_explained_by_the_query_that_found_it(searcher):
    system = EndToEnd(searcher, feedback=ColbertPRF(feedback_docs=1, clusters=3, expansion_vectors=2))
    for hit in (ranking := system.search("do goldfish grow", k=3)):
        explanation = system.explain("do goldfish grow", hit.doc_id, k=3)
        assert explanation.score == pytest.approx(hit.score, abs=1e-5)
        assert len(explanation.matches) == len(ranking.encoded_query)


def test_an_explanation_searches_as_deep_as_the_search_did(searcher, monkeypatch):
    asked, search = [], searcher.search
    monkeypatch.setattr(searcher, "search", lambda query, k, **options: asked.append(k) or search(query, k, **options))
    EndToEnd(searcher, feedback=ColbertPRF(feedback_docs=1)).explain("do goldfish grow", "a", k=2)
    assert asked == [2]


def test_many_queries_are_answered_in_order():
    class Echo(Retriever):
        def search(self, query, k=1000):
            return (query, k)

    assert list(Echo().search_many(["x", "y"], 5)) == [("x", 5), ("y", 5)]
