"""What the second pass leaves out changes nothing."""

from __future__ import annotations

import numpy as np
import pytest

from colbert_prf import ColbertPRF, EncodedDocument, EncodedQuery, Index, Searcher, search, second_pass
from colbert_prf.engine import Effort, first_pass
from colbert_prf.second_pass import gains_of

DIM, NUM_DOCUMENTS, RESCORED = 32, 400, 30


@pytest.fixture(scope="module")
def deep(tmp_path_factory) -> Index:
    random = np.random.default_rng(7)
    documents = []
    for number in range(NUM_DOCUMENTS):
        vectors = random.standard_normal((random.integers(1, 9), DIM)).astype(np.float32)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        documents.append((f"d{number}", EncodedDocument(np.arange(len(vectors), dtype=np.int32), vectors)))
    folder = tmp_path_factory.mktemp("second") / "my.index"
    index = Index.create_from_vectors(folder, documents[:300], bits=4, vocabulary_size=16, progress=False)
    index.add_vectors(documents[300:])
    index.delete(["d5", "d350"])
    return index


@pytest.fixture
def snapshot(deep):
    return deep.snapshot


def query(seed: int, count: int, weight: float) -> EncodedQuery:
    vectors = np.random.default_rng(seed).standard_normal((count, DIM)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return EncodedQuery(np.arange(count, dtype=np.int32), vectors, np.full(count, weight, dtype=np.float32))


def all_beside(approximate, places, *_):
    return np.setdiff1d(np.flatnonzero(np.isfinite(approximate)), places)


@pytest.mark.parametrize("weight", [0.01, 0.1, 1.0])
def test_documents_without_hope_are_left_out_without_loss(snapshot, monkeypatch, weight):
    for seed in range(5):
        first = first_pass(snapshot, query(seed, 6, 1.0), 10, Effort(None, RESCORED))
        gains = gains_of(snapshot, query(100 + seed, 4, weight), first.positions, Effort(None, RESCORED))
        pruned = second_pass.find_again(snapshot, first, gains, 10, Effort(None, RESCORED))
        with monkeypatch.context() as patch:
            patch.setattr(second_pass, "_hopeful", all_beside)
            whole = second_pass.find_again(snapshot, first, gains, 10, Effort(None, RESCORED))
        assert pruned.positions.tolist() == whole.positions.tolist()
        assert pruned.scores == pytest.approx(whole.scores)


def test_light_vectors_leave_few_documents_with_hope(snapshot):
    first = first_pass(snapshot, query(0, 6, 1.0), 10, Effort(None, RESCORED))
    estimates = np.concatenate(first.approximate)
    best = np.sort(estimates)[-RESCORED]
    gain = first.table[:, :4].max(axis=0).sum()
    left, nothing = [], np.empty(0, np.int64)
    for weight in (0.0, 0.1, 10):
        # The worst of the best got half of what any document can get.
        worst = best + weight * gain / 2
        hopeful = second_pass._hopeful(estimates, nothing, worst, first.values, query(1, 4, weight))
        assert hopeful.tolist() == np.flatnonzero(estimates >= best - weight * gain / 2 - 1e-3).tolist()
        left.append(len(hopeful))
        beside = second_pass._hopeful(estimates, first.places, worst, first.values, query(1, 4, weight))
        assert beside.tolist() == sorted(set(hopeful) - set(first.places))
    assert RESCORED <= left[0] < left[1] < left[2] == np.count_nonzero(np.isfinite(estimates))


def test_a_reranker_goes_as_deep_as_it_is_told(deep, monkeypatch):
    """With ``k`` of 5 a first pass scores 200 documents exactly, fewer than are to be ranked anew."""
    monkeypatch.setattr(search, "default_rescore_again", lambda *_: NUM_DOCUMENTS)
    searcher, feedback = (
        Searcher(deep),
        ColbertPRF(rerank=True, rerank_depth=380, clusters=4, expansion_vectors=4, beta=3),
    )
    raised = 0
    for seed in range(20):
        found = searcher.search(query(seed, 6, 1.0), 5, feedback=feedback)
        everything = searcher.search(query(seed, 6, 1.0), 5, feedback=feedback, rescore=NUM_DOCUMENTS)
        assert found.doc_ids == everything.doc_ids
        raised += len(set(found.doc_ids) - set(searcher.search(query(seed, 6, 1.0), 200).doc_ids))
    assert raised


def test_the_reranker_scores_exactly_what_may_be_wanted(snapshot):
    first = first_pass(snapshot, query(3, 6, 1.0), 10, Effort(None, 200))
    gains = gains_of(snapshot, query(103, 4, 0.1), first.positions, Effort(None, 200))
    everything = second_pass.score_again(snapshot, first, gains, 10, Effort(None, 200))
    some = second_pass.score_again(snapshot, first, gains, 10, Effort(None, 60))
    assert some.positions.tolist() == everything.positions.tolist()
    assert some.scores == pytest.approx(everything.scores)
