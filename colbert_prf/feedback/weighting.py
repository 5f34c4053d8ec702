"""How much an expansion vector tells documents apart: σ, by what is known of its token or of the query."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from typing import Literal, Protocol, get_args

import numpy as np
import numpy.typing as npt

from colbert_prf.errors import InputError
from colbert_prf.index.collection import Collection
from colbert_prf.types import EncodedQuery, TokenIds, Vectors

__all__ = [
    "UNNAMED",
    "WEIGHTINGS",
    "Statistics",
    "Weighting",
    "WeightingFunction",
    "inverse_frequency",
    "is_unnamed",
    "weigh",
]

Weighting = Literal["idf", "ictf", "cosine"]
WEIGHTINGS: tuple[str, ...] = get_args(Weighting)
UNNAMED = -1.0
"""In place of σ where there is no token."""


@dataclass(frozen=True)
class Statistics:
    """What is known of the query and the collection where σ is computed.

    Parameters
    ----------
    query
        What was asked.
    collection
        Where the frequencies are from.
    """

    query: EncodedQuery
    collection: Collection

    @property
    def num_documents(self) -> int:
        """How many documents there are, N."""
        return self.collection.num_documents

    @property
    def document_frequencies(self) -> npt.NDArray[np.int64]:
        """In how many documents each token is, N_t; a token beyond the end is in none."""
        return self.collection.document_frequencies

    @property
    def collection_frequencies(self) -> npt.NDArray[np.int64]:
        """How often each token occurs; read from all documents at the first use."""
        return self.collection.collection_frequencies


class WeightingFunction(Protocol):
    """A weighting of one's own: the σ of expansion vectors.

    A learned weighting needs no more, such as that of CWPRF (Wang, MacAvaney, Macdonald and Ounis, Effective
    Contrastive Weighting for Dense Query Expansion, ACL 2023).
    """

    def __call__(self, vectors: Vectors, token_ids: TokenIds, statistics: Statistics, /) -> npt.ArrayLike:
        """Give σ of each vector, finite and not negative, of shape (num_vectors,).

        ``vectors`` (num_vectors, dim) are those that may be added, ``token_ids`` (num_vectors,) the tokens they stand
        for; one below 0 is none, and the vector is dropped whatever its σ.
        """


def weigh(
    method: Weighting | WeightingFunction,
    query: EncodedQuery,
    vectors: Vectors,
    token_ids: TokenIds,
    collection: Collection,
) -> npt.NDArray[np.float64]:
    """σ of each vector with its token; not negative, but :data:`UNNAMED` without a token.

    Parameters
    ----------
    method
        ``idf``: ln((N + 1) / (N_t + 1)), the paper's, with N documents of which N_t have the token. ``ictf``: the same
        with all tokens and the occurrences of this one. ``cosine``: the mean cosine with the vectors of the query. Or
        a function, for one token of each vector.
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
    if callable(method):
        return _weighed_by(method, query, vectors, token_ids, collection)
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


def _weighed_by(
    function: WeightingFunction, query: EncodedQuery, vectors: Vectors, token_ids: TokenIds, collection: Collection
) -> npt.NDArray[np.float64]:
    """The σ that a function gives, checked."""
    sigmas = np.asarray(function(vectors, token_ids, Statistics(query, collection)), np.float64)
    if sigmas.shape != token_ids.shape:
        raise InputError(
            f"a weighting gives one σ for each of {len(token_ids)} vectors, found an array of shape {sigmas.shape}"
        )
    if len(wrong := sigmas[~(np.isfinite(sigmas) & (sigmas >= 0))]):
        raise InputError(f"a weighting gives finite σ of at least 0, found {wrong[0]}")
    return np.where(is_unnamed(token_ids, collection.special_ids), UNNAMED, sigmas)


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
