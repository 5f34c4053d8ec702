"""Feedback learns while documents are still scored; what it learns is what it would have learned afterwards."""

from __future__ import annotations

import gc
import sys
import weakref
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

from colbert_prf import (
    ColbertPRF,
    EncodedDocument,
    EncodedQuery,
    Index,
    InputError,
    MemoryIndex,
    Ranking,
    Searcher,
)
from colbert_prf.kernels import kmeans as kmeans_module
from colbert_prf.search import budget as budgets
from colbert_prf.search import first_pass
from colbert_prf.search.budget import Budget, Execution
from colbert_prf.search.candidates import StoredCandidates, find_candidates
from colbert_prf.search.first_pass import PrunedPass

DIM, NUM_DOCUMENTS = 16, 300
METHOD = ColbertPRF(feedback_docs=3, clusters=8, expansion_vectors=5)


@pytest.fixture(scope="module")
def documents() -> list[tuple[str, EncodedDocument]]:
    random = np.random.default_rng(3)
    made = []
    for number in range(NUM_DOCUMENTS):
        vectors = random.standard_normal((random.integers(1, 30), DIM)).astype(np.float32)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        token_ids = random.integers(0, 50, len(vectors), dtype=np.int32)
        made.append((f"d{number}", EncodedDocument(token_ids, vectors)))
    return made


@pytest.fixture(scope="module", params=[(4, 1), (4, 3), (16, 1)], ids=str)
def searcher(tmp_path_factory, documents, request) -> Searcher:
    """Over indexes of one segment, or of several."""
    bits, num_segments = request.param
    folder, size = tmp_path_factory.mktemp("passes") / "my.index", NUM_DOCUMENTS // num_segments
    index = Index.create_from_vectors(folder, documents[:size], bits=bits, vocabulary_size=50, progress=False)
    for start in range(size, NUM_DOCUMENTS, size):
        index.add_vectors(documents[start : start + size])
    return Searcher(index)


def asked(seed: int) -> EncodedQuery:
    vectors = np.random.default_rng(seed).standard_normal((5, DIM)).astype(np.float32)
    return EncodedQuery(np.arange(5, dtype=np.int32), vectors / np.linalg.norm(vectors, axis=1, keepdims=True))


@pytest.fixture(scope="module")
def query() -> EncodedQuery:
    return asked(4)


def learned(ranking: Ranking) -> list[tuple[int, float]]:
    return [(vector.token_id, vector.weight) for vector in ranking.expansion.vectors]


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_learning_early_is_learning_from_the_first_pass(searcher, threads, monkeypatch):
    """Where so few documents are scored early, often another turns out to be better: then it learns again."""
    monkeypatch.setattr(first_pass, "SCORED_EARLY", 15)
    wrong, snapshot = 0, searcher.index.snapshot
    for seed in range(20):
        before = searcher.search(asked(seed), k=200)
        expansion = METHOD.expand(asked(seed), before, searcher.index)
        after = searcher.search(asked(seed), k=200, threads=threads, feedback=METHOD)
        assert after.before.doc_ids == before.doc_ids
        assert [hit.score for hit in after.before] == [hit.score for hit in before]
        assert learned(after) == [(vector.token_id, vector.weight) for vector in expansion.vectors]
        budget = Budget(None, NUM_DOCUMENTS)
        candidates = find_candidates(snapshot, asked(seed), 200, budget)
        early = PrunedPass(candidates, 200, budget, early=3).best(3).positions
        wrong += snapshot.doc_ids_of(early) != before.doc_ids[:3]
    assert wrong or len(snapshot.segments) > 1


@pytest.mark.parametrize("rerank", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_the_ranking_is_the_same_whether_or_not_learning_overlaps(searcher, seed, rerank):
    """The second search learns from the documents the first one learned from, marked by hand, on one thread."""
    method = replace(METHOD, rerank=rerank)
    early = searcher.search(asked(seed), k=200, threads=2, feedback=method)
    late = searcher.search(asked(seed), k=200, threads=1, feedback=method, relevant=early.before.doc_ids[:3])
    assert learned(late) == learned(early)
    assert late.doc_ids == early.doc_ids
    assert [hit.score for hit in late] == [hit.score for hit in early]


def test_many_threads_may_search_with_feedback_at_once(searcher):
    def found(seed: int) -> list[tuple[str, float]]:
        return [(hit.doc_id, hit.score) for hit in searcher.search(asked(seed), k=100, feedback=METHOD)]

    alone = [found(seed) for seed in range(8)]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(found, list(range(8)) * 3)) == alone * 3


