from __future__ import annotations

import shutil
import sys
from math import log2

import pytest

from colbert_prf.errors import DatasetWarning, InputError, MissingExtraError
from colbert_prf.evaluation import DEFAULT_MEASURES, evaluate, parse_measures

QRELS = {"q": {"a": 3, "b": 1, "c": 2, "d": 0}}
RUN = {"q": {"b": 9.0, "a": 8.0, "x": 7.0, "c": 6.0}}  # ranks: b 1, a 2, c 4; x is not judged, d not found
NDCG = (1 / log2(2) + 3 / log2(3) + 2 / log2(5)) / (3 / log2(2) + 2 / log2(3) + 1 / log2(4))


@pytest.mark.parametrize(
    ("relevance", "measure", "expected"),
    [
        (1, "MAP", (1 / 1 + 2 / 2 + 3 / 4) / 3),
        (2, "MAP", (1 / 2 + 2 / 4) / 2),
        (3, "MAP", 1 / 2),
        (2, "AP@3", (1 / 2) / 2),
        (2, "AP(rel=1)", (1 / 1 + 2 / 2 + 3 / 4) / 3),
        (1, "MRR", 1),
        (2, "MRR", 1 / 2),
        (2, "MRR@1", 0),
        (2, "R@3", 1 / 2),
        (2, "Recall@1000", 1),
        (2, "P@5", 2 / 5),
        (2, "Success@1", 0),
        (1, "nDCG@10", NDCG),
        (3, "nDCG@10", NDCG),
        (1, "nDCG@1", 1 / 3),
        (2, "NumRet", 4),
    ],
)
def test_a_value_worked_by_hand(relevance, measure, expected):
    found = evaluate(QRELS, {"mine": RUN}, [measure], relevance=relevance)
    assert found.mean("mine", measure) == pytest.approx(expected)


def test_the_default_measures_with_the_threshold_of_the_paper():
    expressions = [measure.expression for measure in parse_measures(DEFAULT_MEASURES, relevance=2)]
    assert expressions == ["AP(rel=2)", "nDCG@10", "RR(rel=2)", "RR(rel=2)@10", "R(rel=2)@1000"]


def test_a_name_given_twice_is_computed_once_and_two_names_of_one_measure_twice():
    found = evaluate(QRELS, {"mine": RUN}, ["MAP", "AP", " MAP"])
    assert found.measure_names == ("MAP", "AP")
    assert found.mean("mine", "MAP") == found.mean("mine", "AP") == pytest.approx(2.75 / 3)


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("Foo@3", "there is no measure 'Foo@3'"),
        ("MAP nDCG", "cannot read the measure 'MAP nDCG'"),
        ("", "cannot read the measure ''"),
        ("P", "the measure 'P' needs a cutoff; write P@10"),
        ("IPrec", "the measure 'IPrec' needs a recall; write IPrec(recall=...)"),
        ("P@five", "cannot read the measure 'P@five'"),
        ("P@0", "the measure 'P@0' is cut at 0; a cutoff is 1 or more"),
        ("P@-5", "the measure 'P@-5'"),
        ("P@99999999999999999999", "is cut at 99999999999999999999"),
        ("AP(rel=0)", "the measure 'AP(rel=0)' has rel=0; the lowest relevant grade is 1 or more"),
        ("AP(grade=1)", "cannot read the measure 'AP(grade=1)'"),
        ("AP(rel='high')", "cannot read the measure"),
        ("__import__('os')", "cannot read the measure"),
    ],
)
def test_a_bad_expression(expression, message):
    with pytest.raises(InputError) as caught:
        parse_measures([expression])
    assert message in str(caught.value)


def test_a_measure_that_needs_another_program_says_so():
    with pytest.raises(InputError, match=r"(?s)ir_measures cannot compute alpha_nDCG@5: .*pyndeval"):
        evaluate(QRELS, {"mine": RUN}, ["alpha_nDCG@5"])


@pytest.mark.parametrize("relevance", [0, -1])
def test_grade_0_is_never_relevant(relevance):
    with pytest.raises(InputError, match="must be 1 or more, found"):
        parse_measures(["MAP"], relevance=relevance)


def test_no_measure():
    with pytest.raises(InputError, match="no measure to compute"):
        parse_measures([])


def test_without_ir_measures_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "ir_measures", None)
    with pytest.raises(MissingExtraError, match=r"colbert-prf\[evaluation\]"):
        parse_measures(["MAP"])


@pytest.mark.skipif(shutil.which("perl") is None, reason="gdeval is a Perl program")
def test_gdeval_takes_any_query_id():
    """ERR of a document of grade 1 on the first rank, where the highest grade is 4: (2 - 1) / 16."""
    run = {"PLAIN-1": {"d1": 2.0}, "q 2": {"d2": 1.0}}
    found = evaluate({"PLAIN-1": {"d1": 1}, "q 2": {"d1": 1}}, {"mine": run}, ["ERR@10"])
    assert found.per_query("mine", "ERR@10") == pytest.approx({"PLAIN-1": 1 / 16, "q 2": 0})


def test_numrel_counts_what_trec_eval_does_at_any_threshold():
    found = evaluate({"q1": {"d1": 2, "d2": 1}}, {"mine": {"q1": {"d1": 1.0}}}, ["NumRel"], relevance=2)
    assert found.mean("mine", "NumRel") == 2


def test_a_query_left_without_documents_counts_as_one_that_is_missing():
    qrels, run = {"q1": {"d1": 1}, "q2": {"d1": 1}}, {"q1": {"d1": 1.0}, "q2": {}}
    with pytest.warns(DatasetWarning, match="lacks 1 of 2 judged queries"):
        found = evaluate(qrels, {"mine": run}, ["Judged@10", "AP"])
    assert found.per_query("mine", "Judged@10") == {"q1": 1, "q2": 0}
