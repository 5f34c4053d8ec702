"""Feedback from texts the caller gives, such as answers a language model wrote to the query.

The texts are encoded as documents, and a feedback method learns from their vectors as from those of a passage; they
are never found. HyDE does so with one vector per text (Gao, Ma, Lin and Callan, Precise Zero-Shot Dense Retrieval
without Relevance Labels, ACL 2023), generative relevance feedback with terms (Mackie, Chatterjee and Dalton, Generative
Relevance Feedback with Large Language Models, SIGIR 2023). Texts and passages have different strengths and may be used
together (the same authors, Generative and Pseudo-Relevant Feedback for Sparse, Dense and Learned Sparse Retrieval,
2023). Frequencies, and so σ, stay those of the collection: a token that no document has is the rarest.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from colbert_prf.index.collection import Collection, DocumentVectors
from colbert_prf.types import EncodedDocument, Vectors

__all__ = ["text_names", "with_texts"]


def text_names(count: int) -> list[str]:
    """What an expansion calls given texts, beside the ids of documents.

    >>> text_names(2)
    ['feedback text 1', 'feedback text 2']
    """
    return [f"feedback text {number}" for number in range(1, count + 1)]


def with_texts(
    feedback: DocumentVectors | None,
    doc_ids: Sequence[str],
    texts: Sequence[EncodedDocument],
    collection: Collection,
) -> tuple[DocumentVectors, list[str]]:
    """Put the vectors of given texts behind those of documents, and their names behind the ids.

    Parameters
    ----------
    feedback, doc_ids
        Of the documents; None and none for the texts alone.
    texts
        At least one; each has vectors.
    collection
        Whose codec names the centroids.
    """
    vectors = np.concatenate([text.vectors for text in texts])
    lengths = [len(text) for text in texts]
    alone = DocumentVectors(
        np.empty(0, np.int64),
        vectors,
        np.concatenate([text.token_ids for text in texts]),
        np.repeat(np.arange(len(texts)), lengths),
        np.concatenate([np.arange(length) for length in lengths]),
        _codes_of(vectors, collection),
    )
    names = text_names(len(texts))
    if feedback is None:
        return alone, names
    weights = None if feedback.weights is None else np.concatenate([feedback.weights, np.ones(len(texts))])
    joined = DocumentVectors(
        feedback.positions,
        np.concatenate([feedback.vectors, alone.vectors]),
        np.concatenate([feedback.token_ids, alone.token_ids]),
        np.concatenate([feedback.documents, alone.documents + len(doc_ids)]),
        np.concatenate([feedback.token_positions, alone.token_positions]),
        np.concatenate([feedback.codes, alone.codes]),
        weights,
    )
    return joined, [*doc_ids, *names]


def _codes_of(vectors: Vectors, collection: Collection) -> npt.NDArray[np.int64]:
    """The codec's centroid of each vector; -1 where there is no codec."""
    if (stored := collection.on_disk) is None:
        return np.full(len(vectors), -1, np.int64)
    return stored.codec.encode(vectors)["codes"].astype(np.int64)
