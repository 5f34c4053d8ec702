"""ColBERT-PRF: numbers worked out by hand, and laws; test_definition.py compares it with its definition."""

from __future__ import annotations

from math import log

import numpy as np
import pytest

from colbert_prf import ColbertPRF, EncodedDocument, EncodedQuery, Index, InputError, MemoryIndex, Searcher

EAST = EncodedQuery(np.array([1], dtype=np.int32), np.array([[1, 0]], dtype=np.float32))


def test_numbers_worked_out_by_hand(plane):
    """The best document of EAST is a, with two vectors of token 1 at 0 degrees and one of token 3 at 90.

    Two clusters: (1, 0) and (0, 1). The nearest three vectors of the first are the three of token 1 in a and b; those
    of the second are the two of token 3, then one of token 2 at 60 degrees. Of five documents token 1 is in two,
    token 3 in two: σ = ln(6/3) for both, so the order of the clusters decides, and a weight of 1 gives both
    together the weight of the query, a half each.
    """
    feedback = ColbertPRF(feedback_docs=1, clusters=2, expansion_vectors=2, neighbours=3, weight=1, clustering="kmeans")
    ranking = Searcher(plane).search(EAST, k=5, feedback=feedback)
    vectors = {vector.token_id: vector for vector in ranking.expansion.vectors}
    assert set(vectors) == {1, 3}
    assert vectors[1].likely == ((1, 1.0),)
    assert vectors[3].likely == ((3, pytest.approx(2 / 3)), (2, pytest.approx(1 / 3)))
    assert [vector.sigma for vector in vectors.values()] == pytest.approx([log(2), log(2)])
    assert [vector.weight for vector in vectors.values()] == pytest.approx([0.5, 0.5])
    assert vectors[1].sources == (("a", 0), ("a", 1))
    assert vectors[3].sources == (("a", 2),)
    assert ranking.expansion.feedback == ("a",)
    # a: 1 + .5·1 + .5·1; b: 1 + .5 + .5·sin 60; c: 0 + 0 + .5; d: cos 120·1.5 + .5·sin 120; e: cos 60·1.5 + .5·sin 60
    half = np.sqrt(3) / 4
    expected = {"a": 2, "b": 1.5 + half, "e": 0.75 + half, "c": 0.5, "d": half - 0.75}
    assert {hit.doc_id: hit.score for hit in ranking} == pytest.approx(expected, abs=1e-6)
    assert ranking.doc_ids == list(expected)
    assert ranking.before.doc_ids[:2] == ["a", "b"]


def test_beta_is_the_papers(plane):
    feedback = ColbertPRF(feedback_docs=1, clusters=2, expansion_vectors=2, neighbours=3, beta=0.5)
    expansion = Searcher(plane).search(EAST, feedback=feedback).expansion
    assert expansion.query.weights.tolist() == pytest.approx([1, 0.5 * log(2), 0.5 * log(2)])


def test_the_rarest_tokens_are_chosen(plane):
    """Token 1 is in two documents; without b in one, so then it beats token 3."""
    fewer = MemoryIndex(["a", "c"], [_document(plane, 0), _document(plane, 2)])
    feedback = ColbertPRF(feedback_docs=1, clusters=2, expansion_vectors=1, neighbours=2)
    assert [v.token_id for v in Searcher(fewer).search(EAST, feedback=feedback).expansion.vectors] == [1]


def _document(index: MemoryIndex, position: int):
    rows = slice(index.offsets[position], index.offsets[position + 1])
    return EncodedDocument(index.token_ids[rows], index.vectors[rows])


@pytest.mark.parametrize("bits", [None, 4])
@pytest.mark.parametrize("nothing", [{"weight": 0}, {"beta": 0}])
def test_vectors_that_weigh_nothing_leave_the_ranking_alone(memory, open_index, goldfish, bits, nothing):
    searcher = Searcher(memory if bits is None else open_index(bits))
    before = searcher.search(goldfish, k=12)
    after = searcher.search(goldfish, k=12, feedback=ColbertPRF(**nothing))
    assert after.doc_ids == before.doc_ids
    assert [hit.score for hit in after] == pytest.approx([hit.score for hit in before], abs=1e-5)


