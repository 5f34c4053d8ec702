"""RM3: a relevance model, interpolated with the query."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from colbert_prf.baselines.lexical.feedback import FeedbackTerms, TermFeedback, largest
from colbert_prf.errors import InputError

__all__ = ["RM3"]


@dataclass(frozen=True, kw_only=True)
class RM3(TermFeedback):
    """Weigh terms by how likely the feedback documents are to give them, and mix that with the query.

    The new weight of a term t is P(t). Its weight in the query is w(t), and its frequency in the document d of score
    s(d) is tf(t, d)::

        P(t) = λ · w(t) / Σ_u w(u) + (1 - λ) · R(t) / Σ_u R(u)
        R(t) = Σ_d tf(t, d) / |d| · exp(s(d)) / Σ_f exp(s(f))

    where T are the ``feedback_terms`` terms with the largest R. As in Terrier, a document counts by the exponential of
    its score, and a term by which documents are not told apart, because it is in fewer than two or in a tenth of all
    documents or more, is not learned. The weights of the expanded query sum to those of the query, so that λ = 1 is
    the query itself.

    Parameters
    ----------
    feedback_docs, feedback_terms
        As in :class:`TermFeedback`.
    original
        λ, what the query keeps; 0.6 in Terrier.
    min_documents, max_share
        Documents a term must be in at least, and the share of all documents from which on it is too common.

    References
    ----------
    Abdul-Jaleel, Allan, Croft, Diaz, Larkey, Li, Smucker, Wade: UMass at TREC 2004: Novelty and HARD.
    """

    original: float = 0.6
    min_documents: int = 2
    max_share: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.original <= 1:
            raise InputError(f"original must be from 0 to 1, found {self.original}")

    def _weights(self, query: Mapping[str, float], found: FeedbackTerms) -> Mapping[str, float]:
        documents = np.exp(found.scores - found.scores.max())
        documents /= documents.sum() * np.maximum(found.lengths, 1)
        relevance = documents @ found.frequencies
        in_documents, limit = found.document_frequencies, self.max_share * found.snapshot.num_documents
        kept = largest(relevance, self.feedback_terms, (in_documents >= self.min_documents) & (in_documents < limit))
        total, share = sum(query.values()), relevance[kept].sum()
        if not kept:
            return query
        weights = {term: self.original * weight for term, weight in query.items()}
        for place in kept:
            term = found.terms[place]
            weights[term] = weights.get(term, 0.0) + (1 - self.original) * total * float(relevance[place] / share)
        return {term: weight for term, weight in weights.items() if weight > 0}
