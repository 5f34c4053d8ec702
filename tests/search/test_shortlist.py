"""No document is lost: rare tokens are looked up, uncertain documents are scored exactly, and all of them if wanted."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace

import numpy as np
import pytest

from colbert_prf import ColbertPRF, EncodedDocument, EncodedQuery, Index, InputError, MemoryIndex, Searcher
from colbert_prf.demo import demo_passages
from colbert_prf.search.budget import Budget
from colbert_prf.search.candidates import find_candidates
from colbert_prf.search.first_pass import PrunedPass
from colbert_prf.search.shortlist import Shortlist, heaviest, least_worth_scoring, rare_tokens, token_weights

DIM, VOCABULARY, NUM_DOCUMENTS, RARE = 32, 400, 1200, 390
"""Tokens from ``RARE`` on stand in few documents."""
GONE = ["d5", "d1150"]
TOLERANCE = {2: 0.02, 4: 0.02, 16: 1e-3}
"""For each unit of weight: below 16 bits the query is rounded to bytes."""


def near(token: int, random: np.random.Generator, noise: float) -> np.ndarray:
    """A unit vector near that of a token."""
    vector = np.random.default_rng(token).standard_normal(DIM) + noise * random.standard_normal(DIM)
    return (vector / np.linalg.norm(vector)).astype(np.float32)


def document(number: int) -> EncodedDocument:
    random = np.random.default_rng(1000 + number)
    tokens = random.integers(0, RARE - 90, int(random.integers(1, 9))).tolist()
    tokens += [RARE + number % 1000 // 100] if number % 100 == 7 else []
    vectors = np.stack([near(token, random, 0.4) for token in tokens])
    return EncodedDocument(np.array(tokens, np.int32), vectors)


def query(tokens: list[int], seed: int = 0) -> EncodedQuery:
    random = np.random.default_rng(seed)
    vectors = np.stack([near(token, random, 0.2) for token in tokens])
    return EncodedQuery(np.array(tokens, np.int32), vectors, random.uniform(0.5, 1.5, len(tokens)).astype(np.float32))


@pytest.fixture(scope="module", params=[2, 4, 16])
def index(tmp_path_factory, request) -> Index:
    """Two segments, of which either has lost a document."""
    documents = [(f"d{i}", document(i), f"text {i}", {"even": i % 2 == 0}) for i in range(NUM_DOCUMENTS)]
    settings = {"bits": request.param, "vocabulary_size": VOCABULARY, "texts": True, "progress": False}
    made = Index.create_from_vectors(tmp_path_factory.mktemp("lost") / "my.index", documents[:1100], **settings)
    made.add_vectors(documents[1100:])
    made.delete(GONE)
    return made


def assert_best(index: Index, asked: EncodedQuery, found: list, allowed: np.ndarray | None = None) -> None:
    """The documents found are the best by ``Index.score``, in its order, but for what rounding the query moves."""
    scores = index.score(asked)
    if allowed is not None:
        scores = np.where(allowed, scores, -np.inf)
    tolerance = TOLERANCE[index.bits] * float(asked.weights.sum())
    expected = np.sort(scores)[::-1][: len(found)]
    positions = index.positions([hit.doc_id for hit in found])
    assert scores[positions] == pytest.approx(expected, abs=tolerance)
    assert [hit.score for hit in found] == pytest.approx(scores[positions], abs=tolerance)


@pytest.mark.parametrize("k", [1, 10, 100, NUM_DOCUMENTS])
def test_exact_is_the_order_of_index_score(index, k):
    searcher = Searcher(index)
    for seed in range(3):
        asked = query([3, 50, RARE + seed], seed)
        found = searcher.search(asked, k, exact=True)
        assert len(found) == min(k, NUM_DOCUMENTS - len(GONE))
        assert_best(index, asked, list(found))


def test_exact_obeys_filters(index):
    searcher, asked = Searcher(index), query([3, 50, RARE])
    even = np.array([index.metadata(p).get("even", False) for p in range(index.num_positions)])
    assert_best(index, asked, list(searcher.search(asked, 20, exact=True, where=lambda m: m["even"])), even)
    some = [f"d{i}" for i in range(700, NUM_DOCUMENTS, 3) if f"d{i}" not in GONE]
    allowed = np.zeros(index.num_positions, bool)
    allowed[index.positions(some)] = True
    assert_best(index, asked, list(searcher.search(asked, 20, exact=True, allowed=some)), allowed)


@pytest.mark.parametrize("rerank", [False, True])
def test_exact_holds_for_both_passes_of_feedback(index, rerank):
    feedback = ColbertPRF(feedback_docs=3, clusters=4, expansion_vectors=4, weight=1, rerank=rerank)
    found = Searcher(index).search(query([3, 50, RARE]), 30, exact=True, feedback=feedback)
    assert_best(index, found.encoded_query, list(found))
    assert_best(index, query([3, 50, RARE]), list(found.before))


@pytest.mark.parametrize("exact", [False, True])
def test_threads_change_nothing(index, exact):
    asked = query([3, RARE + 1])
    rankings = [Searcher(index).search(asked, 20, threads=threads, exact=exact) for threads in (1, 2, 5)]
    assert rankings[0].hits == rankings[1].hits == rankings[2].hits


def shortlist(
    index: Index, asked: EncodedQuery, k: int, budget: Budget, allowed: np.ndarray | None = None
) -> Shortlist:
    """The documents a first pass scores exactly."""
    first = PrunedPass(find_candidates(index.snapshot, asked, k, budget, allowed=allowed), k, budget)
    first.finish()
    return first.shortlist


def holders(index: Index, token: int) -> set[int]:
    """The live positions of the documents that have a token."""
    live = np.flatnonzero(index.snapshot.live).tolist()
    return {position for position in live if token in index.token_ids(position)}


@pytest.mark.parametrize("probes", [None, 1])
def test_every_document_with_a_rare_token_is_scored(index, probes):
    """The query's vectors are those of other tokens, so that nothing else leads to these documents."""
    for rare in (RARE, RARE + 1, RARE + 9):
        asked = query([3, 50, 51, 52])
        asked = EncodedQuery(np.array([rare, 50, 51, 52], np.int32), asked.vectors, asked.weights)
        assert 0 < len(holders(index, rare)) <= 200 / 4
        budget = Budget(probes, 5, widen=True)
        started = PrunedPass(find_candidates(index.snapshot, asked, 1, budget), 1, budget)
        assert holders(index, rare) <= set(started.shortlist.positions.tolist())
        assert len(started.shortlist.positions) < NUM_DOCUMENTS / 2


