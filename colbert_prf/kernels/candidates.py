"""Candidate documents: those with a vector in one of the best centroids of a query vector, or with a query token."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from colbert_prf.kernels.compiled import Array, compiled
from colbert_prf.kernels.postings import decode_postings

__all__ = [
    "candidates",
    "list_sums",
    "list_sums_definition",
    "probed_centroids",
    "probed_centroids_definition",
]


def probed_centroids_definition(values: NDArray[np.uint8], num_queries: int, probes: int) -> NDArray[np.int64]:
    """The definition of :func:`probed_centroids` in NumPy."""
    is_probed = np.zeros(len(values), bool)
    for column in values[:, :num_queries].T:
        is_probed |= column >= np.sort(column)[-min(probes, len(column))]
    return np.flatnonzero(is_probed)


@compiled()
def _probed_centroids(values: Array, num_queries: int, probes: int) -> Array:
    counts = np.zeros((num_queries, 256), np.int32)
    for row in values:
        for i in range(num_queries):
            counts[i, row[i]] += 1
    thresholds = np.full(values.shape[1], 255, np.uint8)
    for i in range(num_queries):
        level, num_above = 255, counts[i, 255]
        while num_above < probes and level > 0:
            level -= 1
            num_above += counts[i, level]
        thresholds[i] = level
    probed, num_probed = np.empty(values.shape[0], np.int64), 0
    for centroid in range(values.shape[0]):
        row = values[centroid]
        is_probed = 0
        for i in range(num_queries):
            is_probed |= row[i] >= thresholds[i]
        probed[num_probed] = centroid
        num_probed += is_probed
    return probed[:num_probed]


def probed_centroids(values: NDArray[np.uint8], num_queries: int, probes: int) -> NDArray[np.int64]:
    """Centroids among the best ``probes`` of any query vector, ascending; all that tie in the byte table count.

    Parameters
    ----------
    values : uint8 of shape (num_centroids, width)
        Byte table of the query.
    num_queries : int
        Columns that are query vectors; the rest is padding.
    probes : int
        Centroids per query vector.
    """
    return _probed_centroids(values, num_queries, min(probes, len(values)))


def list_sums_definition(
    lists: NDArray[np.uint8],
    list_offsets: NDArray[np.int64],
    chosen: NDArray[np.int64],
    values: NDArray[np.float32],
    num_documents: int,
) -> NDArray[np.float32]:
    """The definition of :func:`list_sums` in NumPy."""
    sums = np.zeros(num_documents, np.float32)
    for number, value in zip(chosen, values, strict=True):
        block = lists[list_offsets[number] : list_offsets[number + 1]]
        sums[decode_postings(block, np.array([0, len(block)]))[0]] += value
    return sums


@compiled()
def _add_values(lists: Array, list_offsets: Array, chosen: Array, values: Array, sums: Array) -> bool:
    """Add the value of each chosen list to its documents; where ``sums`` are bool, the sum is a logical or.

    False if the lists are damaged: one names a document that is not there, or ends within a number.
    """
    is_sound = True
    for i in range(len(chosen)):
        document, number, shift = np.int64(-1), np.int64(0), np.int64(0)
        for position in range(list_offsets[chosen[i]], list_offsets[chosen[i] + 1]):
            byte = np.int64(lists[position])
            number |= (byte & 127) << shift
            shift = min(shift + 7, np.int64(49))  # in a damaged list a number may go on for ever
            if byte < 128:
                document += number + 1
                if document >= sums.shape[0]:
                    break
                sums[document] += values[i]
                number, shift = np.int64(0), np.int64(0)
        is_sound &= shift == 0
    return is_sound


def _list_sums(lists: Array, list_offsets: Array, chosen: Array, values: Array, num_documents: int) -> Array:
    sums = np.zeros(num_documents, values.dtype)
    if not _add_values(lists, list_offsets, chosen, values, sums):
        raise ValueError(f"a list ends within a number, or names a document from {num_documents} on")
    return sums


def list_sums(
    lists: NDArray[np.uint8],
    list_offsets: NDArray[np.int64],
    chosen: NDArray[np.int64],
    values: NDArray[np.float32],
    num_documents: int,
) -> NDArray[np.float32]:
    """For each document the sum of the values of the chosen lists it is in, of shape (num_documents,).

    Parameters
    ----------
    lists, list_offsets
        Inverted lists as :func:`~colbert_prf.kernels.postings.encode_postings` writes them.
    chosen : int64 of shape (num_chosen,)
    values : float32 of shape (num_chosen,)
    num_documents : int

    Raises
    ------
    ValueError
        If the lists are damaged: one names a document that is not there, or ends within a number.

    Examples
    --------
    >>> from colbert_prf.kernels.postings import encode_postings
    >>> lists, list_offsets = encode_postings(np.array([1, 1, 0, 1]), np.array([0, 2, 3, 4]), 2)
    >>> list_sums(lists, list_offsets, np.array([0, 1]), np.array([2, 0.5], np.float32), 3).tolist()
    [0.5, 2.0, 0.5]
    """
    return _list_sums(lists, list_offsets, chosen, values, num_documents)


def candidates(
    lists: NDArray[np.uint8], list_offsets: NDArray[np.int64], centroids: NDArray[np.int64], num_documents: int
) -> NDArray[np.bool_]:
    """Whether each document is in the list of any of some centroids, of shape (num_documents,).

    Parameters and errors are those of :func:`list_sums`.

    Examples
    --------
    >>> from colbert_prf.kernels.postings import encode_postings
    >>> lists, list_offsets = encode_postings(np.array([1, 1, 0, 1]), np.array([0, 2, 3, 4]), 2)
    >>> candidates(lists, list_offsets, np.array([1]), 3).tolist()
    [True, False, True]
    """
    return _list_sums(lists, list_offsets, centroids, np.ones(len(centroids), np.bool_), num_documents)
