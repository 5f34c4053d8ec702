"""Which representatives are looked up, and that those of highest σ are among them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from colbert_prf import ColbertPRF, Searcher
from colbert_prf.feedback.base import likely_tokens
from colbert_prf.feedback.naming import GLANCED, look_up
from colbert_prf.feedback.source import FeedbackVectors, Glance, NearTokens, SnapshotSource
from colbert_prf.feedback.weighting import UNNAMED, weigh
from colbert_prf.kernels.parallel import ALONE

SPECIAL = 0
FEEDBACK = FeedbackVectors(*(np.empty(0, np.int64) for _ in range(6)))


class Table:
    """Knows what is near each representative, by its number; a representative is a vector of one component."""

    special_ids = frozenset({SPECIAL})

    def __init__(self, glanced, near) -> None:
        self.glanced, self.near = (np.array(rows, np.int32) for rows in (glanced, near))
        self.looked_up: list[int] = []

    def glance(self, vectors, count, feedback):
        near = NearTokens(self.glanced.copy(), np.zeros(self.glanced.shape, np.float32))
        return Glance(near, np.zeros(self.glanced.shape, np.int64))

    def nearest_tokens(self, vectors, count, feedback, workers):
        glance = self.glance(vectors, count, feedback)
        self.look_closer(vectors, glance, feedback, workers)
        return glance.near

    def look_closer(self, vectors, glance, feedback, workers):
        near = glance.near
        numbers = vectors[:, 0].astype(int)
        assert np.array_equal(near.token_ids, self.glanced[numbers])
        self.looked_up += numbers.tolist()
        near.token_ids[:] = self.near[numbers]

    def likely(self, count):
        return look_up(self._vectors, FEEDBACK, self, 2, sigma, ALONE, likely=count)

    def every(self):
        return look_up(self._vectors, FEEDBACK, self, 2, sigma, ALONE)

    @property
    def _vectors(self):
        return np.arange(len(self.near), dtype=np.float32)[:, None]


def sigma(token_ids):
    """A token's σ is its number; special and missing ones have none."""
    return np.where(token_ids > SPECIAL, token_ids, UNNAMED).astype(np.float64)


def test_those_come_first_that_are_near_a_rare_token():
    """Of six representatives two are wanted, so four are looked up at first, by the rarest token at a glance.

    They have σ of 9, 2, 3 and 4: the second best is 4. The rarest near number 5 is 5, so it may be better; it is.
    Number 0, with 1 at best, is not looked up.
    """
    table = Table([[1, 1], [9, 1], [7, 2], [6, 3], [6, 4], [5, 5]], [[1, 1], [9, 9], [2, 2], [3, 3], [4, 4], [5, 5]])
    names = table.likely(2)
    assert table.looked_up == [1, 2, 3, 4, 5]
    assert names.order[:2].tolist() == [1, 5]
    assert names.token_ids.tolist() == [-1, 9, 2, 3, 4, 5]


def test_a_second_round_is_not_needed_where_the_rest_cannot_be_better():
    table = Table([[1, 1]] * 4 + [[9, 9]] * 4, [[1, 1]] * 4 + [[8, 8]] * 4)
    assert table.likely(2).order[:2].tolist() == [4, 5]
    assert sorted(table.looked_up) == [4, 5, 6, 7]


def test_all_are_looked_up_where_too_few_have_a_token():
    """Those looked up first turn out to be special; the others look no better and are needed all the same."""
    table = Table([[9, 9]] * 4 + [[SPECIAL, -1]] * 2, [[SPECIAL, SPECIAL]] * 4 + [[SPECIAL, 3], [SPECIAL, SPECIAL]])
    assert table.likely(2).order[:2].tolist() == [4]
    assert table.looked_up == [0, 1, 2, 3, 4, 5]


@given(st.lists(st.lists(st.integers(0, 9), min_size=2, max_size=2), min_size=1, max_size=20), st.integers(1, 12))
def test_where_the_token_is_one_of_those_at_a_glance_it_is_as_if_all_were_looked_up(near, count):
    table = Table(near, near)
    assert table.likely(count).order[:count].tolist() == table.every().order[:count].tolist()


@pytest.mark.parametrize("method", ["idf", "ictf", "cosine"])
def test_over_an_index_the_same_are_added(open_index, goldfish, method):
    source = SnapshotSource(open_index(4).snapshot)
    feedback = source.vectors_of(source.positions(["fish1", "fish2", "war1"]))
    vectors = feedback.vectors[::3] * np.float32(0.9)

    def weighed(token_ids):
        return weigh(method, goldfish, vectors, token_ids, source)

    arguments = (vectors, feedback, source, 10, weighed, ALONE)
    some, every = look_up(*arguments, likely=3), look_up(*arguments)
    assert some.order[:3].tolist() == every.order[:3].tolist()
    assert 5 <= np.count_nonzero(some.token_ids >= 0) <= len(vectors)
    named = some.token_ids >= 0
    assert some.token_ids[named].tolist() == every.token_ids[named].tolist()
    assert source.glance(vectors, 10, feedback).near.token_ids.shape[1] >= GLANCED


def test_a_special_token_that_is_nearest_is_dropped():
    """The most frequent of the others is the token."""
    table = Table([[SPECIAL] * 4 + [9]] * 2, [[SPECIAL] * 3 + [8, 8]] * 2)
    assert table.likely(2).token_ids.tolist() == [8, 8]
    assert table.looked_up == [0, 1]


def test_likely_tokens_are_those_of_the_nearest_vectors_of_the_index(open_index, goldfish):
    index = open_index(4)
    ranking = Searcher(index).search(goldfish, feedback=ColbertPRF(clusters=6, expansion_vectors=4))
    expansion, source = ranking.expansion, SnapshotSource(index.snapshot)
    feedback = source.vectors_of(source.positions(expansion.feedback))
    for vector, shown in zip(expansion.query.vectors[expansion.num_original :], expansion.vectors, strict=True):
        near = source.nearest_tokens(vector[np.newaxis], 10, feedback).token_ids[0]
        assert shown.likely == likely_tokens(near, source.special_ids)
        assert len(near) == 10