@pytest.mark.parametrize("bits", [2, 4, 16])
def test_with_nothing_pruned_the_second_pass_is_a_search_from_scratch(open_index, goldfish, bits):
    searcher = Searcher(open_index(bits))
    reused = searcher.search(goldfish, k=12, feedback=ColbertPRF())
    scratch = searcher.search(reused.expansion.query, k=12)
    assert reused.doc_ids == scratch.doc_ids
    assert [hit.score for hit in reused] == pytest.approx(
        [hit.score for hit in scratch], abs=2e-3 if bits < 16 else 1e-5
    )


def test_the_same_seed_gives_the_same_expansion_on_any_number_of_threads(open_index, goldfish):
    searcher = Searcher(open_index(4))
    one, *others = (searcher.search(goldfish, feedback=ColbertPRF(), threads=threads) for threads in (1, 2, 3))
    for other in others:
        assert np.array_equal(one.expansion.query.vectors, other.expansion.query.vectors)
        assert one.expansion.vectors == other.expansion.vectors
        assert one.doc_ids == other.doc_ids


def test_fewer_vectors_than_clusters(plane):
    expansion = Searcher(plane).search(EAST, feedback=ColbertPRF(feedback_docs=1)).expansion
    assert 1 <= len(expansion) <= 3


def test_special_tokens_count_and_are_dropped(memory, goldfish):
    feedback = ColbertPRF(clusters=100, expansion_vectors=100, clustering="kmeans")
    expansion = Searcher(memory).search(goldfish, feedback=feedback).expansion
    specials = memory.encoder.special_ids
    assert len(expansion)
    assert not any(token in specials for vector in expansion.vectors for token, _ in vector.likely)
    assert any(sum(p for _, p in vector.likely) < 1 for vector in expansion.vectors), "a neighbour is a special token"


def test_nothing_found_gives_an_empty_expansion(memory, goldfish):
    ranking = Searcher(memory).search(goldfish, allowed=[], feedback=ColbertPRF())
    assert ranking.doc_ids == []
    assert len(ranking.expansion) == 0


def test_filters_hold_in_both_passes(open_index, goldfish):
    allowed = ["fish4", "bank1", "war1", "fungus1"]
    ranking = Searcher(open_index(2)).search(goldfish, k=3, allowed=allowed, feedback=ColbertPRF())
    assert len(ranking) == 3
    assert set(ranking.doc_ids) <= set(allowed)
    assert set(ranking.expansion.feedback) <= set(allowed)


def test_a_deleted_document_is_passed_over(memory, encoder, goldfish, tmp_path):
    index = Index.create(tmp_path / "my.index", _texts(memory), encoder=encoder, bits=4, progress=False)
    ranking = Searcher(index).search(goldfish, k=12)
    gone = ranking.doc_ids[0]
    index.delete([gone])
    expansion = ColbertPRF(feedback_docs=2).expand(goldfish, ranking, index)
    assert expansion.feedback == tuple(ranking.doc_ids[1:3])
    assert gone not in Searcher(index).search(goldfish, k=12, feedback=ColbertPRF()).doc_ids
    with pytest.raises(InputError, match=f"the index has no document '{gone}'"):
        ColbertPRF().expand(goldfish, [gone], index)


def _texts(memory):
    return zip(memory.doc_ids, memory.texts, strict=True)


def test_a_reranker_keeps_the_documents_of_the_first_pass(memory, open_index, goldfish):
    for index in (memory, open_index(4)):
        ranking = Searcher(index).search(goldfish, k=4, feedback=ColbertPRF(rerank=True, rerank_depth=4))
        assert sorted(ranking.doc_ids) == sorted(ranking.before.doc_ids)
        scores = dict(zip(index_ids(index), index.score(ranking.expansion.query), strict=True))
        assert [hit.score for hit in ranking] == pytest.approx([scores[d] for d in ranking.doc_ids], abs=5e-3)


def index_ids(index) -> list[str]:
    return [index.doc_id(position) for position in range(index.num_positions)]


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"clusters": 0, "expansion_vectors": 1}, "clusters must be a whole number of at least 1, found 0"),
        ({"feedback_docs": 0}, "feedback_docs must be a whole number of at least 1, found 0"),
        ({"neighbours": 0}, "neighbours must be a whole number of at least 1, found 0"),
        ({"neighbours": 10**9}, "neighbours must be at most 10,000, found 1000000000"),
        ({"clusters": 10**30}, "clusters must be at most 2,147,483,647, found 1"),
        ({"feedback_docs": 10**30}, "feedback_docs must be at most 2,147,483,647, found 1"),
        ({"expansion_vectors": 10**30}, "expansion_vectors must be at most 2,147,483,647, found 1"),
        ({"rerank_depth": 2**31}, "rerank_depth must be at most 2,147,483,647, found 2147483648"),
        ({"rerank_depth": 0}, "rerank_depth must be a whole number of at least 1, found 0"),
        ({"feedback_docs": 2.5}, "feedback_docs must be a whole number of at least 1, found 2.5"),
        ({"push": True}, "push must be a number of at least 0, found True"),
        ({"clustering": "dbscan"}, "clustering must be one of .*, found 'dbscan'"),
        ({"weighting": "bm25"}, "weighting must be one of .*, found 'bm25'"),
        ({"compat": "thesis"}, "compat must be one of .*, found 'thesis'"),
    ],
)
def test_bad_parameters_are_refused(parameters, message):
    with pytest.raises(InputError, match=message):
        ColbertPRF(**parameters)


