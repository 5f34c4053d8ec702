"""How much an expansion vector tells documents apart: σ, by what is known of its token or of the query."""

from __future__ import annotations

from collections.abc import Set
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from colbert_prf.index.collection import Collection
from colbert_prf.types import EncodedQuery, TokenIds, Vectors

__all__ = ["UNNAMED", "WEIGHTINGS", "Weighting", "inverse_frequency", "is_unnamed", "weigh"]

Weighting = Literal["idf", "ictf", "cosine"]
WEIGHTINGS: tuple[str, ...] = get_args(Weighting)
UNNAMED = -1.0
"""In place of σ where there is no token."""


def weigh(
    method: Weighting, query: EncodedQuery, vectors: Vectors, token_ids: TokenIds, collection: Collection
) -> npt.NDArray[np.float64]:
    """σ of each vector with its token; not negative, but :data:`UNNAMED` without a token.

    Parameters
    ----------
    method
        ``idf``: ln((N + 1) / (N_t + 1)), the paper's, with N documents of which N_t have the token. ``ictf``: the same
        with all tokens and the occurrences of this one. ``cosine``: the mean cosine with the vectors of the query.
    query
        What was asked.
    vectors, token_ids
        Of the representatives, of shapes (num_vectors, dim) and (num_vectors,). Special tokens, and those below 0,
        are none.
    collection
        Where the frequencies are from.

    Returns
    -------
    sigmas
        Of shape (num_vectors,).
    """
    frequencies, total = collection.document_frequencies, collection.num_documents
    if method == "ictf":
        frequencies = collection.collection_frequencies
        total = int(frequencies.sum())
    unnamed = is_unnamed(token_ids, collection.special_ids)
    sigmas = np.where(unnamed, UNNAMED, inverse_frequency(frequencies, token_ids, total))
    if method == "cosine":
        lengths = np.maximum(np.linalg.norm(vectors, axis=1), 1e-12)[:, None] * np.linalg.norm(query.vectors, axis=1)
        cosines = np.maximum((vectors @ query.vectors.T / lengths).mean(axis=1), 0)
        sigmas = np.where(unnamed, UNNAMED, cosines)
    return np.asarray(sigmas)


def is_unnamed(token_ids: TokenIds, special_ids: Set[int]) -> npt.NDArray[np.bool_]:
    """Whether each token is special or none at all; the same as ``np.isin``, which takes long for so few.

    >>> is_unnamed(np.array([7, 101, -1], np.int32), {101}).tolist()
    [False, True, True]
    """
    special = np.fromiter(special_ids, np.int32, len(special_ids))
    return np.asarray((token_ids < 0) | (token_ids[..., np.newaxis] == special).any(axis=-1))


def inverse_frequency(
    frequencies: npt.NDArray[np.int64], token_ids: npt.NDArray[np.integer], total: int
) -> npt.NDArray[np.float64]:
    """``ln((total + 1) / (frequency + 1))``; a token that is not in the table has frequency 0.

    >>> inverse_frequency(np.array([9, 0]), np.array([0, 1, 7]), 99).round(3).tolist()
    [2.303, 4.605, 4.605]
    """
    known = (token_ids >= 0) & (token_ids < len(frequencies))
    counts = np.zeros(token_ids.shape, np.int64)
    counts[known] = frequencies[token_ids[known]]
    return np.log((total + 1) / (counts + 1))
