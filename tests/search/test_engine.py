"""Search over the index on disk, against exact scores of the decoded vectors."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from colbert_prf import ColbertPRF, EncodedDocument, EncodedQuery, Index, InputError, Searcher

NUM_DOCUMENTS, VOCABULARY = 300, 100
TOLERANCE = {2: 0.05, 4: 0.05, 16: 1e-3}
"""Below 16 bits the query is rounded to bytes."""


def document(seed: int, dim: int) -> EncodedDocument:
    """A few vectors near the axes, so that there are clusters to find."""
    random = np.random.default_rng(seed)
    length = int(random.integers(2, 12))
    vectors = np.eye(dim, dtype=np.float32)[random.integers(0, dim, length)]
    vectors = vectors + 0.1 * random.standard_normal((length, dim)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return EncodedDocument(random.integers(0, VOCABULARY, length).astype(np.int32), vectors)


def query(seed: int, dim: int) -> EncodedQuery:
    random = np.random.default_rng(seed)
    encoded = document(10_000 + seed, dim)
    return EncodedQuery(encoded.token_ids, encoded.vectors, random.random(len(encoded), dtype=np.float32))


def make_index(path, dim: int = 48, bits: int = 4) -> Index:
    documents = [(f"d{i}", document(i, dim), f"text {i}", {"even": i % 2 == 0}) for i in range(NUM_DOCUMENTS)]
    return Index.create_from_vectors(path, documents, bits=bits, vocabulary_size=VOCABULARY, texts=True, progress=False)


@pytest.fixture(scope="module")
def index(tmp_path_factory) -> Index:
    return make_index(tmp_path_factory.mktemp("engine") / "my.index")


@pytest.fixture(scope="module")
def searcher(index) -> Searcher:
    return Searcher(index, threads=2)


def exact(index: Index, asked: EncodedQuery) -> dict[str, float]:
    scores = index.score(asked)
    return {index.doc_id(p): float(scores[p]) for p in range(index.num_positions) if np.isfinite(scores[p])}


@pytest.mark.parametrize("dim", [3, 48, 96, 768])
@pytest.mark.parametrize("bits", [2, 4, 16])
def test_with_nothing_pruned_scores_are_exact(tmp_path, dim, bits):
    index = make_index(tmp_path / "my.index", dim, bits)
    for seed in range(3):
        asked = query(seed, dim)
        ranking = Searcher(index).search(asked, k=NUM_DOCUMENTS, rescore=NUM_DOCUMENTS)
        expected = exact(index, asked)
        assert set(ranking.doc_ids) == set(expected)
        tolerance = TOLERANCE[bits] * float(asked.weights.sum())
        assert [hit.score for hit in ranking] == pytest.approx([expected[d] for d in ranking.doc_ids], abs=tolerance)
        assert [hit.score for hit in ranking] == sorted((hit.score for hit in ranking), reverse=True)


def test_pruning_keeps_the_best(searcher, index):
    for seed in range(10):
        asked = query(seed, 48)
        expected = exact(index, asked)
        best = sorted(expected, key=expected.__getitem__, reverse=True)[:5]
        found = searcher.search(asked, k=5, rescore=60).doc_ids
        assert len(set(best) & set(found)) >= 4


def test_hits_carry_texts_and_stages_their_times(searcher):
    ranking = searcher.search(query(0, 48), k=3)
    assert [hit.text for hit in ranking] == [f"text {hit.doc_id.removeprefix('d')}" for hit in ranking]
    assert list(ranking.timings) == ["centroids", "candidates", "interaction", "maxsim", "hits"]
    assert all(seconds >= 0 for seconds in ranking.timings.values())


@pytest.mark.parametrize("probes", [None, 1, 3])
@pytest.mark.parametrize("k", [1, 20, NUM_DOCUMENTS, 10 * NUM_DOCUMENTS])
def test_k_results_come_back_when_k_exist(searcher, k, probes):
    assert len(searcher.search(query(1, 48), k=k, probes=probes)) == min(k, NUM_DOCUMENTS)


def test_probing_everything_is_the_same_as_not_probing(searcher, index):
    asked = query(2, 48)
    everything = searcher.search(asked, k=50, rescore=100)
    probed = searcher.search(asked, k=50, rescore=100, probes=index.codec.num_centroids)
    assert probed.hits == everything.hits


@pytest.mark.parametrize("probes", [None, 1])
def test_only_allowed_documents_are_found(searcher, probes):
    allowed = [f"d{i}" for i in range(0, NUM_DOCUMENTS, 10)]
    found = searcher.search(query(3, 48), k=20, allowed=allowed, probes=probes).doc_ids
    assert len(found) == 20
    assert set(found) <= set(allowed)


def test_a_filter_leaves_scores_alone(searcher):
    asked = query(4, 48)
    whole = {hit.doc_id: hit.score for hit in searcher.search(asked, k=NUM_DOCUMENTS)}
    for hit in searcher.search(asked, k=10, allowed=[f"d{i}" for i in range(100)]):
        assert hit.score == whole[hit.doc_id]


def test_metadata_can_be_asked(searcher):
    found = searcher.search(query(5, 48), k=200, where=lambda metadata: metadata["even"])
    assert len(found) == NUM_DOCUMENTS // 2
    assert all(int(doc_id[1:]) % 2 == 0 for doc_id in found.doc_ids)
    both = searcher.search(query(5, 48), k=9, allowed=["d1", "d2", "d4"], where=lambda metadata: metadata["even"])
    assert set(both.doc_ids) == {"d2", "d4"}


def test_threads_change_nothing(index):
    asked = query(6, 48)
    rankings = [Searcher(index).search(asked, k=100, threads=threads) for threads in (1, 2, 5)]
    assert rankings[0].hits == rankings[1].hits == rankings[2].hits


def test_many_threads_may_search_at_once(searcher):
    alone = [searcher.search(query(seed, 48), k=20).hits for seed in range(30)]
    with ThreadPoolExecutor(6) as pool:
        together = pool.map(lambda seed: searcher.search(query(seed, 48), k=20).hits, range(30))
        assert list(together) == alone


def test_a_search_does_not_change_the_next(searcher):
    before = searcher.search(query(7, 48), k=100)
    searcher.search(query(7, 48), k=1, probes=1, rescore=1)
    assert searcher.search(query(7, 48), k=100).hits == before.hits


@pytest.mark.parametrize("bits", [2, 4, 16])
def test_an_explanation_adds_up_to_the_score(tmp_path, bits):
    searcher = Searcher(make_index(tmp_path / "my.index", bits=bits))
    asked = query(8, 48)
    for hit in searcher.search(asked, k=5):
        explanation = searcher.explain(asked, hit.doc_id)
        assert explanation.score == pytest.approx(hit.score, abs=1e-3)
        assert [match.query_token_id for match in explanation.matches] == asked.token_ids.tolist()
        position = int(searcher.index.positions([hit.doc_id])[0])
        tokens = searcher.index.token_ids(position)
        assert all(tokens[match.position] == match.token_id for match in explanation.matches)


def test_a_document_without_vectors_has_nothing_to_explain(tmp_path):
    nothing = EncodedDocument(np.empty(0, np.int32), np.empty((0, 48), np.float32))
    index = Index.create_from_vectors(tmp_path / "i", [("none", nothing), ("some", document(1, 48))], progress=False)
    with pytest.raises(InputError, match="document 'none' has no vectors"):
        Searcher(index).explain(query(0, 48), "none")


def test_feedback_passes_over_a_segment_without_vectors(tmp_path):
    index = make_index(tmp_path / "my.index")
    expected = Searcher(index).search(query(0, 48), feedback=ColbertPRF()).doc_ids
    nothing = EncodedDocument(np.empty(0, np.int32), np.empty((0, 48), np.float32))
    index.add_vectors([("none", nothing, "")])
    assert Searcher(index).search(query(0, 48), feedback=ColbertPRF()).doc_ids == expected


def test_after_changes_the_ranking_is_that_of_a_fresh_index(tmp_path):
    index = make_index(tmp_path / "changed.index")
    index.delete([f"d{i}" for i in range(0, 100, 3)])
    index.add_vectors([(f"n{i}", document(500 + i, 48), "") for i in range(40)])
    index.delete(["n3", "d1"])
    live = [index.doc_id(p) for p in range(index.num_positions) if index.snapshot.live[p]]
    source = {f"d{i}": document(i, 48) for i in range(NUM_DOCUMENTS)} | {
        f"n{i}": document(500 + i, 48) for i in range(40)
    }
    fresh = Index.create_from_vectors(
        tmp_path / "fresh.index",
        [(doc_id, source[doc_id]) for doc_id in live],
        bits=4,
        vocabulary_size=VOCABULARY,
        codec=index.codec,
        progress=False,
    )
    for seed in range(5):
        expected = [(hit.doc_id, hit.score) for hit in Searcher(fresh).search(query(seed, 48), k=60)]
        for _ in range(2):  # before and after merging
            assert [(hit.doc_id, hit.score) for hit in Searcher(index).search(query(seed, 48), k=60)] == expected
            index.merge()


def test_an_index_without_documents_finds_none(tmp_path):
    index = make_index(tmp_path / "my.index")
    index.delete([f"d{i}" for i in range(NUM_DOCUMENTS)])
    for _ in range(2):  # before merging there is a segment, afterwards none
        assert Searcher(index).search(query(0, 48), k=3).doc_ids == []
        assert Searcher(index).search(query(0, 48), k=3, probes=1).doc_ids == []
        index.merge()


def test_bad_input_is_refused(searcher):
    asked = query(9, 48)
    for name in ("k", "probes", "rescore", "threads"):
        with pytest.raises(InputError, match=f"{name} must be at least 1, found 0"):
            searcher.search(asked, **{name: 0})
    with pytest.raises(InputError, match="no document 'nowhere'"):
        searcher.search(asked, allowed=["nowhere"])
    with pytest.raises(InputError, match="no document 'nowhere'"):
        searcher.explain(asked, "nowhere")
    with pytest.raises(InputError, match="query has vectors of dim 16, the index of dim 48"):
        searcher.search(query(0, 16))
    with pytest.raises(InputError, match="the index has no encoder"):
        searcher.search("a text")
