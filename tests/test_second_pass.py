"""What the second pass leaves out changes nothing."""

from __future__ import annotations

import numpy as np
import pytest

from colbert_prf import ColbertPRF, EncodedDocument, EncodedQuery, Expansion, Index, Searcher, passes, second_pass
from colbert_prf.effort import Effort
from colbert_prf.engine import first_pass
from colbert_prf.second_pass import Depths, default_depths, gains_of
from colbert_prf.types import ExpansionVector

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


def find_again(snapshot, first, gains):
    return second_pass.find_again(snapshot, first, gains, 10, Depths(RESCORED, RESCORED), Effort(None, RESCORED))


def all_beside(approximate, places, _):
    return np.setdiff1d(np.flatnonzero(np.isfinite(approximate)), places)


@pytest.mark.parametrize("weight", [0.01, 0.1, 1.0])
def test_documents_without_hope_are_left_out_without_loss(snapshot, monkeypatch, weight):
    for seed in range(5):
        first = first_pass(snapshot, query(seed, 6, 1.0), 10, Effort(None, RESCORED))
        gains = gains_of(snapshot, query(100 + seed, 4, weight), first.positions, Effort(None, RESCORED))
        pruned = find_again(snapshot, first, gains)
        with monkeypatch.context() as patch:
            patch.setattr(second_pass, "_hopeful", all_beside)
            whole = find_again(snapshot, first, gains)
        assert pruned.positions.tolist() == whole.positions.tolist()
        assert pruned.scores == pytest.approx(whole.scores)


def test_light_vectors_leave_few_documents_with_hope(snapshot):
    first = first_pass(snapshot, query(0, 6, 1.0), 10, Effort(None, RESCORED))
    estimates = np.concatenate(first.approximate)
    best = np.sort(estimates)[-RESCORED]
    gain = snapshot.codec.scores(first.query.vectors)[:, :4].max(axis=0).sum()
    left, nothing = [], np.empty(0, np.int64)
    for weight in (0.0, 0.1, 10):
        # The worst of the best got half of what any document can get.
        least = best - weight * gain / 2
        hopeful = second_pass._hopeful(estimates, nothing, least)
        assert hopeful.tolist() == np.flatnonzero(estimates >= least - 1e-3).tolist()
        left.append(len(hopeful))
        beside = second_pass._hopeful(estimates, first.places, least)
        assert beside.tolist() == sorted(set(hopeful) - set(first.places))
    assert RESCORED <= left[0] < left[1] < left[2] == np.count_nonzero(np.isfinite(estimates))


@pytest.mark.parametrize("weight", [0.0, 0.1, 10])
def test_no_document_gains_more_than_the_most(snapshot, weight):
    everything, added = np.flatnonzero(snapshot.live), query(1, 4, weight)
    gains = gains_of(snapshot, added, everything, Effort(None, RESCORED))
    assert gains.most == pytest.approx(
        weight * snapshot.codec.scores(added.vectors)[:, :4].max(axis=0).sum(), abs=0.02 * weight
    )
    assert gains.estimates.max() <= gains.most + 1e-4


def test_a_reranker_goes_as_deep_as_it_is_told(deep, monkeypatch):
    """With ``k`` of 5 a first pass scores 200 documents exactly, fewer than are to be ranked anew."""
    monkeypatch.setattr(passes, "default_depths", lambda *_: Depths(NUM_DOCUMENTS, NUM_DOCUMENTS))
    searcher, feedback = (
        Searcher(deep),
        ColbertPRF(rerank=True, rerank_depth=380, clusters=4, expansion_vectors=4, weight=3),
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
    everything = second_pass.score_again(snapshot, first, gains, 10, Depths(200, 200), Effort(None, 200))
    some = second_pass.score_again(snapshot, first, gains, 10, Depths(60, 60), Effort(None, 200))
    assert some.positions.tolist() == everything.positions.tolist()
    assert some.scores == pytest.approx(everything.scores)


@pytest.mark.parametrize("pass_again", [second_pass.find_again, second_pass.score_again])
def test_below_the_best_the_part_of_the_added_vectors_is_an_estimate(snapshot, pass_again):
    """Exactly scored are the best by estimates and what the first pass did not score; all estimates rise alike."""
    effort = Effort(None, 200)
    first = first_pass(snapshot, query(3, 6, 1.0), 150, effort)
    gains = gains_of(snapshot, query(103, 4, 0.1), first.positions, effort)
    exact = pass_again(snapshot, first, gains, 150, Depths(180, 180), effort)
    mixed = pass_again(snapshot, first, gains, 150, Depths(180, 40), effort)
    exact_scores = dict(zip(exact.positions.tolist(), exact.scores.tolist(), strict=True))
    estimates = dict(zip(first.positions.tolist(), (first.scores + gains.estimates).tolist(), strict=True))
    best = sorted(estimates, key=estimates.__getitem__, reverse=True)[:40]
    raised = []
    for position, score in zip(mixed.positions.tolist(), mixed.scores.tolist(), strict=True):
        if position in best or position not in estimates:
            assert score == pytest.approx(exact_scores[position], abs=1e-5)
        else:
            raised.append(score - estimates[position])
    missed = np.median([exact_scores[position] - estimates[position] for position in best if position in exact_scores])
    assert len(raised) > 80
    assert raised == pytest.approx([raised[0]] * len(raised), abs=1e-4)
    assert raised[0] == pytest.approx(missed, abs=0.01)
    assert mixed.scores.tolist() == sorted(mixed.scores.tolist(), reverse=True)
    # Ids that were read while documents were scored are those of the documents.
    assert mixed.doc_ids == snapshot.doc_ids_of(mixed.positions)
    # The best twenty of forty scored exactly are those they should be.
    assert mixed.positions[:20].tolist() == exact.positions[:20].tolist()


@pytest.mark.parametrize(
    ("k", "share", "bits", "expected"),
    [
        (10, 1 / 11, 4, (100, 100)),
        (100, 1 / 11, 4, (190, 190)),
        (1000, 1 / 11, 4, (1090, 150)),
        (1000, 1 / 11, 16, (1090, 1090)),
        (1000, 0.15, 2, (1090, 675)),
        (1000, 0.25, 2, (1156, 1156)),
        (1000, 0.4, 2, (1400, 1400)),
    ],
)
def test_the_more_added_vectors_weigh_the_more_is_scored_exactly(k, share, bits, expected):
    weights = np.array([1 - share, share], np.float32)
    added = (ExpansionVector(9, ((9, 1.0),), 5.1, share),)
    expansion = Expansion(EncodedQuery(np.array([7, 9], np.int32), np.eye(2, dtype=np.float32), weights), added)
    assert default_depths(k, expansion, bits) == expected


def test_an_explicit_rescore_makes_every_score_exact(deep):
    searcher = Searcher(deep)
    feedback = ColbertPRF(clusters=4, expansion_vectors=4)
    found = searcher.search(query(1, 6, 1.0), 300, feedback=feedback, rescore=NUM_DOCUMENTS)
    scratch = searcher.search(found.query, 300, rescore=NUM_DOCUMENTS)
    assert found.doc_ids == scratch.doc_ids
    assert [hit.score for hit in found] == pytest.approx([hit.score for hit in scratch], abs=1e-4)
    default = searcher.search(query(1, 6, 1.0), 300, feedback=feedback)
    assert default.doc_ids[:100] == found.doc_ids[:100]
    assert default.doc_ids != found.doc_ids
