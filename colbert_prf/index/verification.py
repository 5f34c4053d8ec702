"""Checking a segment of an index: every array against the others."""

from __future__ import annotations

import numpy as np

from colbert_prf.errors import IndexFormatError
from colbert_prf.index.segment import Segment
from colbert_prf.index.segment_writer import document_frequencies, token_postings
from colbert_prf.index.snapshot import Snapshot
from colbert_prf.kernels.postings import encode_postings
from colbert_prf.storage.arrays import Array
from colbert_prf.storage.verification import expect, verify_texts

__all__ = ["verify_segment"]


def verify_segment(snapshot: Snapshot, segment: Segment) -> None:
    """Refuse arrays that contradict each other; their bytes have been compared with their checksums.

    Raises
    ------
    IndexFormatError
        Naming the file.
    """
    _verify_offsets(segment)
    _verify_codes(segment, snapshot)
    _verify_deletions(segment)
    verify_texts(segment, texts=snapshot.manifest.settings.texts)
    for position in range(len(segment)):
        segment.metadata(position)
    _verify_fields(segment)


def _verify_fields(segment: Segment) -> None:
    if "field_names" not in segment.arrays:
        return
    expected = segment.metadata_as_fields()
    for name, array in expected.arrays().items():
        same = np.array_equal(array, segment.arrays[name])
        expect(same, segment, name, "the columns are not those of the metadata")
    same = list(expected.strings) == list(segment.fields.strings)
    expect(same, segment, "field_strings_blocks", "the strings are not those of the metadata")


def _verify_offsets(segment: Segment) -> None:
    for name in ("offsets", "id_offsets", "list_offsets", "token_list_offsets", "texts_offsets", "metadata_offsets"):
        array = segment.arrays.get(name)
        if array is not None:
            expect(bool((array[1:] >= array[:-1]).all()), segment, name, "offsets must not fall")


def _verify_codes(segment: Segment, snapshot: Snapshot) -> None:
    size = snapshot.manifest.settings.vocabulary_size
    codes = segment.columns["codes"]
    expect(int(segment.token_ids.max(initial=0)) < size, segment, "token_ids", "a token is not in the vocabulary")
    lists, list_offsets = encode_postings(codes, segment.offsets, snapshot.codec.num_centroids)
    same = np.array_equal(lists, segment.lists) and np.array_equal(list_offsets, segment.list_offsets)
    expect(same, segment, "lists", "the lists are not those of the codes")
    total = np.zeros(size, dtype=np.int64)
    for start, end in segment.ranges():
        tokens = segment.token_ids[segment.offsets[start] : segment.offsets[end]]
        total += document_frequencies(tokens, np.diff(segment.offsets[start : end + 1]), size)
    stored = segment.arrays["frequencies"]
    expect(_equal_but_zeros(total, stored), segment, "frequencies", "the frequencies are not those of the tokens")
    if segment.has_token_lists:
        lists, list_offsets = token_postings(segment.token_ids, segment.offsets, stored)
        same = np.array_equal(lists, segment.arrays["token_lists"])
        same = same and np.array_equal(list_offsets, segment.arrays["token_list_offsets"])
        expect(same, segment, "token_lists", "the lists are not those of the tokens")


def _verify_deletions(segment: Segment) -> None:
    deletions = segment.info.deletions
    if deletions is None:
        return
    arrays, counts = segment.deletion_details(segment.deleted)
    if counts["num_vectors"] != deletions.num_vectors:
        path = segment.deletion_path("deleted")
        raise IndexFormatError("the manifest has another number of vectors of deleted documents", path=path)
    if not _equal_but_zeros(arrays["frequencies"].astype(np.int64), segment.deletion_arrays["frequencies"]):
        path = segment.deletion_path("frequencies")
        raise IndexFormatError("the frequencies are not those of the deleted documents", path=path)


def _equal_but_zeros(total: Array, stored: Array) -> bool:
    common = min(len(total), len(stored))
    return np.array_equal(total[:common], stored[:common]) and not total[common:].any() and not stored[common:].any()
