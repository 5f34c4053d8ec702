from __future__ import annotations

import numpy as np
import pytest

from colbert_prf import EncodedDocument, EncodedQuery, InputError, MemoryIndex, Searcher


@pytest.fixture
def searcher() -> Searcher:
    """Four documents of one vector each, at 0, 30, 60 and 90 degrees; the last two are the same."""
    angles = np.radians([0, 30, 90, 90])
    vectors = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    documents = [EncodedDocument(np.zeros(1, np.int32), vectors[i : i + 1]) for i in range(4)]
    return Searcher(MemoryIndex(["d0", "d30", "d90", "again"], documents, texts=list("wxyz")))


def query(*rows: tuple[float, float], weights: tuple[float, ...] = ()) -> EncodedQuery:
    return EncodedQuery(np.zeros(len(rows), np.int32), np.array(rows, np.float32), np.array(weights, np.float32))


def test_hits_come_best_first_with_scores_and_texts(searcher):
    ranking = searcher.search(query((1, 0)), k=2)
    assert ranking.doc_ids == ["d0", "d30"]
    assert [hit.score for hit in ranking] == pytest.approx([1, np.cos(np.radians(30))])
    assert [hit.text for hit in ranking] == ["w", "x"]


def test_equal_scores_stay_in_index_order(searcher):
    assert searcher.search(query((0, 1)), k=4).doc_ids == ["d90", "again", "d30", "d0"]


def test_weights_change_the_order(searcher):
    both = ((1.0, 0.0), (0.0, 1.0))
    assert searcher.search(query(*both, weights=(1, 0.1)), k=1).doc_ids == ["d0"]
    assert searcher.search(query(*both, weights=(0.1, 1)), k=1).doc_ids == ["d90"]


def test_a_query_vector_of_weight_zero_changes_nothing(searcher):
    alone = searcher.search(query((1, 0)), k=4)
    with_nothing = searcher.search(query((1, 0), (0, 1), weights=(1, 0)), k=4)
    assert with_nothing.hits == alone.hits


def test_all_documents_come_back_when_k_is_larger(searcher):
    assert len(searcher.search(query((1, 0)), k=99)) == 4


def test_a_document_without_vectors_is_never_found():
    nothing = EncodedDocument(np.empty(0, np.int32), np.empty((0, 2), np.float32))
    something = EncodedDocument(np.zeros(1, np.int32), np.array([[-1, 0]], np.float32))
    searcher = Searcher(MemoryIndex(["nothing", "something"], [nothing, something]))
    assert searcher.search(query((1, 0)), k=2).doc_ids == ["something"]


def test_a_search_does_not_change_the_next(searcher):
    first = searcher.search(query((1, 0)), k=4)
    searcher.search(query((0, 1)), k=1)
    assert searcher.search(query((1, 0)), k=4).hits == first.hits


def test_a_text_is_encoded_by_the_model_of_the_index(encoder):
    index = MemoryIndex.create(
        [("fish", "Goldfish grow all their life."), ("bank", "The bank raised its rates.")], encoder=encoder
    )
    ranking = Searcher(index).search("how large do fish become", k=2)
    assert ranking.doc_ids == ["fish", "bank"]
    assert list(ranking.timings) == ["encode", "score", "hits"]


def test_bad_input_is_refused(searcher):
    with pytest.raises(InputError, match="k must be at least 1, found 0"):
        searcher.search(query((1, 0)), k=0)
    with pytest.raises(InputError, match="the index has no encoder"):
        searcher.search("a text")
    with pytest.raises(InputError, match="query has vectors of dim 3, the index of dim 2"):
        searcher.search(EncodedQuery(np.zeros(1, np.int32), np.array([[1, 0, 0]], np.float32)))
