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
    engine,
    passes,
    search,
)
from colbert_prf.kernels.parallel import ALONE

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


def test_what_was_learned_from_the_wrong_documents_is_learned_again(searcher, query, monkeypatch):
    right, early_documents = found(searcher, query, 2), []

    def too_early(*arguments, early, **settings):
        worst = engine.best_of(engine.first_pass(*arguments, **settings).scored, NUM_DOCUMENTS)
        wrong = engine.Found(worst.positions[::-1][: early.count], worst.scores[::-1][: early.count])
        early_documents.append(wrong.positions.tolist())
        misled = replace(early, use=lambda _, positions: early.use(wrong, positions))
        return engine.first_pass(*arguments, **settings, early=misled)

    monkeypatch.setattr(passes, "first_pass", too_early)
    again = found(searcher, query, 2)
    assert len(early_documents[0]) == 3
    assert learned(again) == learned(right)
    assert again.doc_ids == right.doc_ids


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
def test_what_is_begun_early_is_used(searcher, query, monkeypatch, rerank):
    """The second pass looks at the added vectors once, while the first is not over."""
    stages, original = [], passes.gains_of

    def counted(*arguments, within=None):
        stages.append(within)
        return original(*arguments, within=within)

    monkeypatch.setattr(passes, "gains_of", counted)
    feedback = ColbertPRF(clusters=8, expansion_vectors=5, rerank=rerank)
    early = searcher.search(query, k=20, feedback=feedback)
    assert stages == ["maxsim"]
    monkeypatch.setattr(passes.CompressedPasses, "first_and_learned", passes.Passes.first_and_learned)
    late = searcher.search(query, k=20, feedback=feedback)
    assert stages == ["maxsim", None]
    assert late.doc_ids == early.doc_ids
    assert [hit.score for hit in late] == [hit.score for hit in early]


def test_the_re_ranker_scores_what_the_first_pass_scored(searcher, query):
    """Its documents are all those a search without feedback scores exactly, in a new order."""
    before = searcher.search(query, k=250, rescore=250)
    again = searcher.search(query, k=250, feedback=replace(METHOD, rerank=True), rescore=250)
    assert sorted(again.doc_ids) == sorted(before.doc_ids)
    assert again.doc_ids != before.doc_ids
    assert again.before.doc_ids == before.doc_ids


@pytest.fixture
def rough(monkeypatch):
    """Of 300 documents 160 are scored exactly before a ReRanker."""
    monkeypatch.setattr(search, "default_exact", lambda k: 160)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_rough_first_pass_is_as_good_as_an_exact_one_at_the_top(searcher, query, threads, rough):
    again = searcher.search(query, k=200, threads=threads, feedback=replace(METHOD, rerank=True))
    exact = searcher.search(query, k=200, threads=threads, feedback=replace(METHOD, rerank=True), rescore=300)
    assert again.doc_ids[:50] == exact.doc_ids[:50]
    # What was not scored exactly may be found all the same, and then has an exact score of the original vectors.
    assert len(again) == 200
    scores = {hit.doc_id: hit.score for hit in exact}
    assert [hit.score for hit in again if hit.doc_id in scores] == pytest.approx(
        [scores[hit.doc_id] for hit in again if hit.doc_id in scores], abs=0.05
    )


def test_what_was_before_a_rough_pass_is_a_search_without_feedback(searcher, query, rough):
    before = searcher.search(query, k=200)
    again = searcher.search(query, k=200, feedback=replace(METHOD, rerank=True))
    assert again.before.doc_ids == before.doc_ids
    assert [hit.score for hit in again.before] == [hit.score for hit in before]


def test_only_a_re_ranker_of_all_may_be_rough(searcher, query, rough, monkeypatch):
    asked = []
    original = passes.Early

    def early(count, use, exact):
        asked.append(exact)
        return original(count, use, exact)

    monkeypatch.setattr(passes, "Early", early)
    reranker = replace(METHOD, rerank=True)
    searcher.search(query, k=200, feedback=reranker)
    searcher.search(query, k=200, feedback=METHOD)
    searcher.search(query, k=200, feedback=replace(reranker, rerank_depth=250))
    searcher.search(query, k=200, feedback=reranker, rescore=250)
    assert asked == [None if searcher.index.bits == 16 else 160, None, None, None]


def test_a_first_pass_made_rough_is_that_of_a_search(searcher, query):
    """With :meth:`FirstPass.roughly` parameter studies do what a search does."""
    tried, snapshot = effort.Effort(None, NUM_DOCUMENTS), searcher.index.snapshot
    whole = engine.first_pass(snapshot, query, 100, tried)
    early = engine.Early(3, lambda few, positions: None, 180)
    rough = engine.first_pass(snapshot, query, 100, tried, early=early)
    same = whole.roughly(180)
    assert 110 <= len(rough.rough) <= 120  # some approximate scores are equal
    assert same.rough.tolist() == rough.rough.tolist()
    assert same.scores.tolist() == rough.scores.tolist()
    estimates = np.concatenate(whole.approximate)[whole.places]
    assert estimates[rough.rough].max() < np.sort(estimates)[-180]
    missed = np.sort(np.delete(whole.scores - estimates, rough.rough))
    missed = missed[len(missed) // 2]
    assert rough.scores[rough.rough] == pytest.approx(estimates[rough.rough] + missed, abs=1e-5)
    assert np.isnan(rough.known[rough.rough]).all()
    for exact in (rough.exactly(ALONE), same.exactly(ALONE), whole.exactly(ALONE)):
        assert exact.scores.tolist() == whole.scores.tolist()
        assert not np.isnan(exact.known).any()
