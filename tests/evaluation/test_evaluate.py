from __future__ import annotations

import numpy as np
import pytest

from colbert_prf.errors import DatasetWarning, InputError
from colbert_prf.evaluation import Comparison, Evaluation, evaluate, parse_measures

QRELS = {"q1": {"d1": 1}, "q2": {"d2": 1}, "q3": {"d3": 1}, "q4": {"d4": 1}}


def run_with_ranks(**ranks):
    """A run in which the relevant document of each query has the given rank."""
    return {
        query_id: {**{f"x{above}": 9.0 - above for above in range(1, rank)}, next(iter(QRELS[query_id])): 0.5}
        for query_id, rank in ranks.items()
    }


PERFECT = run_with_ranks(q1=1, q2=1, q3=1, q4=1)
POOR = run_with_ranks(q1=4, q2=5, q3=4, q4=5)
HALF = run_with_ranks(q1=2, q2=2, q3=2, q4=2)


def test_letters_name_the_baselines_significantly_improved_upon():
    runs = {"poor": POOR, "half": HALF, "perfect": PERFECT}
    found = evaluate(QRELS, runs, ["MRR"], baselines=["poor", "half"])
    assert found.means[:, 0] == pytest.approx([0.225, 0.5, 1])
    assert [found.letter(system) for system in runs] == ["a", "b", ""]
    # differences: 0.75 or 0.8, t far beyond; 0.5 every time, p = 0
    assert found.letters("perfect", "MRR") == "ab"
    assert found.improves_on("perfect", "MRR") == ("poor", "half")
    assert found.letters("poor", "MRR") == found.letters("half", "MRR") == ""


def test_a_significant_loss_has_no_letter():
    found = evaluate(QRELS, {"poor": POOR, "perfect": PERFECT}, ["MRR"], baselines=["perfect"])
    (one,) = found.comparisons
    assert (one.difference, one.losses) == (pytest.approx(-0.775), 4)
    assert one.corrected_p_value < 0.001
    assert found.letters("poor", "MRR") == ""


def test_all_compares_each_with_each():
    found = evaluate(QRELS, {"poor": POOR, "half": HALF, "perfect": PERFECT}, ["MRR"], baselines="all")
    assert [found.letters(system, "MRR") for system in found.systems] == ["", "a", "ab"]


def test_alpha_is_the_level():
    middling = run_with_ranks(q1=1, q2=1, q3=2, q4=2)  # differences to HALF: .5 .5 0 0; t = √3, p = 0.18
    for alpha, letters in {0.05: "", 0.2: "a"}.items():
        found = evaluate(QRELS, {"half": HALF, "middling": middling}, ["MRR"], baselines=["half"], alpha=alpha)
        assert found.comparisons[0].p_value == pytest.approx(0.1817, abs=1e-4)
        assert found.letters("middling", "MRR") == letters


def test_values_are_by_system_measure_and_query():
    found = evaluate(QRELS, {"poor": POOR, "half": HALF}, ["MRR", "P@1"])
    assert found.values.shape == (2, 2, 4)
    assert found.query_ids == ("q1", "q2", "q3", "q4")
    assert found.per_query("poor", "MRR") == {"q1": 0.25, "q2": 0.2, "q3": 0.25, "q4": 0.2}
    with pytest.raises(InputError, match="'best' was not evaluated; there are poor, half"):
        found.mean("best", "MRR")
    with pytest.raises(InputError, match="'MAP' was not evaluated; there are MRR, P@1"):
        found.mean("poor", "MAP")


def test_judged_queries_missing_from_a_run_count_as_0():
    with pytest.warns(DatasetWarning, match=r"run 'mine' lacks 2 of 4 judged queries \(first: 'q3'\); they count as 0"):
        found = evaluate(QRELS, {"mine": {**run_with_ranks(q1=1, q2=2), "q4": {}}}, ["MRR"])
    assert found.per_query("mine", "MRR") == {"q1": 1, "q2": 0.5, "q3": 0, "q4": 0}
    assert found.mean("mine", "MRR") == 0.375


def test_only_found_averages_over_what_every_run_has():
    runs = {"mine": run_with_ranks(q1=1, q2=2, q4=4), "other": run_with_ranks(q2=1, q3=1, q4=1)}
    with pytest.warns(DatasetWarning, match="averages are over the 2 of 4 judged queries that every run has"):
        found = evaluate(QRELS, runs, ["MRR"], only_found=True)
    assert found.query_ids == ("q2", "q4")
    assert found.mean("mine", "MRR") == 0.375
    with pytest.raises(InputError, match="no judged query is in every run"):
        evaluate(QRELS, {"mine": run_with_ranks(q1=1), "other": run_with_ranks(q2=1)}, ["MRR"], only_found=True)


