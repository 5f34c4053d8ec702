from __future__ import annotations

import numpy as np
import pytest
from vectors import PARTS, YEARS, Texts, filled_up, folder_bytes, joined, open_cache


def same(one: Texts, other: Texts) -> bool:
    return all(np.array_equal(getattr(one, part), getattr(other, part)) for part in PARTS)


def test_what_is_saved_is_loaded(tmp_path, random_texts):
    texts = random_texts([3, 1, 2])
    texts.save(tmp_path, "some")
    assert same(Texts.load(tmp_path, "some"), texts)
    assert folder_bytes(tmp_path) >= texts.vectors.nbytes


def test_the_first_texts_and_all_joined(random_texts):
    texts = random_texts([3, 1, 2])
    first = texts.first(2)
    assert [len(ids) for _, ids, _ in first] == [3, 1]
    assert len(first.vectors) == 4
    assert same(joined([texts]), texts)
    assert same(texts.first(3), texts)
    assert same(texts.first(9), texts)


def test_queries_are_filled_up_with_near_copies_of_their_own_vectors(random_texts):
    queries = random_texts([2, 40], seed=7)
    filled = filled_up(queries, 32)
    (_, ids, vectors), (_, _, long) = filled
    (_, own_ids, own), (_, _, own_long) = queries
    assert vectors.shape == (32, 16)
    assert np.array_equal(vectors[:2], own)
    assert ids.tolist() == own_ids.tolist() * 16
    assert np.array_equal(long, own_long)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1, abs=1e-5)
    copied = np.tile(own, (15, 1))
    cosines = np.einsum("ij,ij->i", vectors[2:], copied)
    assert (cosines > 0.6).all()
    assert (cosines < 0.99).all()
    assert same(filled_up(queries, 32), filled)


def test_a_cache_is_made_once_and_refused_for_another_model(tmp_path, random_texts):
    made = []

    def encode(name):
        made.append(name)
        return random_texts([2, 3])

    documents, years = open_cache(tmp_path, "one", encode)
    assert sorted(made) == sorted([*YEARS, "documents"])
    again, _ = open_cache(tmp_path, "one", encode)
    assert same(again, documents)
    assert years.keys() == set(YEARS)
    assert len(made) == 3
    with pytest.raises(SystemExit, match="made with the model one, not two"):
        open_cache(tmp_path, "two", encode)