def test_weights_that_no_float32_holds_are_refused(memory, goldfish):
    heavy = EncodedQuery(goldfish.token_ids, goldfish.vectors, np.full(len(goldfish), 1e30, np.float32))
    with pytest.raises(InputError, match=r"with weight=1e\+20 the vectors added weigh more than a float32 holds"):
        Searcher(memory).search(heavy, feedback=ColbertPRF(weight=1e20))


def test_passages_that_are_alike_give_each_vector_once(plane):
    """Three documents with the same two vectors have two clusters, however many are asked for."""
    document = _document(plane, 1)
    index = MemoryIndex(list("abc"), [document] * 3)
    expansion = Searcher(index).search(EAST, feedback=ColbertPRF()).expansion
    assert len(expansion) == len(np.unique(document.vectors, axis=0))
    assert all(vector.sources for vector in expansion.vectors)


@pytest.mark.parametrize("clustering", ["kmeans", "kmeans-closest", "kmedoids"])
def test_of_very_many_feedback_vectors_a_sample_is_clustered(memory, goldfish, monkeypatch, clustering):
    monkeypatch.setattr("colbert_prf.kernels.seeding.MAX_VECTORS", 30)
    feedback = ColbertPRF(clusters=8, expansion_vectors=8, clustering=clustering)
    one, two = (Searcher(memory).search(goldfish, feedback=feedback).expansion for _ in range(2))
    assert one.vectors == two.vectors
    assert 0 < sum(len(vector.sources) for vector in one.vectors) <= 30


def test_non_relevant_documents_without_vectors_push_nothing(memory, goldfish):
    nothing = EncodedDocument(np.empty(0, np.int32), np.empty((0, memory.dim), np.float32))
    documents = [_document(memory, position) for position in range(memory.num_documents)]
    index = MemoryIndex([*memory.doc_ids, "nothing"], [*documents, nothing])
    found = ColbertPRF().expand(goldfish, ["fish1"], index, non_relevant=["nothing"])
    assert np.array_equal(found.query.vectors, ColbertPRF().expand(goldfish, ["fish1"], index).query.vectors)


@pytest.mark.parametrize("bits", [4, 16])
def test_a_segment_without_any_vector_is_no_obstacle(tmp_path, bits):
    def document(*rows):
        return EncodedDocument(np.arange(len(rows), dtype=np.int32), np.array(rows, np.float32).reshape(-1, 2))

    index = Index.create_from_vectors(tmp_path / "my.index", [("a", document())], bits=bits, progress=False)
    index.add_vectors([("b", document([1, 0], [0, 1])), ("c", document([0, 1]))])
    ranking = Searcher(index).search(EAST, feedback=ColbertPRF())
    assert ranking.doc_ids[0] == "b"
    assert len(ranking.expansion) == 2


def test_compat_paper_clusters_the_padding_and_takes_beta_as_it_is(memory, goldfish):
    pytest.importorskip("sklearn")
    from sklearn.cluster import KMeans

    expansion = Searcher(memory).search(goldfish, feedback=ColbertPRF(compat="paper", beta=0.5)).expansion
    rows = [_document(memory, p).vectors for p in memory.positions(expansion.feedback)]
    padded = np.concatenate([np.pad(row, ((0, 180 - len(row)), (0, 0))) for row in rows])
    centroids = KMeans(24, random_state=42, n_init=10).fit(padded).cluster_centers_
    for vector, known in zip(expansion.query.vectors[expansion.num_original :], expansion.vectors, strict=True):
        assert np.abs(centroids - vector).max(axis=1).min() < 1e-3
        assert known.weight == pytest.approx(0.5 * known.sigma, rel=1e-5)
