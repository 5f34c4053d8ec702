"""Feedback from texts the caller gives: numbers worked out by hand, and laws."""

from __future__ import annotations

from math import log, sqrt

import numpy as np
import pytest

from colbert_prf import CentroidPRF, ColbertPRF, EncodedDocument, EncodedQuery, InputError, Searcher

EAST = EncodedQuery(np.array([1], dtype=np.int32), np.array([[1, 0]], dtype=np.float32))
ANSWER = "A pond with clean water lets carp and goldfish become very large."


def at(token_id: int, degrees: float) -> EncodedDocument:
    angle = np.radians(degrees)
    return EncodedDocument(np.array([token_id], np.int32), np.array([[np.cos(angle), np.sin(angle)]], dtype=np.float32))


def test_a_text_alone_worked_out_by_hand(plane):
    """The text has token 4 at 120 degrees, which two of five documents have: σ = ln(6/3), and weight 1 makes it 1.

    a has vectors at 0 and 90 degrees: 1 + cos 30. b at 0 and 60: 1 + cos 60. c at 90: 0 + cos 30. d at 120:
    cos 120 + 1. e at 60 and 120: cos 60 + 1.
    """
    feedback = ColbertPRF(clusters=1, expansion_vectors=1, neighbours=1, weight=1)
    ranking = Searcher(plane).search(EAST, feedback=feedback, feedback_texts=[at(4, 120)])
    (added,) = ranking.expansion.vectors
    assert (added.token_id, added.sigma, added.weight) == (4, pytest.approx(log(2)), pytest.approx(1))
    assert ranking.expansion.feedback == ("feedback text 1",)
    assert added.sources == (("feedback text 1", 0),)
    half = sqrt(3) / 2
    expected = {"a": 1 + half, "b": 1.5, "e": 1.5, "c": half, "d": 0.5}
    assert dict(zip(ranking.doc_ids, ranking.scores, strict=True)) == pytest.approx(expected, abs=1e-6)


def test_a_text_with_the_passages_worked_out_by_hand(plane):
    """The best document is a, at 0 and 90 degrees; with the text three clusters, each of a token two documents have."""
    feedback = ColbertPRF(feedback_docs=1, clusters=3, expansion_vectors=3, neighbours=1, weight=1)
    ranking = Searcher(plane).search(EAST, feedback=feedback, feedback_texts=[at(4, 120)], with_passages=True)
    vectors = {vector.token_id: vector for vector in ranking.expansion.vectors}
    assert set(vectors) == {1, 3, 4}
    assert [vector.weight for vector in vectors.values()] == pytest.approx([1 / 3] * 3)
    assert ranking.expansion.feedback == ("a", "feedback text 1")
    assert vectors[4].sources == (("feedback text 1", 0),)
    assert vectors[1].sources == (("a", 0), ("a", 1))


def test_a_token_that_no_document_has_is_the_rarest(plane):
    feedback = ColbertPRF(clustering="kmeans-closest", clusters=1, expansion_vectors=1)
    ranking = Searcher(plane).search(EAST, feedback=feedback, feedback_texts=[at(9, 200)])
    assert [(vector.token_id, vector.sigma) for vector in ranking.expansion.vectors] == [(9, pytest.approx(log(6)))]


def test_marked_passages_and_texts_are_learned_from_together(plane):
    feedback = ColbertPRF(clusters=2, expansion_vectors=2)
    ranking = Searcher(plane).search(EAST, feedback=feedback, relevant=["c"], feedback_texts=[at(4, 120)])
    assert ranking.expansion.feedback == ("c", "feedback text 1")


def test_an_empty_text_teaches_nothing(plane):
    nothing = EncodedDocument(np.empty(0, np.int32), np.empty((0, 2), np.float32))
    ranking = Searcher(plane).search(EAST, feedback=ColbertPRF(), feedback_texts=[nothing])
    assert (len(ranking.expansion), ranking.expansion.feedback) == (0, ())


@pytest.mark.parametrize("bits", [None, 16])
def test_a_text_of_a_passage_teaches_what_the_passage_teaches(memory, open_index, goldfish, bits):
    index = memory if bits is None else open_index(bits)
    searcher, feedback = Searcher(index), ColbertPRF(clustering="kmeans-closest")
    text = searcher.search(goldfish, k=1, feedback=feedback, feedback_texts=[index.text("fish2")])
    marked = searcher.search(goldfish, k=1, feedback=feedback, relevant=["fish2"])
    assert [vector.token_id for vector in text.expansion.vectors] == [v.token_id for v in marked.expansion.vectors]
    assert text.expansion.query.vectors == pytest.approx(marked.expansion.query.vectors, abs=2e-3)
    assert text.expansion.query.weights == pytest.approx(marked.expansion.query.weights, abs=1e-5)


@pytest.mark.parametrize("method", [ColbertPRF(), ColbertPRF(rerank=True), CentroidPRF()])
def test_every_method_learns_from_texts(open_index, goldfish, method):
    searcher = Searcher(open_index(4))
    ranking = searcher.search(goldfish, k=12, feedback=method, feedback_texts=[ANSWER, "Carp."])
    assert ranking.expansion.feedback == ("feedback text 1", "feedback text 2")
    assert set(ranking.doc_ids) == set(searcher.search(goldfish, k=12).doc_ids)
    assert len(ranking.expansion)


def test_what_does_not_go_together_is_refused(plane, memory, goldfish):
    searcher = Searcher(memory)
    with pytest.raises(InputError, match="feedback_texts need a feedback method"):
        searcher.search(goldfish, feedback_texts=[ANSWER])
    with pytest.raises(InputError, match="must be a sequence of texts"):
        searcher.search(goldfish, feedback="prf", feedback_texts=ANSWER)
    with pytest.raises(InputError, match="with_passages goes with feedback_texts"):
        searcher.search(goldfish, feedback="prf", with_passages=True)
    with pytest.raises(InputError, match="dim 2, the index of dim 96"):
        searcher.search(goldfish, feedback="prf", feedback_texts=[at(1, 0)])
    with pytest.raises(InputError, match="string"):
        searcher.search(goldfish, feedback="prf", feedback_texts=[7])
    with pytest.raises(InputError, match="no encoder"):
        Searcher(plane).search(EAST, feedback="prf", feedback_texts=[ANSWER])
