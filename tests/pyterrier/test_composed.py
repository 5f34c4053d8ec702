"""Stages under what others wrote for PyTerrier: fusion by its operators, adaptive re-ranking; no Java."""

from __future__ import annotations

import pytest

pytest.importorskip("pyterrier", reason="needs PyTerrier: pip install colbert-prf[pyterrier]")
import pyterrier as pt

from colbert_prf import Searcher
from colbert_prf.baselines import BM25, Fusion

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of pandas, in the operators of PyTerrier


def by_query(frame):
    return {qid: dict(zip(rows["docno"], rows["score"], strict=True)) for qid, rows in frame.groupby("qid")}


def test_operators_add_scores_cut_and_join(index, queries):
    bm25, colbert = index.bm25(), index.end_to_end()
    terms, vectors = by_query(bm25(queries)), by_query(colbert(queries))
    for qid, found in by_query((0.3 * bm25 + colbert)(queries)).items():
        expected = {docno: 0.3 * terms[qid].get(docno, 0.0) + score for docno, score in vectors[qid].items()}
        assert found == pytest.approx(expected, abs=1e-4)
    both = (bm25 % 2 | colbert % 2)(queries)
    for qid, rows in both.groupby("qid"):
        best = [sorted(scores[qid], key=scores[qid].get, reverse=True)[:2] for scores in (terms, vectors)]
        assert set(rows["docno"]) == {docno for docnos in best for docno in docnos}
    rescored = (bm25 % 2 | colbert % 2) >> index.scorer()
    for qid, found in by_query(rescored(queries)).items():
        assert found == pytest.approx({docno: vectors[qid][docno] for docno in found}, abs=1e-3)


def test_scores_stretched_by_query_are_added(index, queries):
    stretch = pt.pipelines.PerQueryMaxMinScoreTransformer()
    mixed = by_query(((index.prf() >> stretch) + (index.end_to_end() >> stretch))(queries))
    for found in mixed.values():
        assert min(found.values()) >= 0
        assert max(found.values()) <= 2 + 1e-9, "twice the best of one query, but for rounding"


def test_reciprocal_ranks_are_those_of_the_library(index, queries):
    alpha = pytest.importorskip("pyterrier_alpha", reason="needs pip install pyterrier-alpha")
    fused = alpha.fusion.RRFusion(index.bm25(), index.end_to_end(), k=60)(queries)
    searcher = index.searcher
    assert isinstance(searcher, Searcher)
    ours = Fusion([BM25(index.lexical), searcher], depth=1000)
    for qid, query in zip(queries["qid"], queries["query"], strict=True):
        rows = fused[fused["qid"] == qid]
        expected = ours.search(query, k=1000)
        assert dict(zip(rows["docno"], rows["score"], strict=True)) == pytest.approx(
            dict(zip(expected.doc_ids, expected.scores, strict=True)), rel=0.05
        )


def test_colbert_scores_what_adaptive_reranking_finds(index, queries, tmp_path):
    adaptive = pytest.importorskip("pyterrier_adaptive", reason="needs PyTorch and pip install pyterrier-adaptive")
    documents = index.text_loader()(index.set_retrieve(8)(queries[:1]))[["docno", "text"]].to_dict("records")
    graph = adaptive.CorpusGraph.from_retriever(index.end_to_end(4), iter(documents), tmp_path / "graph", k=3)
    first = index.bm25(1)
    found = (first >> adaptive.GAR(index.scorer(), graph, num_results=4))(queries)
    everything = by_query(index.end_to_end(8, rescore=8)(queries))
    for qid, scores in by_query(found).items():
        assert 1 < len(scores) <= 4, "one passage, then its neighbours in the graph"
        assert scores == pytest.approx({docno: everything[qid][docno] for docno in scores}, abs=1e-3)
