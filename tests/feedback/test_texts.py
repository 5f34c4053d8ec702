"""Passages given as texts are ranked as an index of them would, with frequencies from anywhere."""

from __future__ import annotations

import numpy as np
import pytest

from colbert_prf import (
    CentroidPRF,
    ColbertPRF,
    EncodedQuery,
    InputError,
    MemoryIndex,
    Searcher,
    TokenFrequencies,
    rerank_texts,
)
from colbert_prf.errors import TextError
from colbert_prf.search.texts import CountedSource

PASSAGES = {
    "war1": "While the soldiers advanced, the tank bombarded the troops from the hill.",
    "fish2": "How large a goldfish becomes depends on its tank, on clean water and on what it is fed.",
    "bank1": "The central bank raised its interest rates again to bring inflation down.",
    "fish1": "Goldfish grow all their life. In a small tank a goldfish stays small, in a pond it becomes large.",
    "fungus1": "Mushrooms grow overnight after rain, fed by threads under the ground.",
    "fish3": "The common goldfish reaches thirty centimetres in a garden pond; fancy breeds stay smaller.",
}
GIVEN = list(PASSAGES.items())


@pytest.fixture(scope="module")
def given(encoder) -> MemoryIndex:
    return MemoryIndex.create(GIVEN, encoder=encoder, progress=False)


def scores(ranking) -> list[tuple[str, float]]:
    return [(hit.doc_id, hit.score) for hit in ranking]


def test_without_frequencies_it_is_a_search_of_the_passages(given, encoder):
    found = rerank_texts("do goldfish grow", GIVEN, encoder=encoder)
    expected = Searcher(given).search("do goldfish grow", k=len(GIVEN), feedback=ColbertPRF())
    assert scores(found) == scores(expected)
    assert scores(found.before) == scores(expected.before)
    assert found.expansion.vectors == expected.expansion.vectors
    assert [hit.text for hit in found] == [PASSAGES[doc_id] for doc_id in found.doc_ids]


def test_with_frequencies_it_is_a_search_with_those(given, encoder, memory):
    """A Searcher that counts in the whole collection and finds only among the passages."""
    frequencies = TokenFrequencies.of(memory)
    counted = CountedSource(given, frequencies)
    expected = Searcher(counted).search("do goldfish grow", k=len(GIVEN), feedback=ColbertPRF())
    found = rerank_texts("do goldfish grow", GIVEN, encoder=encoder, frequencies=frequencies)
    assert scores(found) == scores(expected)
    assert found.expansion.vectors == expected.expansion.vectors
    plain = rerank_texts("do goldfish grow", GIVEN, encoder=encoder)
    assert [vector.sigma for vector in found.expansion.vectors] != [vector.sigma for vector in plain.expansion.vectors]


def test_sigma_is_of_the_given_frequencies(encoder):
    """σ = ln((N + 1) / (N_t + 1)) with N = 999 and N_t = 9 of every token: ln 100."""
    frequencies = TokenFrequencies(999, np.full(encoder.vocabulary_size, 9))
    found = rerank_texts("do goldfish grow", GIVEN, encoder=encoder, frequencies=frequencies)
    assert [vector.sigma for vector in found.expansion.vectors] == pytest.approx([np.log(100)] * len(found.expansion))


def test_it_ranks_exactly_the_passages_given(encoder):
    passages = [*GIVEN, ("empty", ""), ("twin", PASSAGES["fish1"])]
    found = rerank_texts(
        "do goldfish grow", passages, encoder=encoder, feedback=ColbertPRF(rerank_depth=2, rerank=True)
    )
    assert sorted(found.doc_ids) == sorted(doc_id for doc_id, _ in passages)
    assert found.doc_ids.index("twin") == found.doc_ids.index("fish1") + 1, "of equals, the one given first"
    assert rerank_texts("do goldfish grow", passages, encoder=encoder, k=3).doc_ids == found.doc_ids[:3]


def test_feedback_may_trust_the_order_given(encoder):
    feedback = ColbertPRF(feedback_docs=2)
    options = {"encoder": encoder, "feedback": feedback}
    given = rerank_texts("do goldfish grow", GIVEN, feedback_from="given", **options)
    assert given.expansion.feedback == ("war1", "fish2")
    by_score = rerank_texts("do goldfish grow", GIVEN, **options)
    assert by_score.expansion.feedback == tuple(by_score.before.doc_ids[:2])
    assert given.before.doc_ids == by_score.before.doc_ids


def test_without_feedback_it_is_maxsim(given, encoder, goldfish):
    found = rerank_texts(goldfish, GIVEN, encoder=encoder, feedback=None)
    assert scores(found) == scores(Searcher(given).search(goldfish, k=len(GIVEN)))
    assert found.expansion is None
    assert found.before is None


def test_no_passages_give_an_empty_ranking(encoder):
    found = rerank_texts("do goldfish grow", [], encoder=encoder)
    assert found.doc_ids == []
    assert len(found.expansion) == 0


def test_every_weighting_has_its_frequencies(encoder, memory):
    counted = TokenFrequencies.count(memory.texts, encoder=encoder, progress=False)
    found = rerank_texts(
        "do goldfish grow", GIVEN, encoder=encoder, frequencies=counted, feedback=ColbertPRF(weighting="ictf")
    )
    assert len(found.expansion)
    without = TokenFrequencies(counted.num_documents, counted.document_frequencies)
    with pytest.raises(InputError, match="no collection_frequencies"):
        rerank_texts("fish", GIVEN, encoder=encoder, frequencies=without, feedback=ColbertPRF(weighting="ictf"))


def test_what_cannot_be_used_is_refused(encoder):
    for options, message in (
        ({"k": 0}, "k must be at least 1, found 0"),
        ({"feedback_from": "hope"}, "feedback_from must be one of"),
        ({"feedback": CentroidPRF()}, "CentroidPRF needs an index folder"),
        ({"frequencies": TokenFrequencies(1, np.zeros(10**6, np.int64))}, "count them with the tokenizer of the same"),
    ):
        with pytest.raises(InputError, match=message):
            rerank_texts("fish", GIVEN, encoder=encoder, **options)
    with pytest.raises(InputError, match="was given twice"):
        rerank_texts("fish", [*GIVEN, GIVEN[0]], encoder=encoder)
    with pytest.raises(InputError, match="dim 2, the model of dim 96"):
        rerank_texts(EncodedQuery(np.array([1], np.int32), np.eye(2, dtype=np.float32)[:1]), GIVEN, encoder=encoder)
    with pytest.raises(TextError, match="the query is empty"):
        rerank_texts(" ", GIVEN, encoder=encoder)
