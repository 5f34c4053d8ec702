"""The documents of a sliced corpus that workers encode so that the driver can train a codec.

They are encoded once: their vectors wait, as chunks of a spool, for the workers that encode the other documents.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from colbert_prf.distributed.slices import Slice, read_slice
from colbert_prf.encoder import Encoder
from colbert_prf.index.codec import sample_size_for
from colbert_prf.index.documents import Document, encode_documents, split_documents
from colbert_prf.index.manifest import SegmentInfo, Settings
from colbert_prf.index.segment import Segment
from colbert_prf.storage.layout import IndexLayout
from colbert_prf.types import EncodedDocument

__all__ = ["average_vectors", "encode_others", "encoded_sample", "num_sampled_documents", "sampled_positions"]

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
    (29576, 100)
    """
    size = sample_size_for(round(num_documents * average), bits)
    return min(num_documents, math.ceil(MARGIN * size / max(average, 1.0)))


def sampled_positions(
    slices: Sequence[Slice], num_sampled: int, *, seed: int
) -> Iterator[tuple[Slice, tuple[int, ...]]]:
    """Draw documents of all slices at random, without replacement, and yield each slice with those drawn from it.

    Examples
    --------
    >>> slices = [Slice(0, 3, "first"), Slice(1, 2, "second")]
    >>> [(part.digest, positions) for part, positions in sampled_positions(slices, 5, seed=0)]
    [('first', (0, 1, 2)), ('second', (0, 1))]
    """
    ends = np.cumsum([part.num_documents for part in slices])
    drawn = np.sort(np.random.default_rng(seed).permutation(int(ends[-1]))[:num_sampled])
    for part, end in zip(slices, ends.tolist(), strict=True):
        start = end - part.num_documents
        positions = drawn[np.searchsorted(drawn, start) : np.searchsorted(drawn, end)] - start
        if len(positions):
            yield part, tuple(positions.tolist())


def encoded_sample(layout: IndexLayout, info: SegmentInfo) -> dict[str, EncodedDocument]:
    """Read the documents of a chunk of the sample, by their ids."""
    chunk = Segment(layout, info, None)
    chunk.check()
    token_ids, vectors = chunk.token_ids.astype(np.int32), chunk.decode_rows(slice(None))
    ranges = zip(chunk.doc_ids, chunk.offsets[:-1].tolist(), chunk.offsets[1:].tolist(), strict=True)
    return {doc_id: EncodedDocument(token_ids[start:end], vectors[start:end]) for doc_id, start, end in ranges}


def encode_others(
    documents: Iterable[Document], encoded: Mapping[str, EncodedDocument], encoder: Encoder
) -> Iterator[Document]:
    """Encode documents, except those that are encoded already, and yield all of them in order."""
    pending: deque[Document] = deque()

    def others() -> Iterator[Document]:
        for document in documents:
            pending.append(document)
            if document.doc_id not in encoded:
                yield document

    for done in encode_documents(others(), encoder):
        while (document := pending.popleft()).doc_id != done.doc_id:
            yield document._replace(encoding=encoded[document.doc_id])
        yield done
    for document in pending:
        yield document._replace(encoding=encoded[document.doc_id])


def _spread(layout: IndexLayout, part: Slice, count: int) -> Iterator[Document]:
    positions = np.unique(np.linspace(0, part.num_documents - 1, count).astype(int))
    return read_slice(layout, part.digest, positions.tolist())
