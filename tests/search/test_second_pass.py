"""The second pass gives what a search from scratch gives, and every score is exact, however deep the ranking."""

from __future__ import annotations

import numpy as np
import pytest

from colbert_prf import ColbertPRF, EncodedDocument, EncodedQuery, Expansion, Index, MemoryIndex, Searcher
from colbert_prf.search.budget import Budget, Execution, default_keep
from colbert_prf.search.candidates import StoredCandidates, find_candidates
from colbert_prf.search.first_pass import PrunedPass
from colbert_prf.search.scorer import StoredScorer
from colbert_prf.search.second_pass import rescored, search_again
from colbert_prf.search.shortlist import Shortlist
from colbert_prf.types import ExpansionVector

DIM, NUM_DOCUMENTS = 32, 1000
GONE = ["d5", "d950"]
METHODS = {
    "Ranker": ColbertPRF(feedback_docs=3, clusters=4, expansion_vectors=4),
    "Ranker, heavy": ColbertPRF(feedback_docs=3, clusters=4, expansion_vectors=4, weight=2),
    "ReRanker": ColbertPRF(feedback_docs=3, clusters=4, expansion_vectors=4, rerank=True),
    "ReRanker of the best": ColbertPRF(feedback_docs=3, clusters=4, expansion_vectors=4, rerank=True, rerank_depth=700),
}


@pytest.fixture(scope="module")
def documents() -> list[tuple[str, EncodedDocument]]:
    random = np.random.default_rng(7)
    made = []
    for number in range(NUM_DOCUMENTS):
        vectors = random.standard_normal((random.integers(1, 9), DIM)).astype(np.float32)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        made.append((f"d{number}", EncodedDocument(np.arange(len(vectors), dtype=np.int32), vectors)))
    return made


@pytest.fixture(scope="module", params=[2, 4, 16])
def index(tmp_path_factory, documents, request) -> Index:
    """Two segments, of which either has lost a document."""
    folder = tmp_path_factory.mktemp("second") / "my.index"
    made = Index.create_from_vectors(folder, documents[:900], bits=request.param, vocabulary_size=16, progress=False)
    made.add_vectors(documents[900:])
    made.delete(GONE)
    return made


@pytest.fixture(scope="module")
def memory(documents) -> MemoryIndex:
    return MemoryIndex(*zip(*((doc_id, document) for doc_id, document in documents if doc_id not in GONE), strict=True))


