"""ColBERT over the candidates of another system."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from colbert_prf import ColbertPRF, InputError, MemoryIndex, Searcher
from colbert_prf.baselines.rerank import ColbertReranker, ColbertTextReranker

QUESTION = "how large does a goldfish become"
PRF = ColbertPRF(feedback_docs=1, clusters=4, expansion_vectors=2, weight=0.5)


def scores(ranking):
    return {hit.doc_id: hit.score for hit in ranking}


def test_scores_are_those_of_the_search(searcher, fixed):
    ranking = ColbertReranker(fixed("rain", "bank", "pond", "fish"), searcher).search(QUESTION)
    expected = searcher.search(QUESTION, k=5)
    assert scores(ranking) == pytest.approx({key: scores(expected)[key] for key in ("rain", "bank", "pond", "fish")})
    assert ranking.doc_ids == [doc_id for doc_id in expected.doc_ids if doc_id != "tank"]
    assert ranking.before.doc_ids == ["rain", "bank", "pond", "fish"]
    assert list(ranking.timings) == ["score", "re-ranking"]


def test_from_texts_is_nearly_the_same(searcher, fixed, encoder):
    first = fixed("rain", "bank", "pond", "fish")
    indexed, texts = ColbertReranker(first, searcher), ColbertTextReranker(first, encoder=encoder)
    assert scores(indexed.search(QUESTION)) == pytest.approx(scores(texts.search(QUESTION)), abs=0.02)


def test_other_texts_may_be_scored(fixed, encoder):
    texts = {"rain": QUESTION, "fish": "Nothing at all."}
    first = fixed("fish", "rain")
    assert ColbertTextReranker(first, encoder=encoder).search(QUESTION).doc_ids == ["fish", "rain"]
    assert ColbertTextReranker(first, encoder=encoder, text_of=texts.__getitem__).search(QUESTION).doc_ids == [
        "rain",
        "fish",
    ]


@settings(max_examples=25)
@given(order=st.permutations(["fish", "pond", "bank", "tank", "rain"]), depth=st.integers(1, 6), k=st.integers(1, 6))
def test_the_candidates_stay_the_same(searcher, fixed, order, depth, k):
    ranking = ColbertReranker(fixed(*order), searcher, depth=depth).search(QUESTION, k)
    wanted = order[: max(k, depth)]
    assert set(ranking.doc_ids) <= set(wanted)
    assert len(ranking) == min(k, len(wanted))
    found = [hit.score for hit in ranking]
    assert found == sorted(found, reverse=True)
    if k >= depth:
        assert set(ranking.doc_ids) == set(wanted)
        assert ranking.doc_ids[depth:] == wanted[depth:]
        behind = found[depth - 1 :]
        assert all(one > next_one for one, next_one in pairwise(behind))


@pytest.mark.parametrize("kind", ["index", "memory", "texts"])
def test_feedback_over_the_candidates(searcher, fixed, encoder, kind):
    first = fixed("rain", "bank", "pond", "fish")
    if kind == "texts":
        system = ColbertTextReranker(first, encoder=encoder, feedback=PRF)
    elif kind == "memory":
        index = MemoryIndex.create([(hit.doc_id, hit.text) for hit in first.hits], encoder=encoder, progress=False)
        system = ColbertReranker(first, Searcher(index), feedback=PRF)
    else:
        system = ColbertReranker(first, searcher, feedback=PRF)
    ranking = system.search(QUESTION)
    assert ranking.expansion.feedback[0] in {"pond", "fish"}
    assert len(ranking.expansion) == 2
    assert sorted(ranking.doc_ids) == ["bank", "fish", "pond", "rain"]
    plain = type(system)(first, **({"encoder": encoder} if kind == "texts" else {"searcher": system.searcher}))
    assert scores(plain.search(QUESTION)) != scores(ranking)


def test_feedback_with_all_documents_as_candidates_is_the_reranker(searcher, fixed):
    """Over every document the re-ranker learns and scores as the engine's ReRanker does."""
    everything = fixed("rain", "bank", "pond", "fish", "tank")
    ours = ColbertReranker(everything, searcher, feedback=PRF).search(QUESTION)
    engine = searcher.search(QUESTION, k=5, feedback=PRF)
    assert ours.expansion.feedback == engine.expansion.feedback
    assert scores(ours) == pytest.approx(scores(engine), abs=1e-4)


@pytest.mark.parametrize("feedback", [None, PRF])
def test_an_explanation_adds_up(searcher, fixed, feedback):
    system = ColbertReranker(fixed("rain", "bank", "pond", "fish"), searcher, feedback=feedback)
    explanation = system.explain(QUESTION, "pond")
    assert explanation.score == pytest.approx(scores(system.search(QUESTION))["pond"], abs=1e-3)
    assert len(explanation.matches) == len(searcher.encoder.encode_query(QUESTION)) + (2 if feedback else 0)
    with pytest.raises(InputError, match="Fixed does not explain"):
        system.first.explain(QUESTION, "pond")


def test_systems_stack(searcher, fixed):
    twice = ColbertReranker(ColbertReranker(fixed("rain", "fish"), searcher), searcher)
    assert twice.search(QUESTION).doc_ids == ["fish", "rain"]
    assert ColbertReranker(searcher, searcher).search(QUESTION, 3).doc_ids == searcher.search(QUESTION, 3).doc_ids


def test_no_candidates_and_unknown_candidates(searcher, fixed, encoder):
    for feedback in (None, PRF):
        assert ColbertReranker(fixed(), searcher, feedback=feedback).search(QUESTION).doc_ids == []
        with pytest.raises(InputError, match="no document 'other'"):
            ColbertReranker(fixed("fish", "other"), searcher, feedback=feedback).search(QUESTION)
    assert ColbertTextReranker(fixed(), encoder=encoder).search(QUESTION).doc_ids == []
    with pytest.raises(InputError, match="without its text"):
        ColbertTextReranker(fixed("other"), encoder=encoder).search(QUESTION)
    with pytest.raises(InputError, match="depth must be"):
        ColbertReranker(fixed(), searcher, depth=0)
