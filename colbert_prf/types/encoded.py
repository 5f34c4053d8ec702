"""What an encoder gives: a text as token ids and vectors."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from colbert_prf.errors import InputError

__all__ = ["EncodedDocument", "EncodedQuery", "TokenIds", "Vectors", "Weights"]

TokenIds = npt.NDArray[np.int32]
Vectors = npt.NDArray[np.float32]
Weights = npt.NDArray[np.float32]

UNIT_LENGTH_TOLERANCE = 1e-3


def _check_array(name: str, array: object, dtype: str, shape: str) -> None:
    if not isinstance(array, np.ndarray) or array.dtype != dtype or array.ndim != len(shape.strip(",").split(",")):
        found = f"{array.dtype} of shape {array.shape}" if isinstance(array, np.ndarray) else type(array).__name__
        advice = f"convert with np.asarray({name.split('.')[1]}, dtype=np.{dtype})"
        raise InputError(f"{name} must be an array, {dtype} of shape ({shape}), found {found}; {advice}")


def _check_vectors(owner: str, token_ids: TokenIds, vectors: Vectors) -> None:
    _check_array(f"{owner}.vectors", vectors, "float32", "num_tokens, dim")
    _check_array(f"{owner}.token_ids", token_ids, "int32", "num_tokens,")
    if len(token_ids) != len(vectors):
        raise InputError(
            f"{owner} needs one token id per vector, found {len(token_ids)} ids and {len(vectors)} vectors"
        )
    if not np.isfinite(vectors).all():
        raise InputError(f"{owner}.vectors hold a NaN or an infinity; encode the text again or drop it")


def _check_unit_length(owner: str, vectors: Vectors) -> None:
    lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
    off = np.flatnonzero(np.abs(lengths - 1) > UNIT_LENGTH_TOLERANCE)
    if len(off):
        raise InputError(
            f"{owner}.vectors must have unit length, vector {off[0]} has length {lengths[off[0]]:.4f}; "
            "divide each vector by its norm"
        )


@dataclass(frozen=True, eq=False, repr=False)
class EncodedDocument:
    """A document as a bag of unit vectors, one per token.

    Parameters
    ----------
    token_ids
        The model's token of each vector, int32 of shape (num_tokens,).
    vectors
        Unit vectors, float32 of shape (num_tokens, dim).

    Examples
    --------
    >>> document = EncodedDocument(np.array([7], dtype=np.int32), np.array([[0.6, 0.8]], dtype=np.float32))
    >>> len(document), document.dim
    (1, 2)
    """

    token_ids: TokenIds
    vectors: Vectors

    def __post_init__(self) -> None:
        _check_vectors("EncodedDocument", self.token_ids, self.vectors)
        _check_unit_length("EncodedDocument", self.vectors)

    def __len__(self) -> int:
        return len(self.token_ids)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self)} vectors of dim {self.dim})"

    @property
    def dim(self) -> int:
        """The number of components of a vector."""
        return int(self.vectors.shape[1])


@dataclass(frozen=True, eq=False, repr=False)
class EncodedQuery:
    """A query as weighted vectors: what every search takes and every feedback method gives.

    The score of a document is ``sum_i weights[i] * max_j vectors[i] · document[j]``; plain ColBERT has all weights 1.
    Vectors made by an encoder have unit length; those added by feedback are means of such vectors, so shorter.

    Parameters
    ----------
    token_ids
        The model's token of each vector, int32 of shape (num_tokens,).
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

    token_ids: TokenIds
    vectors: Vectors
    weights: Weights = field(default_factory=lambda: np.empty(0, dtype=np.float32))

    def __post_init__(self) -> None:
        _check_vectors("EncodedQuery", self.token_ids, self.vectors)
        _check_array("EncodedQuery.weights", self.weights, "float32", "num_tokens,")
        if len(self.token_ids) == 0:
            raise InputError("EncodedQuery needs at least one vector, found none")
        if len(self.weights) == 0:
            object.__setattr__(self, "weights", np.ones(len(self.token_ids), dtype=np.float32))
        if len(self.weights) != len(self.token_ids):
            found = f"{len(self.weights)} weights and {len(self.token_ids)} vectors"
            raise InputError(f"EncodedQuery needs one weight per vector, found {found}")
        if not (np.isfinite(self.weights).all() and (self.weights >= 0).all()):
            raise InputError(f"EncodedQuery.weights must be finite and not negative, found {self.weights.min()}")

    def __len__(self) -> int:
        return len(self.token_ids)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self)} vectors of dim {self.dim})"

    @property
    def dim(self) -> int:
        """The number of components of a vector."""
        return int(self.vectors.shape[1])

    def from_vector(self, start: int) -> EncodedQuery:
        """The vectors from one on, at least one of them."""
        return _as_checked(self.token_ids[start:], self.vectors[start:], self.weights[start:])

    def with_vectors(self, token_ids: TokenIds, vectors: Vectors, weights: Weights) -> EncodedQuery:
        """These vectors and others after them, which the caller knows to be what a query may have."""
        return _as_checked(
            np.concatenate([self.token_ids, token_ids]),
            np.concatenate([self.vectors, vectors]),
            np.concatenate([self.weights, weights]),
        )


def _as_checked(token_ids: TokenIds, vectors: Vectors, weights: Weights) -> EncodedQuery:
    """A query of what was checked before: to check it again would take as long as many a step of a search."""
    query = object.__new__(EncodedQuery)
    for name, value in (("token_ids", token_ids), ("vectors", vectors), ("weights", weights)):
        object.__setattr__(query, name, value)
    return query
