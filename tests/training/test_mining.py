"""Hard negatives: what may be one, and what may not."""

from __future__ import annotations

import pytest

from colbert_prf import Index, InputError, MemoryIndex, Searcher
from colbert_prf.training import Example, Mining, find_in_run, find_with, mine_negatives

RANKING = [(f"passage {number}", 10.0 - number) for number in range(10)]


def mined(examples, mining, ranking=RANKING):
    return list(mine_negatives(examples, lambda query: ranking, mining))


def test_a_positive_is_never_a_negative_in_any_example_of_the_question():
    asked = [Example("q", ("passage  0",)), Example("q", ("passage 1",)), Example("other", ("elsewhere",))]
    found = mined(asked, Mining(negatives=2, depth=4))
    assert [set(example.documents[1:]) for example in found[:2]] == [{"passage 2", "passage 3"}] * 2
    assert found[0].documents[0] == "passage  0"
    assert set(found[2].documents[1:]) <= {f"passage {n}" for n in range(4)}


def test_the_best_ranks_can_be_passed_over():
    (example,) = mined([Example("q", ("elsewhere",))], Mining(negatives=2, depth=5, skip=3))
    assert set(example.documents[1:]) == {"passage 3", "passage 4"}


def test_a_ceiling_is_a_share_of_the_score_of_the_positive():
    # The positive has 8; nine tenths of it are 7.2, which leaves 7 and less.
    (example,) = mined([Example("q", ("passage 2",))], Mining(negatives=1, depth=4, ceiling=0.9))
    assert example.documents == ("passage 2", "passage 3")


def test_an_example_with_too_few_passages_is_dropped():
    assert mined([Example("q", ("passage 0",))], Mining(negatives=3, depth=3)) == []


def test_the_drawing_depends_on_seed_and_question_only():
    first, second = Example("q", ("x",)), Example("r", ("y",))
    mining = Mining(negatives=3, depth=10)
    assert mined([first, second], mining) == list(reversed(mined([second, first], mining)))
    assert mined([first], mining) != mined([first], Mining(negatives=3, depth=10, seed=1))


def test_a_passage_is_drawn_once():
    ranking = [("same", 3.0), ("same ", 2.0), ("other", 1.0)]
    (example,) = mined([Example("q", ("x",))], Mining(negatives=2, depth=3), ranking)
    assert sorted(example.documents[1:]) == ["other", "same"]


def test_an_index_is_mined(encoder):
    passages = [("a", "Goldfish grow."), ("b", "Goldfish are fish."), ("c", "Rates fell.")]
    index = MemoryIndex.create(passages, encoder=encoder)
    found = find_with(Searcher(index), depth=2)
    (example,) = mine_negatives([Example("do goldfish grow", ("Goldfish grow.",))], found, Mining(negatives=1, depth=2))
    assert example.documents == ("Goldfish grow.", "Goldfish are fish.")


def test_an_index_without_texts_is_refused(encoder, tmp_path):
    index = Index.create(tmp_path / "index", [("a", "Goldfish grow.")], encoder=encoder, texts=False, progress=False)
    with pytest.raises(InputError, match="keeps no texts"):
        find_with(Searcher(index), depth=1)("goldfish")


def test_a_run_of_another_system_is_mined():
    run = {"1": {"a": 1.0, "b": 3.0, "c": 2.0}, "9": {"a": 1.0}}
    found = find_in_run(run, {"1": "question"}, {"a": "A", "b": "B", "c": "C"})
    assert found("question") == [("B", 3.0), ("C", 2.0), ("A", 1.0)]
    assert found("unknown") == []
    with pytest.raises(InputError, match="document 'c' for query '1'"):
        find_in_run(run, {"1": "question"}, {"a": "A", "b": "B"})


@pytest.mark.parametrize(
    ("options", "message"),
    [({"negatives": 0}, "at least 1"), ({"depth": 5}, "at least skip"), ({"ceiling": 0.0}, "positive")],
)
def test_mining_that_cannot_be(options, message):
    with pytest.raises(InputError, match=message):
        Mining(**options)


def test_a_ceiling_is_below_the_positive_also_where_scores_are_negative():
    found = [("good", -2.0), ("nearly", -2.05), ("worse", -2.5), ("better", -1.0)]
    [mined] = mine_negatives([Example("q", ("good",))], lambda query: found, Mining(negatives=1, ceiling=0.9))
    assert mined.documents == ("good", "worse")
