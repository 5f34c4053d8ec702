"""What feedback adds to a query."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from colbert_prf.types.encoded import EncodedQuery

__all__ = ["Expansion", "ExpansionVector"]


@dataclass(frozen=True)
class ExpansionVector:
    """What a person wants to know about one vector that feedback added to a query.

    Parameters
    ----------
    token_id
        The token that the vector most likely stands for.
    likely
        The tokens that the vector may stand for, each with its probability P(t|υ), ``token_id`` first. They are the
        tokens of the nearest document vectors, or those of the cluster if the vector is a document's own.
    sigma
        σ: how well the token discriminates between documents.
    weight
        The weight of the vector in the expanded query.
    sources
        The feedback vectors that the vector stands for: the document of each, and its position among the vectors of
        the document.
    """

    token_id: int
    likely: tuple[tuple[int, float], ...]
    sigma: float
    weight: float
    sources: tuple[tuple[str, int], ...] = ()

    @property
    def probability(self) -> float:
        """P(t|υ) of the most likely token."""
        return dict(self.likely).get(self.token_id, 0.0)


@dataclass(frozen=True, eq=False)
class Expansion:
    """A query with the vectors that feedback added to it.

    Parameters
    ----------
    query
        The expanded query: the vectors of the original, then the added ones.
    vectors
        A description of each added vector, in their order.
    feedback
        Ids of the feedback documents, best first.

    Examples
    --------
    >>> import numpy as np
    >>> query = EncodedQuery(np.array([7, 9], dtype=np.int32), np.eye(2, dtype=np.float32))
    >>> expansion = Expansion(query, (ExpansionVector(9, ((9, 0.8), (4, 0.2)), 5.1, 1.0, (("d1", 3),)),), ("d1",))
    >>> len(expansion), expansion.num_original, expansion.share, expansion.vectors[0].probability
    (1, 1, 0.5, 0.8)
    """

    query: EncodedQuery
    vectors: Sequence[ExpansionVector] = ()
    feedback: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.vectors)

    @property
    def num_original(self) -> int:
        """The number of vectors of the original query."""
        return len(self.query) - len(self.vectors)

    @cached_property
    def share(self) -> float:
        """The part of the expanded query's total weight that the added vectors have, from 0 to 1."""
        weights: list[float] = self.query.weights.tolist()
        return sum(weights[self.num_original :]) / max(sum(weights), 1e-30)
