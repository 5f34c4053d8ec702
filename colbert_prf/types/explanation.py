"""Why a document has its score."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Explanation", "Match"]


@dataclass(frozen=True)
class Match:
    """What one query vector found in a document: the token it is most similar to.

    Parameters
    ----------
    query_token_id
        The token of the query vector.
    token_id, position
        The matched token of the document, and where among its vectors it stands.
    similarity
        Of the two vectors.
    weight
        Of the query vector.
    """

    query_token_id: int
    token_id: int
    position: int
    similarity: float
    weight: float

    @property
    def contribution(self) -> float:
        """What this match gives to the score."""
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
