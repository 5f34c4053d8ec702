"""What a method is that expands a query of terms from documents, and what all of them share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from colbert_prf.baselines.lexical.snapshot import LexicalSnapshot
from colbert_prf.errors import InputError
from colbert_prf.types import TermExpansion

__all__ = ["FeedbackTerms", "TermFeedback"]


class FeedbackTerms:
    """The terms of the feedback documents in arrays, and what the collection knows of them.

    Parameters
    ----------
    snapshot
        The collection.
    positions
        Of the feedback documents, best first.
    scores
        Of the feedback documents.

    Attributes
    ----------
    terms : list of str
        Every term of the documents, in alphabetical order, so that ties fall the same way every time.
    frequencies : array
        How often each is in each document, of shape (num_documents, num_terms).
    lengths : array
        Of the documents, of shape (num_documents,).
    """

    def __init__(
        self, snapshot: LexicalSnapshot, positions: npt.NDArray[np.int64], scores: npt.NDArray[np.float64]
    ) -> None:
        self.snapshot = snapshot
        self.scores = scores
        counts = [snapshot.term_frequencies(position) for position in positions.tolist()]
        self.terms = sorted(set().union(*counts))
        self.frequencies = np.array([[count.get(term, 0) for term in self.terms] for count in counts], dtype=np.float64)
        self.lengths = snapshot.lengths[positions].astype(np.float64)

    @cached_property
    def _collection(self) -> npt.NDArray[np.float64]:
        postings = [self.snapshot.postings(term) for term in self.terms]
        counts = [(len(found.positions), int(found.frequencies.sum())) for found in postings]
        return np.array(counts, dtype=np.float64).reshape(len(self.terms), 2)

    @property
    def document_frequencies(self) -> npt.NDArray[np.float64]:
        """In how many documents of the collection each term is."""
        return self._collection[:, 0]

    @property
    def collection_frequencies(self) -> npt.NDArray[np.float64]:
        """How often each term is in the collection."""
        return self._collection[:, 1]


@dataclass(frozen=True, kw_only=True)
class TermFeedback(ABC):
    """Expands a query with terms of the best documents of a first pass.

    Parameters
    ----------
    feedback_docs
        Documents learned from.
    feedback_terms
        Terms learned at most; those of the query may be among them.
    """

    feedback_docs: int = 3
    feedback_terms: int = 10

    def __post_init__(self) -> None:
        for name in ("feedback_docs", "feedback_terms"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} must be at least 1, found {getattr(self, name)}")

    def expand(
        self,
        query: Mapping[str, float],
        snapshot: LexicalSnapshot,
        positions: npt.NDArray[np.int64],
        scores: npt.NDArray[np.float64],
    ) -> TermExpansion:
        """Learn from documents and expand the query.

        Parameters
        ----------
        query
            Terms and their weights.
        snapshot
            The collection.
        positions, scores
            What was found for the query, best first; the first ``feedback_docs`` are used.
        """
        positions, scores = positions[: self.feedback_docs], scores[: self.feedback_docs]
        if not len(positions) or not query:
            return TermExpansion(query, query)
        found = FeedbackTerms(snapshot, positions, scores.astype(np.float64))
        weights = self._weights(query, found)
        heaviest = dict(sorted(weights.items(), key=lambda item: (-item[1], item[0])))
        return TermExpansion(heaviest, query, tuple(snapshot.doc_ids_of(positions)))

    @abstractmethod
    def _weights(self, query: Mapping[str, float], found: FeedbackTerms) -> Mapping[str, float]:
        """The weights of the expanded query, in which every term of the query is."""


def largest(values: npt.NDArray[np.float64], count: int, allowed: npt.NDArray[np.bool_]) -> Sequence[int]:
    """Places of the largest positive values among those allowed, largest first; of equals the first."""
    order = np.argsort(-np.where(allowed, values, -np.inf), kind="stable")[:count]
    return [place for place in order.tolist() if allowed[place] and values[place] > 0]
