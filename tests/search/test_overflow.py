"""Weights so large that a float32 does not hold the scores: an error, never an empty or another ranking."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from colbert_prf import ColbertPRF, EncodedDocument, EncodedQuery, Index, InputError, MemoryIndex, Searcher

DIM, VOCABULARY = 8, 50


def encoded(seed: int, length: int = 6) -> EncodedDocument:
    random = np.random.default_rng(seed)
    vectors = random.standard_normal((length, DIM)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return EncodedDocument(random.integers(0, VOCABULARY, length).astype(np.int32), vectors)


def query(*, weight: float = 1, length: float = 1) -> EncodedQuery:
    made = encoded(99, 4)
    return EncodedQuery(made.token_ids, made.vectors * np.float32(length), np.full(4, weight, np.float32))


@pytest.fixture(scope="module", params=["memory", "2 bits", "16 bits", "paper"])
def searcher(request, tmp_path_factory) -> Searcher:
    documents = [(f"d{number}", encoded(number)) for number in range(20)]
    if request.param == "memory":
        return Searcher(MemoryIndex.create_from_vectors(documents))
    path: Path = tmp_path_factory.mktemp("overflow") / "my.index"
    bits = 2 if request.param == "2 bits" else 16
    index = Index.create_from_vectors(path, documents, bits=bits, vocabulary_size=VOCABULARY, progress=False)
    return Searcher(index, preset="paper" if request.param == "paper" else None, progress=False)


@pytest.mark.parametrize("given", [{"weight": 3e38}, {"weight": 1e37}, {"length": 3e38}, {"length": 3e38, "weight": 0}])
def test_a_query_whose_scores_may_overflow_is_refused(searcher, given):
    for feedback in (None, ColbertPRF(), ColbertPRF(rerank=True)):
        with pytest.raises(
            InputError, match=r"scores may come to .*e\+3., and must stay below 2\.1e\+37; divide all weights"
        ):
            searcher.search(query(**given), 20, feedback=feedback)
    with pytest.raises(InputError, match="scores may come to"):
        searcher.explain(query(**given), "d1")


@pytest.mark.parametrize("rerank", [False, True])
@pytest.mark.parametrize(
    ("weight", "strength"), [(1e36, {"weight": 10}), (1e20, {"weight": 1e18}), (1e36, {"push": 1e3})]
)
def test_feedback_whose_scores_may_overflow_is_refused(searcher, rerank, weight, strength):
    feedback = ColbertPRF(**{"weight": 1, **strength}, rerank=rerank)
    with pytest.raises(InputError, match=r"scores may come to .*; lower the weight, beta or push of feedback"):
        searcher.search(query(weight=weight), 20, feedback=feedback, non_relevant=["d1"])


@pytest.mark.parametrize("feedback", [None, ColbertPRF(weight=0.5), ColbertPRF(weight=0.5, rerank=True)], ids=str)
def test_a_query_just_below_is_answered_like_one_of_weight_1(searcher, feedback):
    expected = searcher.search(query(), 20, feedback=feedback)
    found = searcher.search(query(weight=2.0**120), 20, feedback=feedback)
    assert found.doc_ids == expected.doc_ids
    assert len(found) == 20
    assert [hit.score / 2.0**120 for hit in found] == pytest.approx([hit.score for hit in expected], rel=1e-5)


@pytest.mark.parametrize("beta", [1e20, 9.9e29])
def test_the_largest_beta_is_answered(searcher, beta):
    found = searcher.search(query(), 20, feedback=ColbertPRF(beta=beta))
    assert len(found) == 20
    assert np.isfinite([hit.score for hit in found]).all()
