"""Documents of any system, scored anew; expansion; explanations; baselines."""

from __future__ import annotations

import numpy as np
import pytest

pt = pytest.importorskip("pyterrier", reason="needs PyTerrier: pip install colbert-prf[pyterrier]")

import pandas as pd  # noqa: E402

from colbert_prf import ColbertPRF, Hit, InputError, Ranking, rerank_texts  # noqa: E402
from colbert_prf.baselines import BM25, RM3, BertQE, ColbertReranker  # noqa: E402
from colbert_prf.baselines.rerank import PairScorer  # noqa: E402
from colbert_prf.pyterrier import ColbertTextScorer, CrossEncoderScorer  # noqa: E402

SMALL = ColbertPRF(feedback_docs=2, clusters=6, expansion_vectors=4)


@pytest.fixture
def candidates(queries):
    """Documents in no order, with a column of their own."""
    names = ["winter", "bowl", "river", "aquarium", "shop"]
    rows = [(*query, name, place) for query in queries.itertuples(index=False) for place, name in enumerate(names)]
    return pd.DataFrame(rows, columns=["qid", "query", "note", "docno", "place"])


def of(frame, qid):
    rows = frame[frame["qid"] == qid]
    return dict(zip(rows["docno"], rows["score"], strict=True))


def test_the_scorer_gives_maxsim_and_keeps_rows_and_columns(index, candidates):
    scored = index.scorer()(candidates)
    everything = index.end_to_end(8, rescore=8)(candidates[["qid", "query"]].drop_duplicates())
    assert scored.columns.tolist() == ["qid", "query", "note", "docno", "place", "score", "rank"]
    assert sorted(scored["place"]) == sorted(candidates["place"])
    for qid in ("1", "2", "3"):
        expected = of(everything, qid)
        assert of(scored, qid) == pytest.approx({name: expected[name] for name in of(scored, qid)}, rel=1e-5)
        rows = scored[scored["qid"] == qid]
        assert rows["rank"].tolist() == [0, 1, 2, 3, 4]
        assert rows["score"].is_monotonic_decreasing


def test_scores_do_not_depend_on_the_order_of_rows(index, candidates):
    shuffled = candidates.sample(frac=1, random_state=3)
    one, other = index.scorer()(candidates), index.scorer()(shuffled)
    for qid in ("1", "2", "3"):
        assert of(one, qid) == of(other, qid)


def test_equal_ids_with_different_texts_are_different_queries(index, candidates):
    other = candidates[candidates["qid"] == "1"].assign(query="the central bank")
    both = index.scorer()(pd.concat([candidates, other]))
    alone = index.scorer()(other)
    found = both[both["query"] == "the central bank"].reset_index(drop=True)
    pd.testing.assert_frame_equal(found, alone)


def test_a_document_may_come_twice_and_an_unknown_one_is_named(index, candidates):
    twice = index.scorer()(pd.concat([candidates, candidates]))
    assert len(twice) == 2 * len(candidates)
    assert twice[twice["qid"] == "1"]["rank"].tolist() == list(range(10))
    with pytest.raises(InputError, match="'whale'"):
        index.scorer()(candidates.assign(docno="whale"))


def test_the_scorer_with_feedback_is_the_reranker_with_feedback(index, candidates):
    scored = index.scorer(feedback=SMALL)(candidates)
    names = candidates["docno"].unique().tolist()
    system = ColbertReranker(_Fixed(names), index.searcher, feedback=SMALL)
    ranking = system.search("how large do fish grow")
    assert of(scored, "1") == pytest.approx({hit.doc_id: hit.score for hit in ranking})
    np.testing.assert_array_equal(scored["query_weights"].iloc[0], ranking.expansion.query.weights)


def test_texts_are_scored_as_by_rerank_texts(index, candidates, encoder):
    with_texts = pt.text.get_text(index, "text")(candidates)
    for scorer in (index.text_scorer(), ColbertTextScorer(feedback=SMALL)):
        scored = scorer(with_texts)
        rows = with_texts[with_texts["qid"] == "1"]
        passages = zip(rows["docno"], rows["text"], strict=True)
        expected = rerank_texts("how large do fish grow", passages, encoder=encoder, feedback=scorer.feedback)
        assert of(scored, "1") == pytest.approx({hit.doc_id: hit.score for hit in expected})
    with pytest.raises(InputError, match="not both"):
        ColbertTextScorer(index, model="other")


