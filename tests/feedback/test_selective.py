"""Feedback only where the first pass looks good: coherence by hand, and the laws of the threshold."""

from __future__ import annotations

from dataclasses import fields, replace
from math import cos, radians

import numpy as np
import pytest

from colbert_prf import (
    ColbertPRF,
    EncodedDocument,
    EncodedQuery,
    Expansion,
    InputError,
    MemoryIndex,
    Searcher,
    Selective,
)
from colbert_prf.feedback import selective as selective_module
from colbert_prf.feedback.selective import coherence, damped
from colbert_prf.feedback.source import source_of

QUERY = EncodedQuery(np.array([1], np.int32), np.array([[1, 0]], np.float32))


def test_coherence_worked_out_by_hand(plane):
    """Document b has vectors at 0 and 60 degrees, c one at 90.

    From b to c: (cos 90 + cos 30) / 2; from c to b: cos 30. Document a has 0, 0 and 90: from a to c (0 + 0 + 1) / 3,
    from c to a 1; from a to b (1 + 1 + cos 30) / 3, from b to a (1 + max(cos 60, cos 30)) / 2.
    """
    near = cos(radians(30))
    b_c, c_b = near / 2, near
    assert coherence(("b", "c"), source_of(plane)) == pytest.approx((b_c + c_b) / 2, abs=1e-6)
    a_c, c_a, a_b, b_a = 1 / 3, 1.0, (2 + near) / 3, (1 + near) / 2
    expected = (b_c + c_b + a_c + c_a + a_b + b_a) / 6
    assert coherence(("a", "b", "c"), source_of(plane)) == pytest.approx(expected, abs=1e-6)
    assert coherence(("c", "b", "a"), source_of(plane)) == pytest.approx(expected, abs=1e-6)


def test_one_document_is_coherent(plane):
    assert coherence(("b",), source_of(plane)) == 1


def test_documents_that_point_apart_are_not_coherent():
    """Vectors at 120 degrees against those at 0: cos 120 is negative, and 0 is the least."""
    vectors = np.array([[1, 0], [-0.5, np.sqrt(0.75)]], np.float32)
    index = MemoryIndex(["a", "d"], [EncodedDocument(np.array([1], np.int32), vector[None]) for vector in vectors])
    assert coherence(("a", "d"), source_of(index)) == 0


def answers(searcher, feedback) -> list[tuple[str, float]]:
    return [(hit.doc_id, hit.score) for hit in searcher.search("do goldfish grow", k=12, feedback=feedback)]


@pytest.mark.parametrize("damp", [False, True])
def test_threshold_0_is_the_method_itself(memory, open_index, damp):
    for index in (memory, open_index(4)):
        searcher = Searcher(index)
        selective = Selective(ColbertPRF(), threshold=0, damped=damp)
        assert answers(searcher, selective) == answers(searcher, ColbertPRF())


@pytest.mark.parametrize("damp", [False, True])
def test_full_confidence_is_the_method_itself(memory, damp, monkeypatch):
    monkeypatch.setattr(selective_module, "coherence", lambda doc_ids, source: 1.0)
    selective = Selective(ColbertPRF(), threshold=1, damped=damp)
    assert answers(Searcher(memory), selective) == answers(Searcher(memory), ColbertPRF())


def test_a_threshold_above_the_confidence_leaves_the_first_pass(memory, open_index, monkeypatch):
    monkeypatch.setattr(selective_module, "coherence", lambda doc_ids, source: 0.99)
    for index in (memory, open_index(4)):
        selective = Selective(ColbertPRF(), threshold=1)
        ranking = Searcher(index).search("do goldfish grow", k=12, feedback=selective)
        assert [*ranking] == [*Searcher(index).search("do goldfish grow", k=12)]
        assert len(ranking.expansion) == 0
        assert len(ranking.expansion.feedback) == 3, "what it would have learned from"


