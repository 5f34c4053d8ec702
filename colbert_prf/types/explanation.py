"""Why a document has its score."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Explanation", "Match"]


@dataclass(frozen=True)
class Match:
    """The document token that is most similar to one query vector.

    Parameters
    ----------
    query_token_id
        The token of the query vector.
    token_id, position
        The matched token of the document, and its position among the vectors of the document.
    similarity
        The inner product of the two vectors.
    weight
        The weight of the query vector.
    """

    query_token_id: int
    token_id: int
    position: int
    similarity: float
    weight: float

    @property
    def contribution(self) -> float:
        """The part of the score that comes from this match."""
        return self.weight * self.similarity


@dataclass(frozen=True)
class Explanation:
    """Why a document has its score: one match per query vector, in the order of the query.

    Examples
    --------
    >>> explanation = Explanation("d1", (Match(7, 9, 0, 0.8, 1.0), Match(8, 4, 3, 0.5, 0.2)))
    >>> round(explanation.score, 6)
    0.9
    """

    doc_id: str
    matches: tuple[Match, ...]

    @property
    def score(self) -> float:
        """The sum of the contributions."""
        return sum(match.contribution for match in self.matches)
