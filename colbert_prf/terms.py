"""Weighted terms: what a lexical system searches with, learns and explains."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

__all__ = ["TermExpansion", "TermExplanation", "TermMatch"]


@dataclass(frozen=True)
class TermExpansion:
    """A query of terms with what feedback made of it.

    Parameters
    ----------
    weights
        The terms of the expanded query and their weights, heaviest first.
    original
        The terms of the query before, with their weights.
    feedback
        Ids of the documents it learned from, best first.

    Examples
    --------
    >>> expansion = TermExpansion({"fish": 1.2, "tank": 0.8}, {"fish": 2.0}, ("d1",))
    >>> dict(expansion.added), len(expansion)
    ({'tank': 0.8}, 1)
    """

    weights: Mapping[str, float]
    original: Mapping[str, float]
    feedback: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.added)

    @property
    def added(self) -> Mapping[str, float]:
        """The terms the query did not have."""
        return MappingProxyType({term: weight for term, weight in self.weights.items() if term not in self.original})


@dataclass(frozen=True)
class TermMatch:
    """What one query term gives to the score of a document.

    Parameters
    ----------
    term
        As it is in the index: stemmed, for example.
    frequency
        How often it is in the document.
    document_frequency
        In how many documents it is.
    weight
        Of the term in the query.
    contribution
        Its part of the score.
    """

    term: str
    frequency: int
    document_frequency: int
    weight: float
    contribution: float


@dataclass(frozen=True)
class TermExplanation:
    """Why a document has its score: one match per query term, in the order of the query.

    Examples
    --------
    >>> TermExplanation("d1", (TermMatch("fish", 2, 5, 1.0, 1.5), TermMatch("tank", 0, 9, 1.0, 0.0))).score
    1.5
    """

    doc_id: str
    matches: tuple[TermMatch, ...]

    @property
    def score(self) -> float:
        """The sum of the contributions."""
        return sum(match.contribution for match in self.matches)
