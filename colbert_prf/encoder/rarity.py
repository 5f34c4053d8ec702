"""Weights of query tokens by their rarity."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from colbert_prf.errors import InputError

__all__ = ["query_weights"]

SMALLEST = 0.05
"""The least inverse document frequency, so that a token of every document still counts a little."""


def query_weights(
    document_frequencies: npt.NDArray[np.integer], num_documents: int, *, power: float = 0.25
) -> npt.NDArray[np.float32]:
    """Raise the inverse document frequency of each token, ``ln((N + 1) / (N_t + 1))``, to a power.

    A model that was not trained for late interaction gives the same weight to all words of a question.

    Parameters
    ----------
    document_frequencies
        N_t, the number of documents with each token, of shape (vocabulary_size,).
    num_documents
        N, the number of documents.
    power
        0 for equal weights, 1 for the inverse document frequency itself.

    Examples
    --------
    >>> [round(weight, 2) for weight in query_weights(np.array([0, 99, 999]), 999, power=0.5).tolist()]
    [2.63, 1.52, 0.22]
    """
    if len(document_frequencies) and not 0 <= document_frequencies.min() <= document_frequencies.max() <= num_documents:
        raise InputError(
            f"document frequencies must be between 0 and the {num_documents} documents, found "
            f"{document_frequencies.min()} to {document_frequencies.max()}"
        )
    rarity = np.log((num_documents + 1) / (document_frequencies + 1.0))
    return np.asarray(np.maximum(rarity, SMALLEST) ** power, dtype=np.float32)