def test_deleted_and_excluded_documents_stay_out(index):
    asked, allowed = query([3, RARE]), np.zeros(index.num_positions, bool)
    allowed[:700] = True
    assert shortlist(index, asked, 10, Budget(None, 5, widen=True), allowed).positions.max() < 700
    everywhere = shortlist(index, asked, 10, Budget(None, 5, widen=True))
    assert index.snapshot.live[everywhere.positions].all()


def test_a_wider_shortlist_stays_in_order(index):
    """A second pass relies on ascending positions, their approximate scores, and exact scores."""
    budget = Budget(None, 5, widen=True)
    candidates = find_candidates(index.snapshot, query([3, RARE]), 10, budget)
    first = PrunedPass(candidates, 10, budget)
    first.finish()
    documents = first.shortlist
    assert len(documents.positions) > 5
    assert (np.diff(documents.positions) > 0).all()
    assert documents.approximate == pytest.approx(candidates.scorer.estimates(documents.positions))
    assert documents.scores == pytest.approx(candidates.scorer.scores(documents.positions))


@pytest.mark.parametrize("probes", [None, 2])
def test_parts_of_a_collection_have_the_candidates_of_the_whole(index, probes):
    """Each segment is treated for itself: masks that divide the collection by segments divide its candidates."""
    budget, asked, k = Budget(probes, 5, widen=True), query([3, 50, RARE]), 10
    whole = find_candidates(index.snapshot, asked, k, budget)
    parts = []
    for start, end in ((0, 1100), (1100, NUM_DOCUMENTS)):
        mask = np.zeros(index.num_positions, bool)
        mask[start:end] = True
        parts.append(find_candidates(index.snapshot, asked, k, budget, allowed=mask & index.snapshot.live))
    everything = whole.at_least(-np.inf, besides=np.empty(0, np.int64))
    for column in (0, 1):
        joined = np.concatenate([part.at_least(-np.inf, besides=np.empty(0, np.int64))[column] for part in parts])
        assert joined.tolist() == everything[column].tolist()
    rare = np.concatenate([part.with_rare_tokens().positions for part in parts])
    assert set(whole.with_rare_tokens().positions.tolist()) <= set(rare.tolist())