def test_queries_without_judgements_do_not_count():
    with pytest.warns(DatasetWarning, match=r"1 of the 5 queries of run 'mine' have no judgements \(first: 'q9'\)"):
        found = evaluate(QRELS, {"mine": {"q9": {"d1": 1.0}, **PERFECT}}, ["MRR"])
    assert found.mean("mine", "MRR") == 1


def test_binary_judgements_with_a_threshold_of_2():
    with pytest.raises(InputError, match="no judgement has grade 2 or more, the highest is 1"):
        evaluate(QRELS, {"mine": PERFECT}, ["MAP"], relevance=2)


def test_a_query_without_relevant_documents():
    qrels = {**QRELS, "q4": {"d4": 0, "d5": 0}}
    with pytest.warns(
        DatasetWarning, match=r"1 of 4 judged queries have no document of grade 1 or more \(first: 'q4'\)"
    ):
        found = evaluate(qrels, {"mine": PERFECT}, ["MAP"])
    assert found.mean("mine", "MAP") == 0.75


def test_a_query_whose_judgements_were_all_left_out_counts_as_0():
    with pytest.warns(DatasetWarning, match="1 of 4 judged queries have no document of grade 1"):
        found = evaluate({**QRELS, "q1": {}}, {"mine": PERFECT}, ["MAP", "nDCG@10", "MRR@10"])
    assert found.values[0, :, 0].tolist() == [0, 0, 0]
    assert found.mean("mine", "MAP") == 0.75


def test_negative_grades_are_not_relevant():
    qrels = {"q1": {"spam": -2, "d1": 1}}
    with pytest.warns(DatasetWarning, match=r"1 of 2 judgements have a negative grade \(first: -2 of document 'spam'"):
        found = evaluate(qrels, {"mine": {"q1": {"spam": 2.0, "d1": 1.0}}}, ["MAP", "nDCG@10"])
    assert found.means[0] == pytest.approx([0.5, 1 / np.log2(3)])


@pytest.mark.parametrize(
    ("qrels", "runs", "options", "message"),
    [
        ({}, {"mine": PERFECT}, {}, "there are no judgements"),
        ({"q1": {}}, {"mine": PERFECT}, {}, "there are no judgements"),
        ({"q1": {"d1": 10**9}}, {"mine": PERFECT}, {}, "document 'd1' of query 'q1' has grade 1000000000"),
        (QRELS, {}, {}, "no run to evaluate"),
        (QRELS, {"mine": {}}, {}, "run 'mine' has no document"),
        (QRELS, {"mine": {"q1": {}}}, {}, "run 'mine' has no document"),
        (QRELS, {"mine": {"q1": {"d1": float("nan")}}}, {}, "gives document 'd1' of query 'q1' the score nan"),
        (QRELS, {"mine": {"7": {"d1": 1.0}}}, {}, r"none of the 1 queries of run 'mine' is judged \(first: '7', while"),
        (QRELS, {"mine": PERFECT}, {"baselines": ["bm25"]}, "the baseline 'bm25' is not among the runs, mine"),
        (QRELS, {"mine": PERFECT}, {"baselines": ["mine"]}, "there is no run to compare the baseline 'mine' with"),
        (QRELS, {"mine": PERFECT}, {"alpha": 5}, "between 0 and 1, found 5"),
        ({"q1": {"d1": 1}}, {"a": PERFECT, "b": PERFECT}, {"baselines": "all"}, "needs two queries or more, found 1"),
    ],
)
@pytest.mark.filterwarnings("ignore::colbert_prf.errors.DatasetWarning")
def test_what_cannot_be_evaluated(qrels, runs, options, message):
    with pytest.raises(InputError, match=message):
        evaluate(qrels, runs, ["MRR"], **options)


def test_an_evaluation_checks_its_parts():
    measures = parse_measures(["MAP"])
    with pytest.raises(InputError, match=r"must have shape \(1, 1, 1\), found \(2, 1, 1\)"):
        Evaluation(("mine",), measures, ("q1",), np.zeros((2, 1, 1)))
    names = tuple(f"system {number}" for number in range(53))
    with pytest.raises(InputError, match="letters for 52 baselines, found 53"):
        Evaluation(names, measures, ("q1",), np.zeros((53, 1, 1)), names)


def test_a_comparison_exactly_at_the_level_is_no_improvement():
    one = Comparison("mine", "old", "MAP", 0.1, 0.05, 0.05, 1, 0, 0)
    assert not one.is_improvement(0.05)
    assert one.is_improvement(0.051)
