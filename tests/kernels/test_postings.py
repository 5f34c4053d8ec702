from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from colbert_prf.kernels.postings import decode_postings, encode_postings


def test_numbers_worked_out_by_hand():
    # Code 1 is in document 0 and in document 300: 0, then 300 - 0 - 1 = 299 = 2 * 128 + 43, as 43 + 128 and 2.
    codes = np.ones(2, dtype=np.uint16)
    offsets = np.array([0] + 300 * [1] + [2])
    lists, list_offsets = encode_postings(codes, offsets, 3)
    assert lists.tolist() == [0, 171, 2]
    assert list_offsets.tolist() == [0, 0, 3, 3]


@given(
    st.lists(st.lists(st.integers(0, 9), max_size=4), max_size=20),
    st.sampled_from([1, 100, 200, 20_000]),
)
def test_lists_are_the_documents_of_each_code(documents, spread):
    """Documents lie ``spread`` apart, with empty ones between, so that distances take one to three bytes."""
    lengths = np.zeros(len(documents) * spread, dtype=np.int64)
    lengths[::spread] = [len(codes) for codes in documents]
    codes = np.array([code for document in documents for code in document], dtype=np.uint16)
    lists, list_offsets = encode_postings(codes, np.concatenate([[0], np.cumsum(lengths)]), 10)
    numbers, starts = decode_postings(lists, list_offsets)
    for code in range(10):
        expected = [number * spread for number, document in enumerate(documents) if code in document]
        assert numbers[starts[code] : starts[code + 1]].tolist() == expected
        alone = lists[list_offsets[code] : list_offsets[code + 1]]
        assert decode_postings(alone, np.array([0, len(alone)]))[0].tolist() == expected


@pytest.mark.parametrize("far", [127, 128, 16383, 16384, 2**21 - 1, 2**21])
def test_distances_at_the_edges_of_a_byte(far):
    lists = encode_postings(np.zeros(1, np.uint16), np.concatenate([np.zeros(far + 1, np.int64), [1]]), 1)[0]
    assert decode_postings(lists, np.array([0, len(lists)]))[0].tolist() == [far]
    digits = max(1, -(-far.bit_length() // 7))
    assert len(lists) == digits


def test_a_list_that_ends_within_a_number_is_refused():
    with pytest.raises(ValueError, match="the last list ends within a number"):
        decode_postings(np.array([0, 0x81], np.uint8), np.array([0, 2]))