def test_k_means_runs_few_frames_below_a_search(searcher, documents, query, monkeypatch):
    depths, kmeans = [], kmeans_module.kmeans

    def counted(*arguments, **settings):
        frame, depth = sys._getframe(), 0
        while frame.f_code is not Searcher.search.__code__:
            frame, depth = frame.f_back, depth + 1
        depths.append(depth)
        return kmeans(*arguments, **settings)

    monkeypatch.setattr(kmeans_module, "kmeans", counted)
    for other in (searcher, Searcher(MemoryIndex.create_from_vectors(documents))):
        other.search(query, feedback=METHOD)
    assert len(depths) >= 2
    assert max(depths) <= 8


def test_a_ranking_does_not_keep_its_first_pass(searcher, query, monkeypatch):
    """Whoever collects rankings keeps k positions and scores of each, not every candidate."""
    kept, original = [], PrunedPass.__init__

    def watched(self, candidates, *arguments, **settings):
        assert isinstance(candidates, StoredCandidates)
        original(self, candidates, *arguments, **settings)
        kept.extend(map(weakref.ref, (self, candidates, candidates.stored.centroid_bytes.values)))

    monkeypatch.setattr(PrunedPass, "__init__", watched)
    ranking = searcher.search(query, k=10, feedback=METHOD)
    gc.collect()
    assert [reference() for reference in kept] == [None] * 3
    assert ranking.before.doc_ids == searcher.search(query, k=10).doc_ids


def test_stages_stand_in_the_order_they_begin_in(searcher, query):
    stages = list(searcher.search(query, k=200, feedback=METHOD).timings)
    assert stages == [
        "centroids",
        "candidates",
        "interaction",
        "maxsim",
        "expansion",
        "centroids again",
        "candidates again",
        "interaction again",
        "maxsim again",
        "hits",
    ]


def test_a_stage_that_goes_on_later_counts_once(monkeypatch):
    clock = iter([0.0, 1.0, 4.0, 10.0])  # from 0 to 1, and from 4 to 10
    monkeypatch.setattr(budgets, "perf_counter", lambda: next(clock))
    execution = Execution()
    for _ in range(2):
        with execution.stage("maxsim"):
            pass
    assert execution.timings == {"maxsim": 7.0}


def test_fewer_documents_than_are_learned_from(searcher, query):
    ranking = searcher.search(
        query, k=1, allowed=["d7"], feedback=ColbertPRF(feedback_docs=3, clusters=2, expansion_vectors=1)
    )
    assert ranking.doc_ids == ["d7"]
    assert ranking.expansion.feedback == ("d7",)


def test_marked_documents_are_learned_from_whatever_is_found(searcher, query):
    method = ColbertPRF(feedback_docs=3, clusters=2, expansion_vectors=2)
    ranking = searcher.search(query, k=10, relevant=["d9"], feedback=method)
    expansion = method.expand(query, ["d9"], searcher.index)
    assert learned(ranking) == [(vector.token_id, vector.weight) for vector in expansion.vectors]
    twice = searcher.search(query, k=10, relevant=["d9", "d9"], feedback=method)
    assert learned(twice) == learned(ranking)


def test_documents_marked_as_not_relevant_are_not_learned_from(searcher, query):
    best = searcher.search(query, k=10).doc_ids
    ranking = searcher.search(query, k=10, non_relevant=[best[0], best[2]], feedback=METHOD)
    assert ranking.expansion.feedback == (best[1], best[3], best[4])
    with pytest.raises(InputError, match="the index has no document 'nothing'"):
        searcher.search(query, k=10, non_relevant=["nothing"], feedback=METHOD)


def test_an_error_while_learning_leaves_the_searcher_as_it_was(searcher, query):
    before = searcher.search(query, k=200)
    heavy = EncodedQuery(query.token_ids, query.vectors, np.full(5, 1e30, np.float32))
    for _ in range(5):
        with pytest.raises(InputError, match="the vectors added weigh more than a float32 holds"):
            searcher.search(heavy, k=200, feedback=ColbertPRF(weight=1e20))
    assert searcher.search(query, k=200).doc_ids == before.doc_ids


def test_the_re_ranker_scores_what_the_first_pass_scored(searcher, query):
    """Its documents are all those a search without feedback scores exactly, in a new order."""
    before = searcher.search(query, k=250, rescore=250)
    again = searcher.search(query, k=250, feedback=replace(METHOD, rerank=True), rescore=250)
    assert sorted(again.doc_ids) == sorted(before.doc_ids)
    assert again.doc_ids != before.doc_ids
    assert again.before.doc_ids == before.doc_ids
