"""Any ranking system answers the same way, the searcher among them."""

from __future__ import annotations

import threading

import pytest

from colbert_prf import CentroidPRF, ColbertPRF, EncodedQuery, InputError, MemoryIndex, Retriever, Searcher
from colbert_prf.baselines import Fusion

TEXTS = [("a", "Goldfish grow all their life."), ("b", "Bank rates fell."), ("c", "A fish tank limits growth.")]
QUESTIONS = ["do goldfish grow", "interest of a bank", "tank", "life"]
SMALL = ColbertPRF(feedback_docs=1, clusters=3, expansion_vectors=2)


@pytest.fixture(scope="module")
def searcher():
    with Searcher(MemoryIndex.create(TEXTS)) as searcher:
        yield searcher


def shown(ranking):
    return list(zip(ranking.doc_ids, ranking.scores, strict=True))


def test_a_searcher_is_a_system_that_others_build_on(searcher):
    assert isinstance(searcher, Retriever)
    fused = Fusion([searcher, searcher.with_defaults(feedback=SMALL)]).search("do goldfish grow", k=2)
    assert fused.doc_ids == ["a", "c"]


def test_defaults_hold_for_every_search_that_does_not_say_otherwise(searcher):
    with Searcher(searcher.index, k=2, feedback=SMALL, threads=1) as system:
        expected = searcher.search("do goldfish grow", k=2, feedback=SMALL)
        assert shown(system.search("do goldfish grow")) == shown(expected)
        assert shown(system.search("do goldfish grow", k=3)) == shown(
            searcher.search("do goldfish grow", 3, feedback=SMALL)
        )
        plain = system.search("do goldfish grow", feedback=False)
        assert plain.expansion is None
        assert shown(plain) == shown(searcher.search("do goldfish grow", k=2))


def test_other_defaults_leave_the_searcher_as_it_was(searcher):
    changed = searcher.with_defaults(k=1, feedback="prf")
    assert (changed.options.k, changed.options.feedback) == (1, ColbertPRF())
    assert (searcher.options.k, searcher.options.feedback) == (10, None)
    assert changed.with_defaults(feedback=None).options.k == 1
    changed.close()
    assert len(searcher.search("tank")) == 3
    with pytest.raises(
        InputError, match="no default 'bits'; it has k, feedback, probes, rescore, exact, where, group, threads"
    ):
        searcher.with_defaults(bits=4)


def test_a_feedback_method_may_be_named(searcher):
    named = searcher.search("do goldfish grow", feedback="prf")
    assert shown(named) == shown(searcher.search("do goldfish grow", feedback=ColbertPRF()))
    with pytest.raises(InputError, match="no feedback method 'rm3'; choose prf or centroid"):
        searcher.search("do goldfish grow", feedback="rm3")
    with pytest.raises(InputError, match="feedback must be a feedback method"):
        Searcher(searcher.index, feedback=CentroidPRF)


@pytest.mark.parametrize("defaults", [{"k": 0}, {"probes": 0}, {"rescore": -1}, {"threads": 0}, {"k": "ten"}])
def test_wrong_defaults_are_refused_at_once(searcher, defaults):
    with pytest.raises(InputError, match=f"{next(iter(defaults))} must be"):
        Searcher(searcher.index, **defaults)


def test_a_hit_of_feedback_is_explained_by_the_query_that_found_it(searcher):
    system = searcher.with_defaults(feedback=SMALL)
    for hit in (ranking := system.search("do goldfish grow", k=3)):
        explanation = system.explain("do goldfish grow", hit.doc_id, k=3)
        assert explanation.score == pytest.approx(hit.score, abs=1e-5)
        assert len(explanation.matches) == len(ranking.encoded_query)
        again = system.explain(ranking.encoded_query, hit.doc_id)
        assert again.score == pytest.approx(hit.score, abs=1e-5)


def test_an_explanation_searches_as_deep_as_the_search_did(searcher, monkeypatch):
    asked, search, system = [], searcher.search, searcher.with_defaults(feedback=SMALL)
    monkeypatch.setattr(system, "search", lambda query, k: asked.append(k) or search(query, k))
    system.explain("do goldfish grow", "a", k=2)
    assert asked == [2]


def test_a_closed_searcher_says_so(searcher):
    with Searcher(searcher.index) as opened:
        copy = opened.with_defaults(k=1)
        assert len(opened.search("tank")) == 3
    for closed in (opened, copy):
        with pytest.raises(InputError, match="the searcher is closed"):
            closed.search("tank")
    opened.close()  # again, which does nothing


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("feedback", [None, SMALL])
def test_many_queries_are_answered_as_one_by_one_and_in_order(searcher, threads, feedback):
    queries = [*QUESTIONS, searcher.encode("goldfish"), *reversed(QUESTIONS)] * 3
    found = list(searcher.search_many(iter(queries), 2, feedback=feedback, threads=threads))
    assert [shown(ranking) for ranking in found] == [
        shown(searcher.search(query, 2, feedback=feedback)) for query in queries
    ]


def test_many_queries_are_read_as_they_are_needed(searcher):
    read, before = [], set(threading.enumerate())

    def endless():
        while True:
            read.append(len(read))
            yield "tank"

    rankings = searcher.search_many(endless(), 1, threads=2)
    assert [next(rankings).doc_ids for _ in range(3)] == [["c"]] * 3
    rankings.close()
    assert len(read) <= 3 + 2 * 8
    assert not {thread for thread in threading.enumerate() if "ThreadPoolExecutor" in thread.name} - before


def test_an_error_comes_in_its_turn(searcher):
    rankings = searcher.search_many(["tank", "", "life"], threads=2)
    assert next(rankings).doc_ids[0] == "c"
    with pytest.raises(InputError, match="empty"):
        next(rankings)


def test_many_queries_take_the_defaults(searcher):
    system = searcher.with_defaults(k=1, feedback=SMALL)
    (ranking,) = system.search_many(["do goldfish grow"])
    assert (len(ranking), len(ranking.expansion)) == (1, 2)
    assert isinstance(ranking.query, EncodedQuery)


class Echo(Retriever):
    def search(self, query, k=10):
        return (query, k)


def test_any_system_answers_many_queries_in_order():
    assert list(Echo().search_many(["x", "y"], 5)) == [("x", 5), ("y", 5)]
    assert list(Echo().search_many(["x"])) == [("x", 10)]


@pytest.mark.parametrize("queries", ["fish", "", b"fish", None, 3, {"q1": "fish"}])
def test_several_queries_are_a_collection(searcher, queries):
    for system in (searcher, Echo(), Fusion([searcher])):
        with pytest.raises(InputError, match=r"search_many takes several queries.*found"):
            system.search_many(queries)


def test_one_query_for_many_is_told_what_to_give(searcher):
    with pytest.raises(InputError, match=r"found 'fish'; give \['fish'\] or use search"):
        searcher.search_many("fish")
    with pytest.raises(InputError, match="found one EncodedQuery; give a list or use search"):
        searcher.search_many(searcher.encode("fish"))
