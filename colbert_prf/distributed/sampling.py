"""The documents of a sliced corpus that workers encode so that the driver can train a codec."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from colbert_prf.distributed.encoding import Task
from colbert_prf.distributed.slices import Slice, read_slice
from colbert_prf.encoder import Encoder
from colbert_prf.index.codec import sample_size_for
from colbert_prf.index.documents import Document, split_documents
from colbert_prf.index.manifest import Settings
from colbert_prf.storage.layout import IndexLayout

__all__ = ["average_vectors", "num_sampled_documents", "sample_tasks"]

LOOKED_AT_SLICES, LOOKED_AT_DOCUMENTS = 8, 1000
"""Enough for the average number of vectors of a document, to a few percent."""
MARGIN = 1.1
"""More documents than the average says, so that the sample is large enough."""


def average_vectors(layout: IndexLayout, slices: Sequence[Slice], settings: Settings, encoder: Encoder) -> float:
    """Estimate the number of vectors of a document from its tokens: the network is not run."""
    numbers = np.unique(np.linspace(0, len(slices) - 1, LOOKED_AT_SLICES).astype(int)).tolist()
    each = -(-LOOKED_AT_DOCUMENTS // len(numbers))
    documents = [document for number in numbers for document in _spread(layout, slices[number], each)]
    passages = split_documents(documents, settings.passages, encoder)
    lengths = [int(encoder.tokenization.document(passage.text or "").has_vector.sum()) for passage in passages]
    return sum(lengths) / len(documents)


def num_sampled_documents(num_documents: int, average: float, bits: int) -> int:
    """Choose how many documents to encode for the codec.

    Examples
    --------
    >>> num_sampled_documents(8_841_823, 78.0, 4), num_sampled_documents(100, 78.0, 4)
    (29575, 100)
    """
    size = sample_size_for(round(num_documents * average), bits)
    return min(num_documents, math.ceil(MARGIN * size / max(average, 1.0)))


def sample_tasks(slices: Sequence[Slice], num_sampled: int, *, seed: int) -> Iterator[Task]:
    """Draw documents of all slices at random, without replacement, and make a task of those of each slice."""
    ends = np.cumsum([part.num_documents for part in slices])
    drawn = np.sort(np.random.default_rng(seed).permutation(int(ends[-1]))[:num_sampled])
    for part, end in zip(slices, ends.tolist(), strict=True):
        start = end - part.num_documents
        positions = drawn[np.searchsorted(drawn, start) : np.searchsorted(drawn, end)] - start
        if len(positions):
            yield Task(part.number, part.digest, f"sample-{part.digest}", tuple(positions.tolist()))


def _spread(layout: IndexLayout, part: Slice, count: int) -> Iterator[Document]:
    positions = np.unique(np.linspace(0, part.num_documents - 1, count).astype(int))
    return read_slice(layout, part.digest, positions.tolist())