def query(seed: int, count: int = 6, weight: float = 1.0) -> EncodedQuery:
    vectors = np.random.default_rng(seed).standard_normal((count, DIM)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return EncodedQuery(np.arange(count, dtype=np.int32), vectors, np.full(count, weight, dtype=np.float32))


def expansion(seed: int, weight: float) -> Expansion:
    """Four vectors of equal weight added to the query of a seed."""
    original, added = query(seed), query(100 + seed, 4, weight)
    whole = original.with_vectors(added.token_ids, added.vectors, added.weights)
    return Expansion(whole, tuple(ExpansionVector(1, ((1, 1.0),), 1.0, weight) for _ in range(len(added))))


@pytest.mark.parametrize("method", METHODS)
def test_an_explanation_adds_up_to_the_score_at_every_rank(index, memory, method):
    for searcher in (Searcher(index), Searcher(memory)):
        ranking = searcher.search(query(1), 1000, feedback=METHODS[method])
        assert len(ranking) >= 700
        for rank in (0, 149, 150, 499, 500, len(ranking) - 1):
            hit = ranking.hits[rank]
            assert searcher.explain(ranking.query, hit.doc_id).score == pytest.approx(hit.score, abs=1e-4)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("threads", [1, 2])
def test_with_nothing_pruned_the_result_is_that_of_a_search_from_scratch(index, method, threads):
    searcher, feedback = Searcher(index, threads=threads), METHODS[method]
    for seed in range(3):
        found = searcher.search(query(seed), 300, feedback=feedback, rescore=NUM_DOCUMENTS)
        depth = feedback.rerank_depth
        allowed = None if depth is None else searcher.search(query(seed), depth, rescore=NUM_DOCUMENTS).doc_ids
        scratch = searcher.search(found.query, 300, rescore=NUM_DOCUMENTS, allowed=allowed)
        # Two documents whose scores differ in the last bit may change places.
        assert found.scores == pytest.approx(scratch.scores, abs=1e-5)
        assert found.to_run("q")["q"] == pytest.approx(scratch.to_run("q")["q"], abs=1e-5)


def first_pass(index, asked, rescore: int) -> tuple[StoredCandidates, Shortlist]:
    """The candidates and the shortlist of a pass that scores so many documents exactly."""
    budget = Budget(None, rescore)
    candidates = find_candidates(index.snapshot, asked, 10, budget)
    first = PrunedPass(candidates, 10, budget)
    first.finish()
    return candidates, first.shortlist


def added_to(candidates: StoredCandidates, wanted: Expansion) -> StoredScorer:
    return candidates.scorer_of(wanted.query.from_vector(wanted.num_original))


def unpruned(index, candidates, shortlist, added, wanted, keep: int) -> list[int]:
    """The best ten of the ``keep`` best estimates of all documents, none of them left out beforehand."""
    live = np.flatnonzero(index.snapshot.live)
    rows = np.searchsorted(live, shortlist.positions)
    estimates = candidates.approximate + np.median(shortlist.scores - candidates.approximate[rows])
    estimates[rows] = shortlist.scores
    estimates += added.estimates(live)
    kept = np.sort(np.argsort(-estimates, kind="stable")[:keep])
    exact = first_pass(index, wanted.query, NUM_DOCUMENTS)[1]
    assert exact.positions.tolist() == live.tolist()
    return live[kept[np.argsort(-exact.scores[kept], kind="stable")[:10]]].tolist()


@pytest.mark.parametrize("weight", [0.01, 0.1, 1.0, 3.0])
def test_documents_that_cannot_enter_are_left_out_without_loss(index, weight):
    """The first pass scores 30 of 998 documents."""
    unseen = 0
    for seed in range(5):
        wanted = expansion(seed, weight)
        candidates, shortlist = first_pass(index, query(seed), 30)
        added = added_to(candidates, wanted)
        positions = search_again(candidates, shortlist, added, 30, Execution()).top(10).positions
        assert positions.tolist() == unpruned(index, candidates, shortlist, added, wanted, 30)
        unseen += len(np.setdiff1d(positions, shortlist.positions))
    assert unseen or weight < 1


@pytest.mark.parametrize("method", METHODS)
def test_with_all_centroids_probed_it_is_a_search_over_everything(index, method):
    """The second pass has candidates of its own; with few probes their scores are exact all the same."""
    searcher, feedback = Searcher(index), METHODS[method]
    everything = searcher.search(query(2), 100, feedback=feedback, rescore=NUM_DOCUMENTS)
    probed = searcher.search(query(2), 100, feedback=feedback, rescore=NUM_DOCUMENTS, probes=NUM_DOCUMENTS)
    assert probed.doc_ids == everything.doc_ids
    few = searcher.search(query(2), 100, feedback=feedback, probes=1)
    assert len(few) == 100
    for hit in few.hits[::20]:
        assert searcher.explain(few.query, hit.doc_id).score == pytest.approx(hit.score, abs=1e-4)


def test_the_reranker_keeps_the_best_estimates_and_scores_them_exactly(index):
    """The shortlist has 200 documents; of these 60 are scored with the added vectors, or all."""
    wanted = expansion(3, 1.0)
    candidates, shortlist = first_pass(index, query(3), 200)
    added, exact = added_to(candidates, wanted), first_pass(index, wanted.query, NUM_DOCUMENTS)[1]
    scores = dict(zip(exact.positions.tolist(), exact.scores.tolist(), strict=True))
    estimates = shortlist.scores + added.estimates(shortlist.positions)
    for keep in (60, 200, 500):
        documents = rescored(shortlist, added, keep, Execution())
        expected = np.sort(shortlist.positions[np.argsort(-estimates, kind="stable")[:keep]])
        assert documents.positions.tolist() == expected.tolist()
        assert documents.scores.tolist() == pytest.approx([scores[p] for p in expected.tolist()], abs=1e-4)


def test_a_reranker_goes_as_deep_as_it_is_told(index):
    """With ``k`` of 5 a first pass scores 200 documents exactly, fewer than are to be ranked again."""
    searcher = Searcher(index)
    feedback = ColbertPRF(rerank=True, rerank_depth=900, feedback_docs=3, clusters=4, expansion_vectors=4, weight=3)
    raised = 0
    for seed in range(10):
        found = searcher.search(query(seed), 5, feedback=feedback)
        everything = searcher.search(query(seed), 5, feedback=feedback, rescore=NUM_DOCUMENTS)
        assert found.doc_ids == everything.doc_ids
        raised += len(set(found.doc_ids) - set(searcher.search(query(seed), 200).doc_ids))
    assert raised


@pytest.mark.parametrize(
    ("k", "share", "expected"), [(10, 1 / 11, 100), (100, 1 / 11, 190), (1000, 1 / 11, 1090), (1000, 0.4, 1400)]
)
def test_the_more_added_vectors_weigh_the_more_is_scored(k, share, expected):
    weights = np.array([1 - share, share], np.float32)
    added = (ExpansionVector(9, ((9, 1.0),), 5.1, share),)
    wanted = Expansion(EncodedQuery(np.array([7, 9], np.int32), np.eye(2, dtype=np.float32), weights), added)
    assert default_keep(k, wanted) == expected
