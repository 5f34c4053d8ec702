"""Feedback without clustering: the codec's own centroids, counted in the best documents.

After PLAID-PRF (SIGIR 2026): every document vector already has a centroid, so the centroids of the feedback documents
are weighed by TF-IDF and chosen by maximal marginal relevance (Carbonell and Goldstein, 1998).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from colbert_prf.errors import InputError
from colbert_prf.feedback.base import Added, Feedback, expanded, likely_tokens, sources_of
from colbert_prf.feedback.strength import DEFAULT_OF_CENTROIDS, Strength
from colbert_prf.feedback.weighting import inverse_frequency
from colbert_prf.index.collection import Collection, DocumentVectors
from colbert_prf.kernels.workers import Workers
from colbert_prf.types import EncodedQuery, Expansion, Vectors

__all__ = ["CentroidPRF", "most_marginal"]


@dataclass(frozen=True, kw_only=True)
class CentroidPRF(Feedback):
    """Expand a query with centroids of the codec that are frequent in its best documents and rare elsewhere.

    A centroid c that n_c of N documents have, and tf(c) vectors of the feedback documents, scores
    tf(c) · ln((N + 1) / (n_c + 1)). Vectors are chosen one after the other by the largest
    λ · score / largest score - (1 - λ) · largest cosine with those chosen before. Where documents have weights, a
    vector counts as much as its document in tf(c).

    What every method has is described in :class:`Feedback`.

    Parameters
    ----------
    relevance
        λ: 1 chooses by score alone, smaller values spread the choice.

    Examples
    --------
    >>> CentroidPRF().expansion_vectors
    14
    """

    expansion_vectors: int = 14
    relevance: float = 0.3

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.relevance <= 1:
            raise InputError(f"relevance must be between 0 and 1, found {self.relevance}")

    @property
    def _default_strength(self) -> Strength:
        return DEFAULT_OF_CENTROIDS

    def _learn(
        self,
        query: EncodedQuery,
        feedback: DocumentVectors,
        doc_ids: Sequence[str],
        collection: Collection,
        workers: Workers,
    ) -> Expansion:
        if (snapshot := collection.on_disk) is None:
            raise InputError("CentroidPRF needs an index folder, whose codec has centroids; ColbertPRF does not")
        codes = feedback.codes
        centroids, numbers, counts = np.unique(codes, return_inverse=True, return_counts=True)
        if feedback.weights is not None:
            counts = np.bincount(numbers, feedback.weights[feedback.documents])
        scores = counts * inverse_frequency(snapshot.centroid_frequencies, centroids, collection.num_documents)
        words = ~np.isin(feedback.token_ids, list(collection.special_ids))
        kept = (np.bincount(numbers[words], minlength=len(centroids)) > 0) & (scores > 0)
        centroids, scores = centroids[kept], scores[kept]
        vectors = snapshot.codec.centroids[centroids][:, : query.dim]
        chosen = most_marginal(vectors, scores, self.expansion_vectors, self.relevance)
        members = [np.flatnonzero(codes == centroids[number]) for number in chosen]
        likely = [likely_tokens(feedback.token_ids[rows], collection.special_ids) for rows in members]
        token_ids = np.array([tokens[0][0] for tokens in likely], dtype=np.int32)
        sources = [sources_of(rows, doc_ids, feedback) for rows in members]
        return expanded(self, query, Added(vectors[chosen], token_ids, scores[chosen], likely, sources), doc_ids)


def most_marginal(vectors: Vectors, scores: npt.NDArray[np.float64], count: int, relevance: float) -> list[int]:
    """Choose by maximal marginal relevance; of equals the first.

    Examples
    --------
    The second vector is the first again, so the third is chosen before it:

    >>> vectors = np.array([[1, 0], [1, 0], [0, 1]], np.float32)
    >>> most_marginal(vectors, np.array([3.0, 2.9, 1.0]), 2, 0.5)
    [0, 2]
    """
    if not len(scores):
        return []
    unit = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    value = relevance * scores / scores.max()
    nearest = np.zeros(len(scores))
    chosen: list[int] = []
    while len(chosen) < min(count, len(scores)):
        marginal = value - (1 - relevance) * nearest
        marginal[chosen] = -np.inf
        chosen.append(int(marginal.argmax()))
        cosines = unit @ unit[chosen[-1]]
        nearest = cosines if len(chosen) == 1 else np.maximum(nearest, cosines)
    return chosen
