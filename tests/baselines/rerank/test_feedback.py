"""Feedback from what a re-ranker prefers."""

from __future__ import annotations

from math import log

import numpy as np
import pytest

from colbert_prf import (
    ColbertPRF,
    EncodedDocument,
    EncodedQuery,
    Hit,
    InputError,
    MemoryIndex,
    Ranking,
    Retriever,
    Searcher,
)
from colbert_prf.baselines import RerankedFeedback

PASSAGES = {
    "fish1": "Goldfish grow all their life.",
    "fish2": "A pond lets a goldfish become larger.",
    "bank1": "The bank raised its rates.",
    "bank2": "Savers were glad about interest.",
}


class Judge(Retriever):
    """Gives the same answer to every query, and notes what it was asked."""

    def __init__(self, scores: dict[str, float]) -> None:
        self.scores, self.asked = scores, []

    def search(self, query, k=10):
        self.asked.append((query, k))
        return Ranking(query, tuple(Hit(doc_id, score) for doc_id, score in self.scores.items())[:k], {"judge": 0.5})


@pytest.fixture(scope="module")
def searcher(encoder):
    return Searcher(MemoryIndex.create(PASSAGES.items(), encoder=encoder, progress=False))


def test_the_answer_is_a_search_with_what_the_judge_preferred(searcher):
    judge, feedback = Judge({"fish2": 2.0, "bank1": 1.0, "fish1": 0.0}), ColbertPRF(feedback_docs=2)
    ranking = RerankedFeedback(judge, searcher, feedback=feedback, depth=3).search("do goldfish grow", k=2)
    assert judge.asked == [("do goldfish grow", 3)]
    encoded = searcher.encode("do goldfish grow")
    expected = feedback.expand(encoded, judge.search("", 3), searcher.index, weighed=True)
    assert ranking.expansion.feedback == ("fish2", "bank1")
    assert ranking.expansion.vectors == expected.vectors
    found = searcher.search(expected.query, k=2)
    assert (ranking.doc_ids, ranking.scores) == (found.doc_ids, found.scores)
    assert ranking.before.doc_ids == ["fish2", "bank1"]
    assert {"judge", "expansion"} <= set(ranking.timings)


def test_the_judge_may_only_choose(searcher):
    judge = Judge({"fish2": 9.0, "bank1": 1.0})
    feedback = ColbertPRF(feedback_docs=2)
    plain = RerankedFeedback(judge, searcher, feedback=feedback, weighed=False).search("do goldfish grow")
    marked = searcher.search("do goldfish grow", feedback=feedback, relevant=["fish2", "bank1"])
    assert plain.expansion.vectors == marked.expansion.vectors
    assert plain.scores == pytest.approx(marked.scores, abs=1e-5)


def test_scores_decide_how_much_a_passage_counts():
    """One vector each: b scores ln 3 more than c, so its σ is three times as much; each token is in one of three."""
    documents = [
        EncodedDocument(np.array([token], np.int32), np.eye(3, dtype=np.float32)[[token]]) for token in (0, 1, 2)
    ]

    class Axis(Searcher):
        def encode(self, text):
            return EncodedQuery(np.array([0], np.int32), np.eye(1, 3, dtype=np.float32))

    searcher = Axis(MemoryIndex(["a", "b", "c"], documents))
    feedback = ColbertPRF(feedback_docs=2, clusters=2, expansion_vectors=2, neighbours=1, weight=1)
    ranking = RerankedFeedback(Judge({"b": log(3), "c": 0.0}), searcher, feedback=feedback).search("a", k=3)
    assert {v.token_id: v.weight for v in ranking.expansion.vectors} == pytest.approx({1: 0.75, 2: 0.25})
    assert dict(zip(ranking.doc_ids, ranking.scores, strict=True)) == pytest.approx({"a": 1, "b": 0.75, "c": 0.25})


def test_a_judge_that_finds_nothing_leaves_the_search_as_it_is(searcher):
    ranking = RerankedFeedback(Judge({}), searcher).search("do goldfish grow", k=2)
    assert ranking.doc_ids == searcher.search("do goldfish grow", k=2).doc_ids
    assert len(ranking.expansion) == 0


def test_a_judge_asked_for_too_few_is_refused(searcher):
    with pytest.raises(InputError, match="depth must be at least feedback_docs, 3, found 2"):
        RerankedFeedback(Judge({}), searcher, feedback=ColbertPRF(feedback_docs=3), depth=2)
