"""Verification of a segment of an index: every array against the others."""

from __future__ import annotations

import numpy as np

from colbert_prf.errors import IndexFormatError
from colbert_prf.index.segment import Segment
from colbert_prf.index.segment_writer import document_frequencies, token_postings
from colbert_prf.index.snapshot import Snapshot
from colbert_prf.kernels.postings import encode_postings
from colbert_prf.storage.arrays import Array
from colbert_prf.storage.verification import require, verify_metadata, verify_texts

__all__ = ["verify_segment"]


def verify_segment(snapshot: Snapshot, segment: Segment) -> None:
    """Refuse arrays that contradict each other; their checksums are right.

    Raises
    ------
    IndexFormatError
        It names the file.
    """
    _verify_offsets(segment)
    _verify_codes(segment, snapshot)
    _verify_deletions(segment)
    verify_texts(segment, texts=snapshot.manifest.settings.texts)
    verify_metadata(segment)


def _verify_offsets(segment: Segment) -> None:
    for name in ("offsets", "id_offsets", "list_offsets", "token_list_offsets", "texts_offsets", "metadata_offsets"):
        array = segment.arrays.get(name)
        if array is not None:
            require(bool((array[1:] >= array[:-1]).all()), segment, name, "offsets must not fall")


def _verify_codes(segment: Segment, snapshot: Snapshot) -> None:
    vocabulary_size = snapshot.manifest.settings.vocabulary_size
    largest_token = int(segment.token_ids.max(initial=0))
    require(largest_token < vocabulary_size, segment, "token_ids", "a token is not in the vocabulary")
    lists, list_offsets = encode_postings(segment.columns["codes"], segment.offsets, snapshot.codec.num_centroids)
    equal = np.array_equal(lists, segment.lists) and np.array_equal(list_offsets, segment.list_offsets)
    require(equal, segment, "lists", "the lists are not those of the codes")
    frequencies = np.zeros(vocabulary_size, dtype=np.int64)
    for start, end in segment.ranges():
        tokens = segment.token_ids[segment.offsets[start] : segment.offsets[end]]
        frequencies += document_frequencies(tokens, np.diff(segment.offsets[start : end + 1]), vocabulary_size)
    equal = _equal_up_to_zeros(frequencies, segment.arrays["frequencies"])
    require(equal, segment, "frequencies", "the frequencies are not those of the tokens")
    if segment.has_token_lists:
        lists, list_offsets = token_postings(segment.token_ids, segment.offsets, segment.arrays["frequencies"])
        equal = np.array_equal(lists, segment.arrays["token_lists"])
        equal = equal and np.array_equal(list_offsets, segment.arrays["token_list_offsets"])
        require(equal, segment, "token_lists", "the lists are not those of the tokens")


def _verify_deletions(segment: Segment) -> None:
    deletions = segment.info.deletions
    if deletions is None:
        return
    arrays, fields = segment.deletion_statistics(segment.deleted)
    if fields["num_vectors"] != deletions.num_vectors:
        path = segment.deletion_path("deleted")
        raise IndexFormatError("the manifest has another number of vectors of deleted documents", path=path)
    if not _equal_up_to_zeros(arrays["frequencies"].astype(np.int64), segment.deletion_arrays["frequencies"]):
        path = segment.deletion_path("frequencies")
        raise IndexFormatError("the frequencies are not those of the deleted documents", path=path)


def _equal_up_to_zeros(first: Array, second: Array) -> bool:
    """Compare two arrays, of which the shorter stands for one with zeros at its end."""
    length = min(len(first), len(second))
    return np.array_equal(first[:length], second[:length]) and not first[length:].any() and not second[length:].any()
