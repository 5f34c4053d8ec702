from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from colbert_prf.storage import identifiers
from colbert_prf.storage.identifiers import Identifiers, SeenIds, identifier_arrays

ANY_STRINGS = st.lists(st.text(st.characters(), max_size=6), unique=True, max_size=30)


@given(ANY_STRINGS, st.text(max_size=3))
def test_any_string_is_kept_and_found(doc_ids, other):
    found = Identifiers(identifier_arrays(doc_ids))
    assert list(found) == doc_ids
    assert [found.find(doc_id) for doc_id in doc_ids] == list(range(len(doc_ids)))
    if other not in doc_ids:
        assert found.find(other) is None


def test_a_lone_surrogate_and_a_null_are_strings_too():
    doc_ids = ["\ud800", "\x00", "", "\x00\x00", "ü"]
    found = Identifiers(identifier_arrays(doc_ids))
    assert list(found) == doc_ids
    assert found.many(np.array([4, 0, 2])) == ["ü", "\ud800", ""]
    assert found.many(np.array([], dtype=np.int64)) == []
    assert [found.find(doc_id) for doc_id in doc_ids] == [0, 1, 2, 3, 4]


def test_ids_with_the_same_hash_are_told_apart(monkeypatch):
    monkeypatch.setattr(identifiers, "_hash", lambda raw: 7)
    found = Identifiers(identifier_arrays(["a", "b", "c"]))
    assert [found.find(doc_id) for doc_id in ("c", "a", "b", "d")] == [2, 0, 1, None]


@given(st.lists(st.text(st.sampled_from("abc"), max_size=3), max_size=60), st.integers(1, 8))
def test_a_set_of_seen_ids_is_a_set(doc_ids, recent):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(identifiers, "RECENT_IDS", recent)
        seen, plain = SeenIds(), set()
        for doc_id in doc_ids:
            assert seen.add(doc_id) == (doc_id not in plain)
            plain.add(doc_id)


def test_seen_ids_lie_in_few_arrays(monkeypatch):
    monkeypatch.setattr(identifiers, "RECENT_IDS", 4)
    seen = SeenIds()
    for number in range(1000):
        seen.add(str(number))
    sizes = [len(array) for array in seen._sorted]
    assert sum(sizes) + len(seen._recent) == 1000
    assert all(first > 2 * second for first, second in pairwise(sizes))


@pytest.mark.parametrize("odd", ["plain", "ü", "two\nlines", "\ud800"])
def test_many_ids_are_those_read_one_by_one(odd):
    ids = ["", "a", "42", "x" * 300, "b-7", odd]
    found = Identifiers(identifier_arrays(ids))
    for places in ([5, 0, 0, 3, 1], [2], [0], [4, 4], [5, 1, 0, 4, 2, 3] * 10, [1, 2] * 30):
        assert found.many(np.array(places)) == [ids[place] for place in places]
