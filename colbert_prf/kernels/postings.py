"""Inverted lists, centroid to documents, in about one byte per entry."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["decode_postings", "encode_postings"]


def encode_postings(
    codes: npt.NDArray[np.unsignedinteger[Any]], offsets: npt.NDArray[np.int64], num_lists: int
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """List the documents that have a vector with each code.

    A list is ascending without repetition. Its first document, and then the distance to each next one less one, are
    written in base 128, least digit first, with 128 added to every byte but a number's last (LEB128).

    Parameters
    ----------
    codes
        The code of each vector, below ``num_lists``, of shape (num_vectors,).
    offsets
        Document ``i`` owns the vectors ``offsets[i]:offsets[i + 1]``.
    num_lists
        How many codes there are.

    Returns
    -------
    lists, list_offsets
        The bytes of all lists, and where each begins and the last ends, of shape (num_lists + 1,).

    Examples
    --------
    Code 0 is in documents 0 and 2, code 1 in document 1, code 2 nowhere:

    >>> lists, list_offsets = encode_postings(np.array([0, 0, 1, 0]), np.array([0, 2, 3, 4]), 3)
    >>> lists.tolist(), list_offsets.tolist()
    ([0, 1, 1], [0, 2, 3, 3])
    """
    num_documents = len(offsets) - 1
    documents = np.repeat(np.arange(num_documents, dtype=np.int64), np.diff(offsets))
    keys = np.unique(codes.astype(np.int64) * max(num_documents, 1) + documents)
    owners, documents = np.divmod(keys, max(num_documents, 1))
    starts = np.searchsorted(owners, np.arange(num_lists + 1))
    numbers = np.diff(documents, prepend=-1) - 1
    first = starts[:-1][starts[:-1] < starts[1:]]
    numbers[first] = documents[first]
    lengths = np.ones(len(numbers), dtype=np.int64)
    for digits in range(1, 5):
        lengths += numbers >= 1 << (7 * digits)
    ends = np.cumsum(lengths)
    lists = np.empty(ends[-1] if len(ends) else 0, dtype=np.uint8)
    for digit in range(5):
        has = lengths > digit
        more = lengths[has] > digit + 1
        lists[(ends - lengths)[has] + digit] = (numbers[has] >> (7 * digit) & 127) | (more << 7)
    return lists, np.concatenate([[0], ends])[starts].astype(np.int64)


def decode_postings(
    lists: npt.NDArray[np.uint8], list_offsets: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Read lists written by :func:`encode_postings`.

    Parameters
    ----------
    lists
        The bytes of some lists, one after the other.
    list_offsets
        Where each begins and the last ends, from 0, of shape (num_lists + 1,).

    Returns
    -------
    documents, starts
        The documents of all lists, and where each list begins among them, of shape (num_lists + 1,).

    Raises
    ------
    ValueError
        If the last list ends within a number.

    Examples
    --------
    >>> documents, starts = decode_postings(np.array([0, 1, 1], dtype=np.uint8), np.array([0, 2, 3, 3]))
    >>> documents.tolist(), starts.tolist()
    ([0, 2, 1], [0, 2, 3, 3])
    """
    last = lists < 128
    if len(lists) and not last[-1]:
        raise ValueError("the last list ends within a number")
    begins = np.flatnonzero(np.concatenate([[True], last[:-1]]))[: len(lists)]
    starts = np.concatenate([[0], np.cumsum(last)])[list_offsets]
    if not len(lists):
        return np.empty(0, dtype=np.int64), starts
    digit = np.arange(len(lists)) - begins[np.cumsum(last) - last]
    numbers = np.add.reduceat((lists & 127).astype(np.int64) << (7 * digit), begins)
    sums = np.concatenate([[0], np.cumsum(numbers + 1)])
    return sums[1:] - 1 - np.repeat(sums[starts[:-1]], np.diff(starts)), starts