def test_expansion_learns_from_the_best_by_rank(index, queries):
    found = index.end_to_end(5)(queries)
    expanded = index.expand(SMALL)(found.sample(frac=1, random_state=1))
    assert sorted(expanded["qid"]) == ["1", "2", "3"]
    for row in expanded.itertuples():
        expected = index.searcher.search(row.query, 5, feedback=SMALL).expansion.query
        np.testing.assert_array_equal(row.query_embs, expected.vectors)
        np.testing.assert_array_equal(row.query_weights, expected.weights)
    # A rank counts more than a score that contradicts it.
    contradicted = index.expand(SMALL)(found.assign(score=-found["score"]))
    # Without ranks by score; without either in the order of the rows.
    by_score = index.expand(SMALL)(found.drop(columns="rank").iloc[::-1])
    in_order = index.expand(SMALL)(found.drop(columns=["rank", "score"]))
    for other in (contradicted, by_score, in_order):
        together = expanded.merge(other, on="qid")
        for row in together.itertuples():
            np.testing.assert_array_equal(row.query_embs_x, row.query_embs_y)


def test_documents_kept_and_scored_are_the_reranker(index, queries):
    pipeline = index.end_to_end(8) >> index.expand(SMALL, keep_documents=True) >> index.scorer()
    expected = index.prf(feedback=ColbertPRF(feedback_docs=2, clusters=6, expansion_vectors=4, rerank=True))(queries)
    found = pipeline(queries)
    assert found["docno"].tolist() == expected["docno"].tolist()
    assert found["note"].tolist() == expected["note"].tolist()
    np.testing.assert_allclose(found["score"], expected["score"], rtol=1e-4)


def test_contributions_add_up_to_the_score(index, queries):
    for retrieve in (index.end_to_end(2), index.prf(feedback=SMALL, num_results=2)):
        found = retrieve(queries)
        explained = index.explain()(found)
        sums = explained.groupby(["qid", "docno"])["contribution"].sum()
        for row in found.itertuples():
            assert sums[row.qid, row.docno] == pytest.approx(row.score, rel=1e-4)
    assert {"grow", "growing"} <= set(explained["query_tok"]) | set(explained["doc_tok"])


def test_texts_and_metadata_are_loaded(index, candidates):
    loaded = index.text_loader(["text", "length", "colour"])(candidates)
    assert loaded["length"].tolist() == [len(text) for text in loaded["text"]]
    assert loaded["colour"].isna().all()


def test_bm25_and_bert_qe_are_those_of_the_library(index, queries):
    lexical = index.bm25(5, feedback=RM3(), b=0.4)(queries)
    library = BM25(index.lexical, feedback=RM3(), b=0.4)
    for row in queries.itertuples():
        ranking = library.search(row.query, 5)
        assert of(lexical, row.qid) == {hit.doc_id: hit.score for hit in ranking}
    mixed = (index.end_to_end(6) >> index.bert_qe(alpha=0.3, chunks=2))(queries)
    system = BertQE(index.searcher, index.searcher, alpha=0.3, chunks=2, depth=6)
    for row in queries.itertuples():
        assert of(mixed, row.qid) == pytest.approx({hit.doc_id: hit.score for hit in system.search(row.query, 6)})


def test_a_cross_encoder_reads_the_texts(index, candidates, monkeypatch):
    class ByLength(PairScorer):
        def scores(self, query, texts, *, progress=None):
            return np.array([float(len(query) * len(text)) for text in texts])

    monkeypatch.setattr(PairScorer, "load", staticmethod(lambda model: ByLength()))
    scored = (index.text_loader() >> CrossEncoderScorer("any"))(candidates)
    assert scored["score"].tolist() == [float(len(row.query) * len(row.text)) for row in scored.itertuples()]
    assert scored[scored["qid"] == "2"]["rank"].tolist() == [0, 1, 2, 3, 4]


class _Fixed:
    """Finds the same documents for every query."""

    def __init__(self, names):
        self.names = names

    def search(self, query, k=1000):
        return Ranking(query, tuple(Hit(name, 0.0) for name in self.names))
