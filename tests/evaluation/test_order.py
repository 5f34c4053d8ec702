from __future__ import annotations

import numpy as np
import pytest
import pytrec_eval
from hypothesis import given
from hypothesis import strategies as st

from colbert_prf.evaluation import evaluate, trec_order
from colbert_prf.evaluation.order import ranks_as_scores


def test_equal_scores_come_by_falling_id_compared_as_text():
    assert trec_order({"b": 1.0, "10": 1.0, "9": 1.0, "é": 1.0, "a": 2.0}) == ["a", "é", "b", "9", "10"]


def test_scores_equal_in_single_precision_are_equal():
    assert trec_order({"a": 1.0 + 1e-9, "b": 1.0}) == ["b", "a"]
    assert trec_order({"a": 1.0 + 1e-6, "b": 1.0}) == ["a", "b"]
    assert trec_order({"a": 1e300, "b": 1e200, "c": -1e300}) == ["b", "a", "c"]


def test_no_document_at_all():
    assert ranks_as_scores({}) == {}


doc_ids = st.sampled_from([*map(str, range(12)), "é", "z", "Z"])
tied_scores = st.sampled_from([0.0, 0.5, 0.5 + 1e-10, 1.0, -3.0, 7e20])
runs = st.dictionaries(
    st.sampled_from(["q1", "q2", "q3"]), st.dictionaries(doc_ids, tied_scores, min_size=1), min_size=1
)
judgements = st.dictionaries(doc_ids, st.integers(0, 3), min_size=1)


@given(run=runs, grades=judgements, relevance=st.integers(1, 3))
def test_measures_are_those_of_trec_eval(run, grades, relevance):
    grades = {**grades, "relevant": 3}
    qrels = dict.fromkeys(run, grades)
    found = evaluate(qrels, {"mine": run}, ["MAP", "nDCG@3", "MRR", "R@2"], relevance=relevance)
    names = {"MAP": "map", "nDCG@3": "ndcg_cut_3", "MRR": "recip_rank", "R@2": "recall_2"}
    reference = pytrec_eval.RelevanceEvaluator(qrels, set(names.values()), relevance_level=relevance).evaluate(run)
    for measure, name in names.items():
        expected = {query_id: values[name] for query_id, values in reference.items()}
        assert found.per_query("mine", measure) == pytest.approx(expected)


@given(run=runs, grades=judgements)
def test_a_cut_never_raises_the_reciprocal_rank(run, grades):
    """Ties broken by each measure for itself would break this."""
    qrels = {query_id: {**grades, "relevant": 1} for query_id in run}
    found = evaluate(qrels, {"mine": run}, ["MRR@10", "MRR@3", "MRR"])
    assert (np.diff(found.values[0][[1, 0, 2]], axis=0) >= 0).all()
