"""RM3, Bo1 and KL by hand, and their laws."""

from __future__ import annotations

from math import exp, log2

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from colbert_prf import InputError
from colbert_prf.baselines.lexical import BM25, KL, RM3, Bo1

BEST = np.array([0, 1]), np.array([2.0, 1.0])
"""What a first pass found: x with score 2 and y with score 1."""


def test_rm3_by_hand(index):
    # x = fish fish tank, y = fish bank; e^2 : e^1 as shares. All terms allowed: R(fish) = 2/3 p + 1/2 q,
    # R(tank) = 1/3 p, R(bank) = 1/2 q; they sum to p + q = 1.
    p, q = exp(2) / (exp(2) + exp(1)), exp(1) / (exp(2) + exp(1))
    method = RM3(original=0.6, min_documents=1, max_share=1.1)
    expansion = method.expand({"tank": 1.0}, index.snapshot, *BEST)
    expected = {"fish": 0.4 * (2 / 3 * p + q / 2), "tank": 0.6 + 0.4 * p / 3, "bank": 0.4 * q / 2}
    assert expansion.weights == pytest.approx(expected)
    assert (expansion.feedback, set(expansion.added)) == (("x", "y"), {"fish", "bank"})


def test_rm3_keeps_the_best_terms_and_shares_among_them(index):
    method = RM3(original=0.0, feedback_terms=1, min_documents=1, max_share=1.1)
    assert method.expand({"tank": 2.0}, index.snapshot, *BEST).weights == pytest.approx({"fish": 2.0})


def test_rm3_does_not_learn_terms_that_tell_nothing(index):
    # fish is in 2 of 3 documents, tank in 1: with the default bounds of 2 documents and a tenth nothing remains.
    assert RM3().expand({"bank": 1.0}, index.snapshot, *BEST).weights == {"bank": 1.0}


def test_bo1_by_hand(index):
    # Two documents: fish 3 times (in both), tank and bank once (in one each; bank is in the query).
    # F(fish) = 3, F(bank) = 2, N = 3. The largest frequency is 3: the normaliser has P = 3 / 3.
    def value(frequency, mean):
        return frequency * log2((1 + mean) / mean) + log2(1 + mean)

    expansion = Bo1().expand({"bank": 2.0}, index.snapshot, *BEST)
    expected = {"bank": 1 + value(1, 2 / 3) / value(3, 1), "fish": value(3, 1) / value(3, 1)}
    assert expansion.weights == pytest.approx(expected)


def test_kl_by_hand(index):
    # The two documents have 5 of the 9 words of the collection; fish is 3 of the 5 and 3 of the 9.
    expansion = KL().expand({"rates": 1.0}, index.snapshot, *BEST)
    assert expansion.weights == pytest.approx(
        {"rates": 1.0, "fish": 3 / 5 * log2((3 / 5) / (3 / 9)) / (3 * log2(9 / 5) / 5)}
    )


@given(counts=st.dictionaries(st.sampled_from(["fish", "bank", "fell", "rates"]), st.integers(1, 3), min_size=1))
def test_rm3_with_the_whole_query_is_the_query(small_index, counts):
    query = {term: float(count) for term, count in counts.items()}
    method = RM3(original=1.0, min_documents=1, max_share=1.1)
    assert method.expand(query, small_index.snapshot, *BEST).weights == query
    text = " ".join(word for word, count in counts.items() for _ in range(count))
    plain, expanded = BM25(small_index).search(text), BM25(small_index, feedback=method).search(text)
    assert [(hit.doc_id, hit.score) for hit in plain] == [(hit.doc_id, hit.score) for hit in expanded]


@pytest.mark.parametrize("method", [RM3(min_documents=1, max_share=1.1), Bo1(), KL()])
def test_a_search_shows_what_was_added_and_the_first_pass(index, method):
    system = BM25(index, idf="lucene", feedback=method)
    ranking = system.search("tank", k=3)
    assert ranking.before.doc_ids == ["x"]
    assert ranking.term_expansion.feedback == ("x",)
    assert "fish" in ranking.term_expansion.added
    assert ranking.doc_ids == ["x", "y"]
    weights = list(ranking.term_expansion.weights.values())
    assert weights == sorted(weights, reverse=True)
    assert system.explain("tank", "y").score == pytest.approx(ranking.hits[1].score)


@pytest.mark.parametrize("method", [RM3(), Bo1(), KL()])
def test_nothing_found_is_nothing_learned(index, method):
    ranking = BM25(index, feedback=method).search("unknown")
    assert (len(ranking), len(ranking.term_expansion)) == (0, 0)


def test_impossible_parameters_are_refused():
    with pytest.raises(InputError, match="feedback_docs must be at least 1"):
        Bo1(feedback_docs=0)
    with pytest.raises(InputError, match="original must be from 0 to 1"):
        RM3(original=1.5)
