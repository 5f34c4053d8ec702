"""Bo1 and KL: terms that are more frequent in the feedback documents than in the collection."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from colbert_prf.baselines.lexical.feedback import FeedbackTerms, TermFeedback, largest

__all__ = ["KL", "Bo1", "Divergence"]


@dataclass(frozen=True, kw_only=True)
class Divergence(TermFeedback):
    """Weigh terms by how far the feedback documents, taken as one, diverge from the collection, as Terrier does.

    The query's weights are divided by the largest of them; a learned term adds its weight divided by a normaliser that
    needs no parameter. A term that is in one feedback document only is not learned unless the query has it.

    Parameters
    ----------
    feedback_docs, feedback_terms
        As in :class:`TermFeedback`.
    min_documents
        Feedback documents a term must be in; with a single feedback document one is enough.
    """

    min_documents: int = 2

    def _weights(self, query: Mapping[str, float], found: FeedbackTerms) -> Mapping[str, float]:
        frequencies = found.frequencies.sum(axis=0)
        needed = min(self.min_documents, len(found.frequencies))
        allowed = (found.frequencies > 0).sum(axis=0) >= needed
        allowed |= np.isin(found.terms, list(query))
        values = self._divergence(frequencies, found)
        kept = largest(values, self.feedback_terms, allowed)
        heaviest = max(query.values())
        weights = {term: weight / heaviest for term, weight in query.items()}
        normaliser = self._normaliser(float(frequencies.max(initial=0)), found)
        for place in kept:
            term = found.terms[place]
            weights[term] = weights.get(term, 0.0) + float(values[place]) / normaliser
        return weights

    @abstractmethod
    def _divergence(self, frequencies: npt.NDArray[np.float64], found: FeedbackTerms) -> npt.NDArray[np.float64]:
        """The value of each term from its frequency in the feedback documents."""

    @abstractmethod
    def _normaliser(self, largest_frequency: float, found: FeedbackTerms) -> float:
        """What a value is divided by to become a weight."""


@dataclass(frozen=True, kw_only=True)
class Bo1(Divergence):
    """Bose-Einstein statistics: tf · log2((1 + P) / P) + log2(1 + P), with P the mean frequency F/N.

    References
    ----------
    Amati: Probability Models for Information Retrieval based on Divergence from Randomness, Glasgow 2003.
    """

    def _divergence(self, frequencies: npt.NDArray[np.float64], found: FeedbackTerms) -> npt.NDArray[np.float64]:
        return _bose_einstein(frequencies, found.collection_frequencies / found.snapshot.num_documents)

    def _normaliser(self, largest_frequency: float, found: FeedbackTerms) -> float:
        mean = np.array([largest_frequency / found.snapshot.num_documents])
        return float(_bose_einstein(np.array([largest_frequency]), mean)[0])


@dataclass(frozen=True, kw_only=True)
class KL(Divergence):
    """Kullback-Leibler divergence: tf / l · log2((tf / l) / (F / L)); l and L are lengths in terms.

    References
    ----------
    Carpineto, de Mori, Romano, Bigi: An information-theoretic approach to automatic query expansion, TOIS 2001.
    """

    def _divergence(self, frequencies: npt.NDArray[np.float64], found: FeedbackTerms) -> npt.NDArray[np.float64]:
        here = frequencies / found.lengths.sum()
        there = found.collection_frequencies / found.snapshot.num_tokens
        return np.asarray(here * np.log2(here / there))

    def _normaliser(self, largest_frequency: float, found: FeedbackTerms) -> float:
        length = float(found.lengths.sum())
        return largest_frequency * float(np.log2(found.snapshot.num_tokens / length)) / length


def _bose_einstein(frequencies: npt.NDArray[np.float64], means: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return np.asarray(frequencies * np.log2((1 + means) / means) + np.log2(1 + means))