def test_token_weights_by_hand(index):
    """A token that is in n documents gives 1 / n to each; one that is too common gives nothing."""
    frequencies = index.snapshot.document_frequencies
    rare = rare_tokens(query([RARE, RARE + 1, RARE]), frequencies, index.num_positions)
    weights = np.concatenate(token_weights(index.snapshot, rare, [None, None]))
    for token in (RARE, RARE + 1):
        assert weights[sorted(holders(index, token))] == pytest.approx(1 / frequencies[token])
    assert weights[index.snapshot.live].sum() == pytest.approx(2, rel=1e-5)


def test_equal_weights_go_by_approximate_scores():
    weights, approximate = np.zeros(600, np.float32), np.arange(600, dtype=np.float32)
    weights[:300] = 0.5
    weights[7] = 1
    approximate[299] = -np.inf
    assert heaviest(weights, approximate).tolist() == [7, *range(100, 299)]


def test_the_margin_by_hand():
    """Errors 1 and 3: mean 2, deviation 1. The best is 9, so a document at 9 - 2 - 4.5 may be as good."""
    scores, approximate = np.array([9, 5, 50], np.float32), np.array([8, 2, 1], np.float32)
    assert least_worth_scoring(scores[:2], approximate[:2], 2.0, rank=1) == pytest.approx(2.5)
    assert least_worth_scoring(scores, approximate, 2.0, rank=2) == pytest.approx(2.5)  # the third is below the cut


def test_a_budget_that_is_given_is_kept(index):
    assert len(shortlist(index, query([3, RARE]), 5, Budget(None, 5)).positions) == 5


def test_a_folder_without_token_lists_opens_and_is_searched(index, tmp_path):
    """As an earlier release wrote it."""
    manifest = index.snapshot.manifest
    shutil.copytree(index.path, tmp_path / "old.index")
    names = ("token_lists", "token_list_offsets")
    files = [{name: info for name, info in one.files.items() if name not in names} for one in manifest.segments]
    segments = [replace(one, files=kept) for one, kept in zip(manifest.segments, files, strict=True)]
    replace(manifest, segments=tuple(segments)).write(tmp_path / "old.index" / "manifest.json")
    for path in (tmp_path / "old.index").glob("*/token_list*.npy"):
        path.unlink()
    old = Index.open(tmp_path / "old.index")
    old.verify()
    asked = query([3, 50, RARE])
    assert Searcher(old).search(asked, 20, exact=True).hits == Searcher(index).search(asked, 20, exact=True).hits
    assert len(Searcher(old).search(asked, 20)) == 20
    old.merge()
    assert all(segment.has_token_lists for segment in old.segments)
    old.verify()


def test_bad_input_is_refused(index):
    for other in ({"rescore": 5}, {"probes": 1}):
        with pytest.raises(InputError, match="exact=True scores every document: leave probes and rescore out"):
            Searcher(index).search(query([3]), exact=True, **other)
    if index.bits == 16:
        with pytest.raises(InputError, match="the preset 'paper' scores every candidate exactly: leave exact out"):
            Searcher(index, preset="paper", progress=False).search(query([3]), exact=True)


def test_an_index_in_memory_is_always_exact():
    memory = MemoryIndex.create_from_vectors((f"d{i}", document(i)) for i in range(50))
    searcher, asked = Searcher(memory), query([3, 50])
    assert searcher.search(asked, 10, exact=True).hits == searcher.search(asked, 10).hits


@pytest.fixture(scope="module")
def passages() -> list[tuple[str, str]]:
    return demo_passages()[::8]


@pytest.mark.parametrize("bits", [2, 4])
def test_rare_words_of_the_demo_corpus_are_found(tmp_path, passages, bits):
    """One-word queries: a fixed budget loses the best document of some, a search as it is of none."""
    words: dict[str, int] = {}
    for _, text in passages:
        for word in set(re.findall("[a-z]{4,}", text.lower())):
            words[word] = words.get(word, 0) + 1
    rare = sorted(word for word, count in words.items() if count == 1)
    asked = np.random.default_rng(0).choice(rare, 40, replace=False).tolist()
    searcher = Searcher(Index.create(tmp_path / "demo.index", passages, bits=bits, progress=False))
    lost, recalls = 0, []
    for word in asked:
        encoded = searcher.encode(word)
        best = searcher.search(encoded, 10, exact=True).doc_ids
        lost += best[0] not in searcher.search(encoded, 10, rescore=20).doc_ids
        found = searcher.search(encoded, 10).doc_ids
        assert best[0] in found
        recalls.append(len(set(best) & set(found)) / 10)
    assert lost
    assert np.mean(recalls) >= 0.97
