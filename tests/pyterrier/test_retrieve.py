"""Queries to documents: the same as the library finds, whatever the frame looks like."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

pt = pytest.importorskip("pyterrier", reason="needs PyTerrier: pip install colbert-prf[pyterrier]")

import pandas as pd  # noqa: E402

from colbert_prf import ColbertPRF, InputError  # noqa: E402
from colbert_prf.pyterrier import ColbertRetriever  # noqa: E402

ENCODED = ["query_toks", "query_embs", "query_weights"]
SMALL = {"feedback_docs": 2, "clusters": 6, "expansion_vectors": 4}


def pairs(frame, qid):
    rows = frame[frame["qid"] == qid].sort_values("rank")
    return list(zip(rows["docno"], rows["score"], strict=True))


@pytest.mark.parametrize("feedback", [None, ColbertPRF(**SMALL), ColbertPRF(**SMALL, rerank=True)])
def test_what_is_found_is_what_the_searcher_finds(index, queries, feedback):
    found = ColbertRetriever(index, num_results=5, feedback=feedback)(queries)
    for qid, text in zip(queries["qid"], queries["query"], strict=True):
        expected = index.searcher.search(text, 5, feedback=feedback)
        assert pairs(found, qid) == [(hit.doc_id, hit.score) for hit in expected]
        assert found[found["qid"] == qid]["rank"].tolist() == [0, 1, 2, 3, 4]


def test_extra_columns_are_kept_and_stale_ones_replaced(index, queries):
    found = index.end_to_end(3)(queries.assign(score=9.0, rank=7))
    assert found["note"].tolist() == ["a"] * 3 + ["b"] * 3 + ["c"] * 3
    assert found.columns.tolist() == ["qid", "query", "note", "docno", "score", "rank"]
    assert found["rank"].tolist() == [0, 1, 2] * 3


def test_an_encoded_query_is_searched_with_and_its_weights_count(index, queries):
    encoded = index.query_encoder()(queries)
    assert [len(embs) for embs in encoded["query_embs"]] == [len(toks) for toks in encoded["query_toks"]]
    assert all(weights.mean() == pytest.approx(1, abs=1e-6) for weights in encoded["query_weights"])
    plain = index.end_to_end(8)
    pd.testing.assert_frame_equal(plain(encoded).drop(columns=ENCODED), plain(queries))
    doubled = encoded.assign(query_weights=[weights * 2 for weights in encoded["query_weights"]])
    np.testing.assert_allclose(plain(doubled)["score"], 2 * plain(queries)["score"], rtol=1e-5)
    # The text is not looked at, and need not be there; without weights all are 1.
    ones = encoded.assign(query_weights=[np.ones_like(weights) for weights in encoded["query_weights"]])
    np.testing.assert_array_equal(
        plain(doubled.drop(columns=["query", "query_weights"]))["score"], plain(ones)["score"]
    )


def test_lists_serve_as_embeddings_and_words_do_not(index, queries):
    encoded = index.query_encoder()(queries)
    lists = encoded.assign(query_embs=[embs.tolist() for embs in encoded["query_embs"]])
    np.testing.assert_array_equal(index.end_to_end()(lists)["score"], index.end_to_end()(encoded)["score"])
    words = encoded.assign(query_toks=[["a"] * len(toks) for toks in encoded["query_toks"]])
    with pytest.raises(InputError, match=r"query '1': .*query_toks holds token ids"):
        index.end_to_end()(words)


def test_each_row_is_answered_on_its_own(index, queries):
    """So ids may come twice, and a frame of many queries gives what each query gives alone."""
    twice = pd.concat([queries, queries.assign(query="goldfish in winter")])
    retrieve = index.end_to_end(4)
    alone = [retrieve(twice.iloc[[row]]) for row in range(len(twice))]
    pd.testing.assert_frame_equal(retrieve(twice), pd.concat(alone, ignore_index=True))


def test_prf_brings_the_expanded_query(index, queries):
    found = index.prf(**SMALL, num_results=2)(queries)
    expansion = index.searcher.search("how large do fish grow", 2, feedback=ColbertPRF(**SMALL)).expansion
    first = found.iloc[0]
    np.testing.assert_array_equal(first["query_embs"], expansion.query.vectors)
    np.testing.assert_array_equal(first["query_weights"], expansion.query.weights)
    np.testing.assert_array_equal(first["query_toks"], expansion.query.token_ids)


def test_prf_is_the_ranker_or_the_reranker(index):
    assert index.prf(**SMALL).feedback == ColbertPRF(**SMALL)
    assert index.prf(True, **SMALL).feedback == ColbertPRF(**SMALL, rerank=True)
    assert index.prf(feedback=ColbertPRF(weight=1)).feedback == ColbertPRF(weight=1)
    assert index.prf(beta=1).feedback == ColbertPRF(beta=1)


def test_parameters_of_pyterrier_colbert_are_named_in_ours(index):
    with pytest.raises(InputError, match="'fb_docs' of pyterrier_colbert is called 'feedback_docs' here"):
        index.prf(False, fb_docs=3)
    with pytest.raises(InputError, match="leave out weight"):
        index.prf(feedback=ColbertPRF(), weight=1)


def test_a_set_has_no_scores_and_scored_it_is_the_ranking(index, queries):
    candidates = index.set_retrieve(4)(queries)
    assert not {"score", "rank"} & set(candidates.columns)
    assert candidates.groupby("qid").size().tolist() == [4, 4, 4]
    assert all(group["docno"].is_monotonic_increasing for _, group in candidates.groupby("qid"))
    scored = (index.set_retrieve(4) >> index.scorer())(queries)
    expected = index.end_to_end(4, rescore=4)(queries)
    assert scored["docno"].tolist() == expected["docno"].tolist()
    np.testing.assert_allclose(scored["score"], expected["score"], rtol=1e-5)
    assert index.set_retrieve(None)(queries).groupby("qid").size().tolist() == [8, 8, 8]


def test_a_cutoff_is_pushed_into_the_engine(index, queries):
    for retrieve in (index.end_to_end(), index.prf(**SMALL), index.bm25()):
        pipeline = retrieve % 2
        fused = pipeline.compile()
        assert type(fused) is type(retrieve)
        assert fused.num_results == 2
        pd.testing.assert_frame_equal(fused(queries)[["qid", "docno"]], pipeline(queries)[["qid", "docno"]])
    assert (index.end_to_end(2) % 5).compile() == index.end_to_end(2)


def test_the_pipeline_of_the_paper_becomes_one_search(index, queries):
    retrieve = index.end_to_end(6)
    pipeline = index.query_encoder() >> retrieve % 2 >> index.expand(**SMALL) >> retrieve
    fused = pipeline.compile()
    assert fused[1] == index.prf(**SMALL, num_results=6)
    assert len(fused) == 2
    one, other = pipeline(queries), fused(queries)
    assert one["docno"].tolist() == other["docno"].tolist()
    np.testing.assert_allclose(one["score"], other["score"], rtol=1e-4)
    np.testing.assert_array_equal(one["query_weights"].iloc[0], other["query_weights"].iloc[0])


def test_what_cannot_be_one_search_stays_as_it_is(index):
    retrieve, expand = index.end_to_end(), index.expand(**SMALL)
    assert len((retrieve % 1 >> expand).compile()) == 2  # learns from fewer documents than it would by itself
    assert len((retrieve >> index.expand(**SMALL, keep_documents=True)).compile()) == 2
    assert len((retrieve % 2 >> expand >> index.end_to_end(probes=2)).compile()) == 2
    assert len((index.prf(**SMALL) % 2 >> expand).compile()) == 2


def test_transformers_are_pickled_compared_and_shown(index, queries):
    for transformer in (index.prf(**SMALL), index.query_encoder() >> index.end_to_end() % 3, index.bm25()):
        transformer(queries)  # what it opened is not pickled
        again = pickle.loads(pickle.dumps(transformer))  # noqa: S301
        assert again == transformer
        assert hash(again) == hash(transformer)
        pd.testing.assert_frame_equal(again(queries), transformer(queries))
    assert index.end_to_end() != index.end_to_end(5)
    assert repr(index.end_to_end(5)) == f"ColbertRetriever(index={index!r}, num_results=5)"


def test_bad_numbers_are_refused(index):
    for make in (index.end_to_end, index.set_retrieve, index.bm25):
        with pytest.raises(InputError, match="num_results must be at least 1, found 0"):
            make(0)


def test_the_preset_of_the_paper_needs_sixteen_bits(index, queries):
    from colbert_prf.pyterrier import ColbertIndex

    with pytest.raises(InputError, match="needs an index folder with bits=16"):
        ColbertIndex(index.path, preset="paper").end_to_end()(queries)


def test_a_filter_holds_in_every_pipeline(index, queries):
    where = {"length": {"<": 55}}
    short = {"bank", "river", "shop"}
    for pipeline in (index.end_to_end(8, where=where), index.prf(num_results=8, where=where, **SMALL)):
        assert set(pipeline(queries)["docno"]) == short
        assert pipeline != index.end_to_end(8)
    assert set(index.bm25(8, where=where)(queries)["docno"]) <= short
    assert set(index.bm25(8)(queries)["docno"]) - short
    # Fused, the search that feedback learns from would lose its filter.
    pipeline = index.end_to_end(8, where=where) >> index.expand(**SMALL) >> index.end_to_end(8, where=where)
    pd.testing.assert_frame_equal(pipeline.compile()(queries), pipeline(queries))
