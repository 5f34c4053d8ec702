"""Candidate documents: those with a vector in one of the best centroids of a query vector.

Inverted lists map a centroid to its documents (ascending, each once) in CSR form.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from colbert_prf.kernels.compiled import Array, compiled

__all__ = [
    "InvertedLists",
    "candidates",
    "candidates_definition",
    "invert",
    "probed_centroids",
    "probed_centroids_definition",
]


class InvertedLists(NamedTuple):
    """``documents[offsets[c]:offsets[c + 1]]`` are the documents of centroid c; uint32 and int64."""

    offsets: NDArray[np.int64]
    documents: NDArray[np.uint32]


@compiled()
def _invert(codes: Array, document_offsets: Array, offsets: Array, documents: Array, last: Array, fill: bool) -> None:
    """Count (``fill`` false) or write (``fill`` true) the pairs; ``last[c]`` is the document last seen in c."""
    last[:] = -1
    for document in range(document_offsets.shape[0] - 1):
        for t in range(document_offsets[document], document_offsets[document + 1]):
            code = codes[t]
            if last[code] != document:
                last[code] = document
                if fill:
                    documents[offsets[code]] = document
                offsets[code] += 1


def invert(codes: NDArray[np.integer], document_offsets: NDArray[np.int64], num_centroids: int) -> InvertedLists:
    """Inverted lists of the documents whose vectors have the centroids ``codes``.

    >>> lists = invert(np.array([1, 1, 0, 1], np.uint16), np.array([0, 2, 4]), 2)
    >>> lists.offsets.tolist(), lists.documents.tolist()
    ([0, 1, 3], [1, 0, 1])
    """
    last = np.empty(num_centroids, np.int64)
    counts = np.zeros(num_centroids, np.int64)
    _invert(codes, document_offsets, counts, np.empty(0, np.uint32), last, False)
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    documents = np.empty(offsets[-1], np.uint32)
    _invert(codes, document_offsets, offsets[:-1].copy(), documents, last, True)
    return InvertedLists(offsets, documents)


def probed_centroids_definition(values: NDArray[np.uint8], num_queries: int, probes: int) -> NDArray[np.int64]:
    """The definition of :func:`probed_centroids` in NumPy."""
    kept = np.zeros(len(values), bool)
    for column in values[:, :num_queries].T:
        kept |= column >= np.sort(column)[-min(probes, len(column))]
    return np.flatnonzero(kept)


@compiled()
def _probed(values: Array, num_queries: int, probes: int) -> Array:
    counts = np.zeros((num_queries, 256), np.int32)
    for row in values:
        for i in range(num_queries):
            counts[i, row[i]] += 1
    floors = np.full(values.shape[1], 255, np.uint8)
    for i in range(num_queries):
        level, seen = 255, counts[i, 255]
        while seen < probes and level > 0:
            level -= 1
            seen += counts[i, level]
        floors[i] = level
    kept = np.empty(values.shape[0], np.int64)
    num_kept = 0
    for centroid in range(values.shape[0]):
        row = values[centroid]
        hit = 0
        for i in range(num_queries):
            hit |= row[i] >= floors[i]
        kept[num_kept] = centroid
        num_kept += hit
    return kept[:num_kept]


def probed_centroids(values: NDArray[np.uint8], num_queries: int, probes: int) -> NDArray[np.int64]:
    """Centroids among the best ``probes`` of any query vector, ascending; all that tie in the byte table count.

    Parameters
    ----------
    values : uint8 of shape (num_centroids, width)
        Byte table of the query.
    """
    return _probed(values, num_queries, min(probes, len(values)))


def candidates_definition(lists: InvertedLists, centroids: NDArray[np.int64], num_documents: int) -> NDArray[np.int64]:
    """The definition of :func:`candidates` in NumPy."""
    parts = [lists.documents[lists.offsets[c] : lists.offsets[c + 1]] for c in centroids]
    return np.unique(np.concatenate(parts)).astype(np.int64) if parts else np.empty(0, np.int64)


@compiled()
def _candidates(offsets: Array, documents: Array, centroids: Array, num_documents: int) -> Array:
    seen = np.zeros(num_documents, np.uint8)
    for centroid in centroids:
        for position in range(offsets[centroid], offsets[centroid + 1]):
            seen[documents[position]] = 1
    total = 0
    for document in range(num_documents):
        total += seen[document]
    out = np.empty(total, np.int64)
    total = 0
    for document in range(num_documents):
        if seen[document]:
            out[total] = document
            total += 1
    return out


def candidates(lists: InvertedLists, centroids: NDArray[np.int64], num_documents: int) -> NDArray[np.int64]:
    """Documents in the lists of any of the ``centroids``, ascending, each once."""
    return _candidates(lists.offsets, lists.documents, centroids, num_documents)
