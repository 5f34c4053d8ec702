from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from colbert_prf.kernels.candidates import (
    candidates,
    list_sums,
    list_sums_definition,
    probed_centroids,
    probed_centroids_definition,
)
from colbert_prf.kernels.postings import encode_postings

NUM_CENTROIDS = 20


@pytest.mark.parametrize("probes", [1, 4, NUM_CENTROIDS, 10 * NUM_CENTROIDS])
def test_probing_equals_its_definition(num_query_vectors, probes):
    values = np.random.default_rng(0).integers(0, 256, (NUM_CENTROIDS, 64)).astype(np.uint8)
    expected = probed_centroids_definition(values, num_query_vectors, probes)
    assert np.array_equal(probed_centroids(values, num_query_vectors, probes), expected)


def test_probing_by_hand():
    values = np.array([[9, 1, 0], [7, 2, 255], [8, 2, 0]], np.uint8)
    assert probed_centroids(values, 1, 1).tolist() == [0]
    assert probed_centroids(values, 1, 2).tolist() == [0, 2]
    assert probed_centroids(values, 2, 1).tolist() == [0, 1, 2]  # 1 and 2 tie for the second query vector


@given(lengths=st.lists(st.integers(0, 9), min_size=1, max_size=400), seed=st.integers(0, 99))
def test_candidates_are_the_documents_of_the_centroids(lengths, seed):
    random = np.random.default_rng(seed)
    offsets = np.cumsum([0, *lengths])
    codes = random.integers(0, NUM_CENTROIDS, offsets[-1]).astype(np.uint16)
    lists, list_offsets = encode_postings(codes, offsets, NUM_CENTROIDS)
    for chosen in (np.empty(0, np.int64), np.array([3]), np.array([0, 7, 19])):
        expected = [bool(set(codes[offsets[d] : offsets[d + 1]]) & set(chosen)) for d in range(len(lengths))]
        assert candidates(lists, list_offsets, chosen, len(lengths)).tolist() == expected


@given(lengths=st.lists(st.integers(0, 9), min_size=1, max_size=400), seed=st.integers(0, 99))
def test_a_document_has_the_sum_of_the_values_of_its_lists(lengths, seed):
    random = np.random.default_rng(seed)
    offsets = np.cumsum([0, *lengths])
    codes = random.integers(0, NUM_CENTROIDS, offsets[-1]).astype(np.uint16)
    lists, list_offsets = encode_postings(codes, offsets, NUM_CENTROIDS)
    for chosen in (np.empty(0, np.int64), np.array([3]), np.array([0, 7, 19])):
        values = random.random(len(chosen), np.float32)
        sums = list_sums(lists, list_offsets, chosen, values, len(lengths))
        value_of = dict(zip(chosen.tolist(), values.tolist(), strict=True))
        codes_of = [set(codes[offsets[d] : offsets[d + 1]].tolist()) for d in range(len(lengths))]
        assert sums.tolist() == pytest.approx([sum(value_of.get(code, 0.0) for code in some) for some in codes_of])
        assert np.array_equal(sums, list_sums_definition(lists, list_offsets, chosen, values, len(lengths)))


def test_documents_far_apart_take_several_bytes():
    codes, lengths = np.zeros(3, np.uint16), np.zeros(70_000, int)
    lengths[[5, 300, 69_999]] = 1
    lists, list_offsets = encode_postings(codes, np.concatenate([[0], np.cumsum(lengths)]), 1)
    assert len(lists) == 1 + 2 + 3
    assert np.flatnonzero(candidates(lists, list_offsets, np.array([0]), 70_000)).tolist() == [5, 300, 69_999]


@pytest.mark.parametrize(
    "lists",
    [
        [2, 0],  # documents 2 and 3, of three
        [0x82, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01],  # a number of 84 bits
        [0xFF] * 20 + [0x7F],
        [0x80] * 9 + [0x01],  # 2**63, which is negative as an int64
        [0x81],  # a number that goes on after the end
    ],
)
def test_damaged_lists_are_refused(lists):
    with pytest.raises(ValueError, match="a list ends within a number, or names a document from 3 on"):
        candidates(np.array(lists, np.uint8), np.array([0, len(lists)]), np.array([0]), 3)
    with pytest.raises(ValueError, match="ends within a number, or names a document from 3 on"):
        list_sums(np.array(lists, np.uint8), np.array([0, len(lists)]), np.array([0]), np.ones(1, np.float32), 3)


def test_what_follows_a_damaged_list_is_no_matter():
    lists = np.array([0x81, 2], np.uint8)  # the first list goes on into the second
    with pytest.raises(ValueError, match="a list ends within a number"):
        candidates(lists, np.array([0, 1, 2]), np.array([0]), 3)
    assert candidates(lists, np.array([0, 1, 2]), np.array([1]), 3).tolist() == [False, False, True]
