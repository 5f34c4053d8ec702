"""Feedback only where the first pass looks good: where the documents it would learn from are alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field, fields, replace

import numpy as np

from colbert_prf.errors import InputError
from colbert_prf.feedback.base import Feedback
from colbert_prf.feedback.source import FeedbackSource, source_of
from colbert_prf.feedback.strength import Strength
from colbert_prf.index import Index, MemoryIndex
from colbert_prf.index.snapshot import Snapshot
from colbert_prf.kernels.maxsim import maxsim
from colbert_prf.kernels.parallel import ALONE, Workers
from colbert_prf.types import EncodedQuery, Expansion, Ranking

__all__ = ["Selective", "coherence", "damped"]


def coherence(doc_ids: Sequence[str], source: FeedbackSource) -> float:
    """How alike documents are, from 0 to 1: the mean MaxSim per vector over all ordered pairs; 1 for one document.

    Two documents a and b are compared by 1/|a| · Σ_i max_j a_i·b_j, and by the same from b to a.
    """
    documents = [source.document(int(place))[0] for place in source.positions(doc_ids)]
    if len(documents) < 2:
        return 1.0
    similarities = []
    for place, document in enumerate(documents):
        others = documents[:place] + documents[place + 1 :]
        offsets = np.cumsum([0, *map(len, others)], dtype=np.int64)
        weights = np.full(len(document), 1 / len(document), dtype=np.float32)
        similarities.append(maxsim(document, weights, np.concatenate(others), offsets))
    return float(np.clip(np.concatenate(similarities).mean(), 0, 1))


@dataclass(frozen=True)
class Selective(Feedback):
    """Apply a feedback method only to queries whose feedback documents are alike.

    What the method learned is kept if their :func:`coherence` reaches ``threshold``. Below, it is dropped and the first
    pass stands, or, if ``damped``, weighs the less: coherence / threshold of its weight. Documents a person marked as
    relevant are always learned from. On the collections it was tried on it did not help: see ``docs/feedback.md``.

    Parameters
    ----------
    method
        What to apply.
    threshold
        From 0, always, to 1.
    damped
        Whether to weaken instead of skip.

    Examples
    --------
    >>> from colbert_prf import ColbertPRF
    >>> Selective(ColbertPRF(weight=1), threshold=0.6).weight
    1
    """

    method: Feedback
    _: KW_ONLY
    threshold: float
    damped: bool = False
    # What a search asks of a feedback method is the method's own.
    feedback_docs: int = field(init=False, repr=False)
    expansion_vectors: int = field(init=False, repr=False)
    weight: float | None = field(init=False, repr=False)
    beta: float | None = field(init=False, repr=False)
    rerank: bool = field(init=False, repr=False)
    rerank_depth: int | None = field(init=False, repr=False)
    push: float = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.method, Feedback):
            raise InputError(f"method must be a feedback method such as ColbertPRF(), found {self.method!r}")
        if not 0 <= self.threshold <= 1:
            raise InputError(f"threshold must be between 0 and 1, found {self.threshold}")
        for shared in fields(Feedback):
            object.__setattr__(self, shared.name, getattr(self.method, shared.name))

    @property
    def _default_strength(self) -> Strength:
        return self.method._default_strength

    def expand(
        self,
        query: EncodedQuery,
        ranking: Ranking | Sequence[str],
        index: Index | MemoryIndex | Snapshot | FeedbackSource,
        *,
        non_relevant: Sequence[str] = (),
        workers: Workers = ALONE,
    ) -> Expansion:
        """Expand the query, or give it back without vectors; see :meth:`Feedback.expand`."""
        source = source_of(index)
        expansion = self.method.expand(query, ranking, source, non_relevant=non_relevant, workers=workers)
        if not isinstance(ranking, Ranking) or not len(expansion):
            return expansion
        confidence = coherence(expansion.feedback, source)
        if confidence >= self.threshold:
            return expansion
        if self.damped:
            return damped(expansion, confidence / self.threshold)
        return Expansion(query, feedback=expansion.feedback)

    def _learn(
        self, query: EncodedQuery, documents: dict[str, int], source: FeedbackSource, workers: Workers
    ) -> Expansion:
        return self.method._learn(query, documents, source, workers)


def damped(expansion: Expansion, factor: float) -> Expansion:
    """The same vectors with smaller weights."""
    query, start = expansion.query, expansion.num_original
    weights = query.weights.copy()
    weights[start:] *= np.float32(factor)
    vectors = tuple(
        replace(vector, weight=float(weight)) for vector, weight in zip(expansion.vectors, weights[start:], strict=True)
    )
    return Expansion(EncodedQuery(query.token_ids, query.vectors, weights), vectors, expansion.feedback)
