"""BERT-QE's three phases by hand, on vectors chosen for it."""

from __future__ import annotations

from math import exp

import numpy as np
import pytest

from colbert_prf import EncodedDocument, EncodedQuery, InputError, MemoryIndex, Searcher
from colbert_prf.baselines.rerank import BertQE
from colbert_prf.baselines.rerank.bert_qe import chunks_of

DIRECTIONS = {"east": [1.0, 0.0], "north": [0.0, 1.0], "between": [0.6, 0.8]}
TEXTS = {"x": "east east north between", "y": "north north", "z": "between"}


class WordEncoder:
    """Each word has a vector of its own, wherever it stands."""

    dim = 2
    vocabulary_size = 3
    special_ids = frozenset()

    def encode_query(self, text):
        names = list(DIRECTIONS)
        words = text.split()
        vectors = np.array([DIRECTIONS[word] for word in words], dtype=np.float32)
        return EncodedQuery(np.array([names.index(word) for word in words], dtype=np.int32), vectors)

    def encode_documents(self, texts, *, progress=None):
        for text in texts:
            query = self.encode_query(text)
            yield EncodedDocument(query.token_ids, query.vectors)


@pytest.fixture
def words():
    encoder = WordEncoder()
    documents = list(encoder.encode_documents(TEXTS.values()))
    return Searcher(MemoryIndex(list(TEXTS), documents, texts=list(TEXTS.values()), encoder=encoder))


@pytest.fixture
def first(fixed):
    return fixed("z", "y", "x", texts=TEXTS)


def test_scores_by_hand(words, first):
    # The query "east": rel(q, x) = 1, rel(q, y) = 0, rel(q, z) = 0.6; first scores 10, 9, 8 for z, y, x.
    # The best document is x; its chunks of two words: "east east" (1), "east north" (1), "north between" (0.6).
    # The two best are the first two, each a share of 1/2. rel(c, d) per vector, for a query of one vector:
    #   "east east": x 1, y 0, z 0.6;   "east north": x 1, y (0 + 1) / 2, z (0.6 + 0.8) / 2.
    system = BertQE(first, words, feedback_docs=1, chunk_words=2, chunks=2)
    likeness = {"x": 1.0, "y": 0.25, "z": (0.6 + 0.7) / 2}
    relevance = {"x": 1.0, "y": 0.0, "z": 0.6}
    initial = {"x": 0.0, "y": 0.5, "z": 1.0}  # 8, 9, 10 stretched to the range 0 to 1
    expected = {name: 0.9 * (0.6 * relevance[name] + 0.4 * likeness[name]) + 0.1 * initial[name] for name in relevance}
    found = {hit.doc_id: hit.score for hit in system.search("east")}
    assert found == pytest.approx(expected, abs=1e-6)


def test_chunks_count_by_their_scores(words, first):
    # All three chunks, of which the last has 0.6: shares e : e : e^0.6.
    system = BertQE(first, words, alpha=1.0, beta=1.0, feedback_docs=1, chunk_words=2, chunks=3)
    total = 2 * exp(1) + exp(0.6)
    # "north between" for y: (1 + 0.8) / 2 = 0.9.
    expected = exp(1) / total * 0.0 + exp(1) / total * 0.5 + exp(0.6) / total * 0.9
    assert {hit.doc_id: hit.score for hit in system.search("east")}["y"] == pytest.approx(expected, abs=1e-6)


def test_without_chunks_and_first_scores_it_is_maxsim(words, first):
    ranking = BertQE(first, words, alpha=0.0, beta=1.0).search("east")
    assert [(hit.doc_id, round(hit.score, 6)) for hit in ranking] == [("x", 1.0), ("z", 0.6), ("y", 0.0)]


def test_with_first_scores_alone_the_order_stays(words, first):
    assert BertQE(first, words, beta=0.0).search("east").doc_ids == ["z", "y", "x"]


def test_the_candidates_stay_the_same(searcher, fixed):
    ranking = BertQE(fixed("rain", "bank", "pond", "fish"), searcher).search("how large does a goldfish become")
    assert sorted(ranking.doc_ids) == ["bank", "fish", "pond", "rain"]
    assert BertQE(fixed(), searcher).search("goldfish").doc_ids == []


def test_chunks_overlap_by_half_and_a_short_rest_joins_the_last():
    assert chunks_of("a b c d e f g h", 4) == ["a b c d", "c d e f", "e f g h"]
    assert chunks_of("a b c d e", 4) == ["a b c d e"]
    assert chunks_of(" ".join("abcdefghijklmno"), 10) == ["a b c d e f g h i j", "f g h i j k l m n o"]


@pytest.mark.parametrize("wrong", [{"alpha": 2}, {"beta": -1}, {"feedback_docs": 0}, {"chunk_words": 1}, {"chunks": 0}])
def test_impossible_parameters_are_refused(words, first, wrong):
    with pytest.raises(InputError, match=next(iter(wrong))):
        BertQE(first, words, **wrong)
