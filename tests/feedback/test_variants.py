"""What may be put in place of k-means, IDF and the first pass."""

from __future__ import annotations

from math import log

import numpy as np
import pytest

from colbert_prf import CentroidPRF, ColbertPRF, EncodedQuery, InputError, Searcher
from colbert_prf.feedback.weighting import weigh


@pytest.mark.parametrize("clustering", ["kmeans-closest", "kmedoids"])
def test_real_vectors_keep_their_own_tokens(memory, goldfish, clustering):
    feedback = ColbertPRF(clustering=clustering)
    expansion = Searcher(memory).search(goldfish, feedback=feedback).expansion
    rows = {
        (token, vector.tobytes())
        for place in memory.positions(expansion.feedback)
        for token, vector in zip(*_document(memory, place), strict=True)
    }
    for token, vector in zip(expansion.query.token_ids, expansion.query.vectors, strict=True):
        if (token, vector.tobytes()) not in rows:
            assert any((vector == own).all() for own in goldfish.vectors)


def _document(memory, position):
    rows = slice(memory.offsets[position], memory.offsets[position + 1])
    return memory.token_ids[rows].tolist(), memory.vectors[rows]


def test_weights_worked_out_by_hand(plane):
    """Token 1 is in documents a and b, three times of ten; token 4 in d and e, three times of ten."""
    query = EncodedQuery(np.array([1, 3], np.int32), np.eye(2, dtype=np.float32))
    vectors = np.array([[0.5, 0], [-1, -1]], np.float32)
    token_ids, source = np.array([1, 4], np.int32), plane
    assert weigh("idf", query, vectors, token_ids, source).tolist() == pytest.approx([log(6 / 3), log(6 / 3)])
    assert weigh("ictf", query, vectors, token_ids, source).tolist() == pytest.approx([log(11 / 4), log(11 / 4)])
    assert weigh("cosine", query, vectors, token_ids, source).tolist() == pytest.approx([0.5, 0])


@pytest.mark.parametrize("method", ["idf", "ictf", "cosine"])
def test_what_has_no_token_has_no_weight(memory, goldfish, method):
    """None, a special token, and one that no document has, which is as rare as can be."""
    unseen = len(memory.document_frequencies) + 5
    tokens = np.array([-1, min(memory.special_ids), unseen], np.int32)
    sigmas = weigh(method, goldfish, memory.vectors[:3], tokens, memory)
    assert (sigmas < 0).tolist() == [True, True, False]
    if method == "idf":
        assert sigmas[2] == pytest.approx(log(memory.num_documents + 1))


@pytest.mark.parametrize("clustering", ["kmeans-closest", "kmedoids"])
def test_the_likely_tokens_of_a_real_vector_are_those_of_its_cluster(plane, clustering):
    """The one cluster of document a has two vectors of token 1 and one of token 3; the mean is nearer to token 1."""
    feedback = ColbertPRF(clustering=clustering, clusters=1, expansion_vectors=1)
    query = EncodedQuery(np.array([1], np.int32), np.eye(1, 2, dtype=np.float32))
    (vector,) = feedback.expand(query, ["a"], plane).vectors
    assert vector.likely == ((1, pytest.approx(2 / 3)), (3, pytest.approx(1 / 3)))
    assert vector.token_id == 1
    assert vector.probability == pytest.approx(2 / 3)


def test_documents_marked_as_relevant_are_learned_from(memory, goldfish):
    searcher = Searcher(memory)
    ranking = searcher.search(goldfish, k=12, feedback=ColbertPRF(weight=2), relevant=["bank1", "bank3"])
    assert ranking.expansion.feedback == ("bank1", "bank3")
    assert set(ranking.doc_ids[:2]) == {"bank1", "bank3"}


def test_documents_marked_as_not_relevant_are_pushed_away(memory, open_index, goldfish):
    for index in (memory, open_index(4)):
        searcher = Searcher(index)
        pseudo = searcher.search(goldfish, k=12, feedback=ColbertPRF())
        bad = pseudo.doc_ids[1]
        pushed = searcher.search(goldfish, k=12, feedback=ColbertPRF(), non_relevant=[bad])
        assert bad not in pushed.expansion.feedback
        assert _lead(pushed, bad) > _lead(pseudo, bad)


def _lead(ranking, doc_id: str) -> float:
    """How far the best document is ahead of another."""
    scores = {hit.doc_id: hit.score for hit in ranking}
    return max(scores.values()) - scores[doc_id]


def test_marks_need_a_method(memory, goldfish):
    with pytest.raises(InputError, match="relevant and non_relevant need a feedback method"):
        Searcher(memory).search(goldfish, relevant=["fish1"])


def test_an_unknown_mark_is_refused(memory, goldfish):
    with pytest.raises(InputError, match="the index has no document 'nobody'"):
        Searcher(memory).search(goldfish, feedback=ColbertPRF(), relevant=["nobody"])


class TestCentroidPRF:
    def test_it_adds_centroids_of_the_codec(self, open_index, goldfish):
        index = open_index(4)
        ranking = Searcher(index).search(goldfish, k=12, feedback=CentroidPRF(expansion_vectors=6))
        expansion = ranking.expansion
        centroids = index.codec.centroids[:, : index.dim]
        for vector, known in zip(expansion.query.vectors[expansion.num_original :], expansion.vectors, strict=True):
            code = int(np.flatnonzero((centroids == vector).all(axis=1))[0])
            holders = {p for p in range(12) if code in _codes(index, p)}
            members = [_codes(index, p).tolist().count(code) for p in index.positions(expansion.feedback)]
            assert known.sigma == pytest.approx(sum(members) * log(13 / (len(holders) + 1)))
            assert len(known.sources) == sum(members)

    def test_relevance_one_takes_the_best_scores(self, open_index, goldfish):
        expansion = (
            Searcher(open_index(4)).search(goldfish, feedback=CentroidPRF(expansion_vectors=50, relevance=1)).expansion
        )
        sigmas = [vector.sigma for vector in expansion.vectors]
        assert sigmas == sorted(sigmas, reverse=True)

    def test_it_needs_a_codec(self, memory, goldfish):
        with pytest.raises(InputError, match="CentroidPRF needs an index folder"):
            Searcher(memory).search(goldfish, feedback=CentroidPRF())

    def test_frequencies_follow_deletions(self, encoder, memory, tmp_path):
        from colbert_prf import Index

        pairs = list(zip(memory.doc_ids, memory.texts, strict=True))
        index = Index.create(tmp_path / "my.index", pairs, encoder=encoder, bits=2, progress=False)
        index.delete(["fish1", "war2"])
        expected = np.zeros(index.codec.num_centroids, dtype=np.int64)
        for position in np.flatnonzero(index.snapshot.live).tolist():
            expected[np.unique(_codes(index, position))] += 1
        assert np.array_equal(index.snapshot.centroid_frequencies, expected)
        tokens = np.concatenate([index.token_ids(int(p)) for p in np.flatnonzero(index.snapshot.live)])
        counts = np.bincount(tokens, minlength=index.vocabulary_size)
        assert np.array_equal(index.snapshot.collection_frequencies, counts)


def _codes(index, position: int):
    segment, place = index.snapshot.locate(position)
    return np.asarray(segment.columns["codes"][segment.offsets[place] : segment.offsets[place + 1]])