def test_damping_is_a_smaller_weight(memory, monkeypatch):
    """Confidence 0.3 of a threshold of 0.6 halves the weight."""
    monkeypatch.setattr(selective_module, "coherence", lambda doc_ids, source: 0.3)
    selective = Selective(ColbertPRF(weight=0.8), threshold=0.6, damped=True)
    found = Searcher(memory).search("do goldfish grow", k=12, feedback=selective)
    expected = Searcher(memory).search("do goldfish grow", k=12, feedback=ColbertPRF(weight=0.4))
    assert found.doc_ids == expected.doc_ids
    assert [hit.score for hit in found] == pytest.approx([hit.score for hit in expected], rel=1e-6)
    weights = [vector.weight for vector in found.expansion.vectors]
    assert weights == pytest.approx([vector.weight for vector in expected.expansion.vectors], rel=1e-6)
    assert weights == found.expansion.query.weights[-len(weights) :].tolist()


def test_the_confidence_decides(memory):
    """Between two queries, the threshold stands between their coherences."""
    queries = ("do goldfish grow", "yeast interest troops")
    found = {}
    for query in queries:
        expansion = Searcher(memory).search(query, feedback=ColbertPRF()).expansion
        found[query] = coherence(expansion.feedback, source_of(memory))
    assert found[queries[0]] > found[queries[1]]
    selective = Selective(ColbertPRF(), threshold=sum(found.values()) / 2)
    expansions = [Searcher(memory).search(query, feedback=selective).expansion for query in queries]
    assert [bool(len(expansion)) for expansion in expansions] == [True, False]


def test_a_search_passes_the_scores_of_the_first_pass(memory, open_index, monkeypatch):
    """What a method may judge the first pass by."""
    for index in (memory, open_index(4)):
        seen = []
        expand = ColbertPRF.expand

        def seeing(self, query, ranking, *arguments, seen=seen, expand=expand, **options):
            seen.extend(ranking)
            return expand(self, query, ranking, *arguments, **options)

        monkeypatch.setattr(ColbertPRF, "expand", seeing)
        ranking = Searcher(index).search("do goldfish grow", feedback=ColbertPRF())
        monkeypatch.undo()
        assert seen == [*ranking.before][:3]


def test_documents_marked_by_a_person_are_trusted(memory, goldfish):
    selective = Selective(ColbertPRF(), threshold=1)
    marked = ["bank1", "fish1"]
    found = Searcher(memory).search(goldfish, feedback=selective, relevant=marked)
    assert [*found] == [*Searcher(memory).search(goldfish, feedback=ColbertPRF(), relevant=marked)]


def test_it_searches_as_its_method_does():
    method = ColbertPRF(feedback_docs=5, expansion_vectors=7, beta=2, rerank=True, rerank_depth=9, push=1)
    selective = Selective(method, threshold=0.5)
    for name in ("feedback_docs", "expansion_vectors", "weight", "beta", "strength", "rerank", "rerank_depth", "push"):
        assert getattr(selective, name) == getattr(method, name)
    own = {each.name for each in fields(Selective) if each.init}
    assert own == {"method", "threshold", "damped"}, "it takes no option that it would ignore"
    assert replace(selective, method=ColbertPRF(weight=3)).weight == 3
    published = ColbertPRF(compat="paper")
    assert Selective(published, threshold=0.5).strength == published.strength, "the default is the method's own"
    assert repr(selective).startswith("Selective(method=ColbertPRF(feedback_docs=5")


def test_what_cannot_be_used_is_refused():
    for options, message in (
        ({"threshold": 1.1}, "threshold must be between 0 and 1, found 1.1"),
        ({"threshold": -0.1}, "threshold must be between 0 and 1"),
        ({"threshold": float("nan")}, "threshold must be between 0 and 1"),
        ({"threshold": 0.5, "method": "prf"}, "method must be a feedback method"),
    ):
        with pytest.raises(InputError, match=message):
            Selective(**{"method": ColbertPRF(), **options})
    assert len(damped(Expansion(QUERY), 0.5)) == 0
