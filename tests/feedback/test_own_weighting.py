"""A weighting of one's own: a function of vectors, tokens and statistics."""

from __future__ import annotations

import numpy as np
import pytest

from colbert_prf import ColbertPRF, EncodedQuery, InputError, Searcher
from colbert_prf.feedback.weighting import Statistics, inverse_frequency

EAST = EncodedQuery(np.array([1], dtype=np.int32), np.array([[1, 0]], dtype=np.float32))


def test_sigma_is_what_the_function_gives(plane):
    """The best document of EAST has token 1 at 0 degrees and token 3 at 90; here σ is three times the token."""
    seen = []

    def triple(vectors, token_ids, statistics):
        seen.append((vectors, token_ids, statistics))
        return 3 * token_ids

    feedback = ColbertPRF(feedback_docs=1, clusters=2, expansion_vectors=2, neighbours=1, beta=1, weighting=triple)
    expansion = Searcher(plane).search(EAST, feedback=feedback).expansion
    assert [(vector.token_id, vector.sigma, vector.weight) for vector in expansion.vectors] == [(3, 9, 9), (1, 3, 3)]
    vectors, token_ids, statistics = seen[-1]
    assert sorted(zip(token_ids.tolist(), vectors.round(6).tolist(), strict=True)) == [(1, [1, 0]), (3, [0, 1])]
    assert isinstance(statistics, Statistics)
    assert (statistics.query, statistics.num_documents) == (EAST, 5)
    assert statistics.document_frequencies.tolist() == [0, 2, 2, 2, 2]
    assert statistics.collection_frequencies.tolist() == [0, 3, 2, 2, 3]


@pytest.mark.parametrize("clustering", ["kmeans", "kmeans-closest"])
def test_the_papers_weighting_written_as_a_function_gives_the_same(memory, goldfish, clustering):
    def idf(vectors, token_ids, statistics):
        return inverse_frequency(statistics.document_frequencies, token_ids, statistics.num_documents)

    searcher = Searcher(memory)
    own, built_in = (
        searcher.search(goldfish, feedback=ColbertPRF(clustering=clustering, weighting=weighting))
        for weighting in (idf, "idf")
    )
    assert own.expansion.vectors == built_in.expansion.vectors
    assert own.scores == built_in.scores


def test_a_function_decides_over_an_index_folder_too(open_index, goldfish):
    feedback = ColbertPRF(expansion_vectors=4, weighting=lambda vectors, token_ids, statistics: np.ones(len(vectors)))
    expansion = Searcher(open_index(4)).search(goldfish, feedback=feedback).expansion
    assert [vector.sigma for vector in expansion.vectors] == [1] * 4


@pytest.mark.parametrize(
    ("weighting", "message"),
    [
        (lambda vectors, token_ids, statistics: -np.ones(len(vectors)), "at least 0, found -1"),
        (lambda vectors, token_ids, statistics: np.full(len(vectors), np.nan), "found nan"),
        (lambda vectors, token_ids, statistics: np.full(len(vectors), np.inf), "found inf"),
        (lambda vectors, token_ids, statistics: vectors, r"found an array of shape \(\d+, 2\)"),
    ],
)
def test_what_is_no_weight_is_refused(plane, weighting, message):
    with pytest.raises(InputError, match=message):
        Searcher(plane).search(EAST, feedback=ColbertPRF(weighting=weighting))


def test_an_unknown_name_is_still_refused():
    with pytest.raises(InputError, match=r"weighting must be one of .*idf.*found 'tfidf'"):
        ColbertPRF(weighting="tfidf")
