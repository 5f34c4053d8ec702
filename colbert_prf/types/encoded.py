"""Encoded texts: the output of an encoder, as token ids and vectors."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from colbert_prf.errors import InputError

__all__ = ["EncodedDocument", "EncodedQuery", "TokenIds", "Vectors", "Weights", "check_query"]

TokenIds = npt.NDArray[np.int32]
Vectors = npt.NDArray[np.float32]
Weights = npt.NDArray[np.float32]

UNIT_LENGTH_TOLERANCE = 1e-3


@dataclass(frozen=True, eq=False, repr=False)
class _EncodedText:
    """Token ids and vectors of equal number, both checked."""

    token_ids: TokenIds
    vectors: Vectors

    def __post_init__(self) -> None:
        owner = type(self).__name__
        _check_array(f"{owner}.vectors", self.vectors, "float32", "num_tokens, dim")
        _check_array(f"{owner}.token_ids", self.token_ids, "int32", "num_tokens,")
        if len(self.token_ids) != len(self.vectors):
            raise InputError(
                f"{owner} needs one token id per vector, "
                f"found {len(self.token_ids)} ids and {len(self.vectors)} vectors"
            )
        if not np.isfinite(self.vectors).all():
            raise InputError(f"{owner}.vectors hold a NaN or an infinity; encode the text again or drop it")

    def __len__(self) -> int:
        return len(self.token_ids)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self)} vectors of dim {self.dim})"

    @property
    def dim(self) -> int:
        """The number of components of a vector."""
        return int(self.vectors.shape[1])


@dataclass(frozen=True, eq=False, repr=False)
class EncodedDocument(_EncodedText):
    """A document as a bag of unit vectors, one per token.

    Parameters
    ----------
    token_ids
        The token of each vector, int32 of shape (num_tokens,).
    vectors
        Unit vectors, float32 of shape (num_tokens, dim).

    Examples
    --------
    >>> document = EncodedDocument(np.array([7], dtype=np.int32), np.array([[0.6, 0.8]], dtype=np.float32))
    >>> len(document), document.dim
    (1, 2)
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        lengths = np.sqrt(np.einsum("ij,ij->i", self.vectors, self.vectors))
        wrong_rows = np.flatnonzero(np.abs(lengths - 1) > UNIT_LENGTH_TOLERANCE)
        if len(wrong_rows):
            row = wrong_rows[0]
            raise InputError(
                f"EncodedDocument.vectors must have unit length, vector {row} has length {lengths[row]:.4f}; "
                "divide each vector by its norm"
            )


@dataclass(frozen=True, eq=False, repr=False)
class EncodedQuery(_EncodedText):
    """A query as weighted vectors: every search takes one, and every feedback method returns one.

    The score of a document is ``sum_i weights[i] * max_j vectors[i] · document[j]``; plain ColBERT has all weights 1.
    An encoder makes vectors of unit length; feedback adds means of such vectors, which are shorter.

    Parameters
    ----------
    token_ids
        The token of each vector, int32 of shape (num_tokens,).
    vectors
        Float32 of shape (num_tokens, dim), no longer than unit length.
    weights
        Non-negative, float32 of shape (num_tokens,); all ones if left out.

    Examples
    --------
    >>> query = EncodedQuery(np.array([7], dtype=np.int32), np.array([[0.6, 0.8]], dtype=np.float32))
    >>> query.weights.tolist()
    [1.0]
    """

    weights: Weights = field(default_factory=lambda: np.empty(0, dtype=np.float32))

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_array("EncodedQuery.weights", self.weights, "float32", "num_tokens,")
        if len(self.token_ids) == 0:
            raise InputError("EncodedQuery needs at least one vector, found none")
        if len(self.weights) == 0:
            object.__setattr__(self, "weights", np.ones(len(self.token_ids), dtype=np.float32))
        if len(self.weights) != len(self.token_ids):
            raise InputError(
                "EncodedQuery needs one weight per vector, "
                f"found {len(self.weights)} weights and {len(self.token_ids)} vectors"
            )
        if not (np.isfinite(self.weights).all() and (self.weights >= 0).all()):
            raise InputError(f"EncodedQuery.weights must be finite and not negative, found {self.weights.min()}")

    def from_vector(self, start: int) -> EncodedQuery:
        """Return a query of the vectors from a number on; there must be at least one."""
        return _unchecked_query(self.token_ids[start:], self.vectors[start:], self.weights[start:])

    def with_vectors(self, token_ids: TokenIds, vectors: Vectors, weights: Weights) -> EncodedQuery:
        """Return a query with more vectors after its own; the caller guarantees that they are valid."""
        return _unchecked_query(
            np.concatenate([self.token_ids, token_ids]),
            np.concatenate([self.vectors, vectors]),
            np.concatenate([self.weights, weights]),
        )


def check_query(query: object, dim: int) -> None:
    """Refuse a query that is no :class:`EncodedQuery` or has vectors of another dim, as an :class:`InputError`."""
    if not isinstance(query, EncodedQuery):
        raise InputError(f"a query must be an EncodedQuery, found {type(query).__name__}")
    if query.dim != dim:
        raise InputError(f"the query has vectors of dim {query.dim}, the index of dim {dim}")


def _check_array(name: str, array: object, dtype: str, shape: str) -> None:
    if not isinstance(array, np.ndarray) or array.dtype != dtype or array.ndim != len(shape.strip(",").split(",")):
        actual = f"{array.dtype} of shape {array.shape}" if isinstance(array, np.ndarray) else type(array).__name__
        advice = f"convert with np.asarray({name.split('.')[1]}, dtype=np.{dtype})"
        raise InputError(f"{name} must be an array, {dtype} of shape ({shape}), found {actual}; {advice}")


def _unchecked_query(token_ids: TokenIds, vectors: Vectors, weights: Weights) -> EncodedQuery:
    """Make a query of arrays that were checked before: a second check takes as long as many a step of a search."""
    query = object.__new__(EncodedQuery)
    for name, array in (("token_ids", token_ids), ("vectors", vectors), ("weights", weights)):
        object.__setattr__(query, name, array)
    return query
