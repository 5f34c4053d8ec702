"""Weighted terms: what a lexical system searches with, learns and explains."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

__all__ = ["TermExpansion", "TermExplanation", "TermMatch"]


@dataclass(frozen=True)
class TermExpansion:
    """A query of terms, before and after feedback expanded it.

    Parameters
    ----------
    weights
        The terms of the expanded query and their weights, heaviest first.
    original
        The terms of the original query and their weights.
    feedback
        Ids of the feedback documents, best first.

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
        """The terms that the original query does not have."""
        return MappingProxyType({term: weight for term, weight in self.weights.items() if term not in self.original})


@dataclass(frozen=True)
class TermMatch:
    """What one query term contributes to the score of a document.

    Parameters
    ----------
    term
        The term as the index has it, for example stemmed.
    frequency
        How often the document has the term.
    document_frequency
        How many documents have the term.
    weight
        The weight of the term in the query.
    contribution
        The part of the score that comes from the term.
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
