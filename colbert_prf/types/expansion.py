"""What feedback adds to a query."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from colbert_prf.types.encoded import EncodedQuery

__all__ = ["Expansion", "ExpansionVector"]


@dataclass(frozen=True)
class ExpansionVector:
    """What a person wants to know of one vector that feedback added to a query.

    Parameters
    ----------
    token_id
        The token it most likely stands for.
    likely
        Tokens it may stand for with their probability P(t|υ), ``token_id`` first: those of the nearest document
        vectors, or of its cluster where the vector is a document's own.
    sigma
        How much the token tells documents apart.
    weight
        Of the vector in the expanded query.
    sources
        The feedback vectors it stands for: the document of each and its place among the document's vectors.
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
    """A query with the vectors feedback added to it.

    Parameters
    ----------
    query
        The expanded query: the vectors of the original, then those added.
    vectors
        One for each vector added, in their order.
    feedback
        Ids of the documents it learned from, best first.

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
        """Vectors of the query before it was expanded."""
        return len(self.query) - len(self.vectors)

    @cached_property
    def share(self) -> float:
        """Of the weight of the expanded query, how much the vectors added have."""
        weights: list[float] = self.query.weights.tolist()
        return sum(weights[self.num_original :]) / max(sum(weights), 1e-30)
