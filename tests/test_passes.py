"""Feedback learns while documents are still scored; what it learns is what it would have learned afterwards."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from colbert_prf import (
    ColbertPRF,
    EncodedDocument,
    EncodedQuery,
    Index,
    Ranking,
    Searcher,
    effort,
)

DIM, NUM_DOCUMENTS = 16, 300
METHOD = ColbertPRF(clusters=8, expansion_vectors=5)


@pytest.fixture(scope="module", params=[4, 16])
def searcher(tmp_path_factory, request) -> Searcher:
    random = np.random.default_rng(3)
    documents = []
    for number in range(NUM_DOCUMENTS):
        vectors = random.standard_normal((random.integers(1, 30), DIM)).astype(np.float32)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        token_ids = random.integers(0, 50, len(vectors), dtype=np.int32)
        documents.append((f"d{number}", EncodedDocument(token_ids, vectors)))
    folder = tmp_path_factory.mktemp("passes") / "my.index"
    index = Index.create_from_vectors(folder, documents, bits=request.param, vocabulary_size=50, progress=False)
    return Searcher(index)


@pytest.fixture(scope="module")
def query() -> EncodedQuery:
    vectors = np.random.default_rng(4).standard_normal((5, DIM)).astype(np.float32)
    return EncodedQuery(np.arange(5, dtype=np.int32), vectors / np.linalg.norm(vectors, axis=1, keepdims=True))


def found(searcher: Searcher, query: EncodedQuery, threads: int) -> Ranking:
    return searcher.search(query, k=200, threads=threads, feedback=METHOD)


def learned(ranking: Ranking) -> list[tuple[int, float]]:
    return [(vector.token_id, vector.weight) for vector in ranking.expansion.vectors]


def test_learning_early_is_learning_from_the_first_pass(searcher, query):
    before = searcher.search(query, k=200)
    expansion = METHOD.expand(query, before, searcher.index)
    for threads in (1, 2, 4):
        after = found(searcher, query, threads)
        assert after.before.doc_ids == before.doc_ids
        assert [hit.score for hit in after.before] == [hit.score for hit in before]
        assert learned(after) == [(vector.token_id, vector.weight) for vector in expansion.vectors]


def test_stages_stand_in_the_order_they_begin_in(searcher, query):
    stages = list(found(searcher, query, 2).timings)
    assert stages.index("expansion") == stages.index("maxsim") + 1


def test_the_time_of_learning_does_not_count_twice(monkeypatch):
    clock = iter([0.0, 1.0, 4.0, 10.0])  # one stage from 0 to 10, another within it from 1 to 4
    monkeypatch.setattr(effort, "perf_counter", lambda: next(clock))
    tried = effort.Effort(probes=None, rescore=1)
    with tried.stage("maxsim"), tried.stage("expansion", within="maxsim"):
        pass
    assert tried.timings == {"maxsim": 7.0, "expansion": 3.0}


def test_fewer_documents_than_are_learned_from(searcher, query):
    ranking = searcher.search(query, k=1, allowed=["d7"], feedback=ColbertPRF(clusters=2, expansion_vectors=1))
    assert ranking.doc_ids == ["d7"]
    assert ranking.expansion.feedback == ("d7",)


def test_marked_documents_are_learned_from_whatever_is_found(searcher, query):
    method = ColbertPRF(clusters=2, expansion_vectors=2)
    ranking = searcher.search(query, k=10, relevant=["d9"], feedback=method)
    expansion = method.expand(query, ["d9"], searcher.index)
    assert learned(ranking) == [(vector.token_id, vector.weight) for vector in expansion.vectors]


@pytest.mark.parametrize("rerank", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_learning_early_gives_what_learning_afterwards_gives(searcher, seed, rerank):
    """The second search learns from the documents the first one learned from, marked by hand."""
    vectors = np.random.default_rng(100 + seed).standard_normal((5, DIM)).astype(np.float32)
    asked = EncodedQuery(np.arange(5, dtype=np.int32), vectors / np.linalg.norm(vectors, axis=1, keepdims=True))
    method = replace(METHOD, rerank=rerank)
    early = searcher.search(asked, k=200, threads=2, feedback=method)
    late = searcher.search(asked, k=200, threads=1, feedback=method, relevant=early.before.doc_ids[:3])
    assert learned(late) == learned(early)
    assert late.doc_ids == early.doc_ids
    assert [hit.score for hit in late] == [hit.score for hit in early]


def test_the_re_ranker_scores_what_the_first_pass_scored(searcher, query):
    """Its documents are all those a search without feedback scores exactly, in a new order."""
    before = searcher.search(query, k=250, rescore=250)
    again = searcher.search(query, k=250, feedback=replace(METHOD, rerank=True), rescore=250)
    assert sorted(again.doc_ids) == sorted(before.doc_ids)
    assert again.doc_ids != before.doc_ids
    assert again.before.doc_ids == before.doc_ids
