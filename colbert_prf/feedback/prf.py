"""ColBERT-PRF: the vectors of the best documents are clustered; clusters that stand for rare tokens expand the query.

Wang, Macdonald, Tonellotto and Ounis, Pseudo-Relevance Feedback for Multiple Representation Dense Retrieval, ICTIR
2021.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from colbert_prf.errors import InputError
from colbert_prf.feedback.base import (
    Added,
    Feedback,
    LikelyTokens,
    expanded,
    likely_tokens,
    most_likely,
    require_whole,
    sources_of,
)
from colbert_prf.feedback.clustering import (
    CLUSTERINGS,
    Clustering,
    Representatives,
    represent,
    represent_as_published,
)
from colbert_prf.feedback.strength import DEFAULT, DEFAULT_AS_PUBLISHED, Strength
from colbert_prf.feedback.weighting import WEIGHTINGS, Weighting, WeightingFunction, weigh
from colbert_prf.index.collection import Collection, DocumentVectors
from colbert_prf.kernels.workers import Workers
from colbert_prf.types import EncodedQuery, Expansion, TokenIds

__all__ = ["ColbertPRF"]

MOST_NEIGHBOURS = 10_000
"""Of each centroid; the paper takes 10, and memory is set aside for all of them."""


@dataclass(frozen=True, kw_only=True)
class ColbertPRF(Feedback):
    """Expand a query with the discriminative centroids of its best documents.

    The vectors of the ``feedback_docs`` best documents are clustered into ``clusters``. Each cluster is represented by
    its vector υ nearest to the mean, which has a token t, and by the weight σ = ln((N + 1) / (N_t + 1)) of that token;
    special tokens are dropped. The ``expansion_vectors`` of highest σ are added to the query::

        s(q, d) = Σ_i max_j q_i·d_j + β Σ_(υ,σ) σ · max_j υ·d_j

    where β is ``beta``, or with ``weight``, the default, such that the added vectors together weigh ``weight`` times
    the query. The paper represents a cluster by its mean, which has no token of its own: ``clustering="kmeans"`` gives
    it the token that is most frequent among the ``neighbours`` document vectors of the whole collection nearest to it.
    That is as effective and takes longer, the more so the larger the index. The paper also learns from three documents
    and adds ten vectors; ``docs/notes/defaults.md`` says how the defaults here were chosen. What every method
    has, ``feedback_docs``, ``expansion_vectors``, ``weight``, ``beta``, ``rerank``, ``rerank_depth`` and ``push``, is
    described in :class:`Feedback`.

    Parameters
    ----------
    clusters
        K.
    neighbours
        Document vectors that name the mean of a cluster, r; at most 10,000. Only means are named so.
    clustering
        ``kmeans-closest``: the feedback vector nearest to each mean. ``kmeans``: the means, as in the paper.
        ``kmedoids``: feedback vectors that keep the sum of distances small.
    weighting
        σ by ``idf``, ``ictf`` or ``cosine``; or a function ``(vectors, token_ids, statistics) -> sigmas``, see
        :class:`~colbert_prf.feedback.weighting.WeightingFunction`. Where documents have weights, σ is multiplied by the
        mean weight of the vectors of the cluster.
    seed
        Of the clustering; the same seed gives the same expansion on any number of threads.
    compat
        ``"paper"`` to cluster as the authors' code does: means of documents filled up to 180 with zero vectors, by
        scikit-learn's KMeans, whatever ``clustering`` says. With neither ``weight`` nor ``beta``, a default
        for ``beta`` applies.

    Examples
    --------
    >>> from colbert_prf import MemoryIndex, Searcher
    >>> texts = ["Goldfish grow all their life.", "A pond lets a goldfish grow larger.", "Bank rates fell."]
    >>> searcher = Searcher(MemoryIndex.create(zip("abc", texts)))
    >>> ranking = searcher.search("do fish grow", feedback=ColbertPRF(feedback_docs=1, clusters=4, expansion_vectors=2))
    >>> len(ranking.expansion), ranking.doc_ids
    (2, ['a', 'b', 'c'])
    """

    feedback_docs: int = 1
    expansion_vectors: int = 20
    clusters: int = 24
    neighbours: int = 10
    clustering: Clustering = "kmeans-closest"
    weighting: Weighting | WeightingFunction = "idf"
    seed: int = 42
    compat: Literal["paper"] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        require_whole(1, "clusters", self.clusters)
        require_whole(1, "neighbours", self.neighbours, largest=MOST_NEIGHBOURS)
        require_whole(0, "seed", self.seed, largest=None)
        for name, value, choices in (
            ("clustering", self.clustering, CLUSTERINGS),
            ("compat", self.compat, (None, "paper")),
        ):
            if value not in choices:
                raise InputError(f"{name} must be one of {choices}, found {value!r}")
        if not callable(self.weighting) and self.weighting not in WEIGHTINGS:
            raise InputError(f"weighting must be one of {WEIGHTINGS} or a function, found {self.weighting!r}")

    @property
    def _default_strength(self) -> Strength:
        return DEFAULT_AS_PUBLISHED if self.compat == "paper" else DEFAULT

    def _learn(
        self,
        query: EncodedQuery,
        feedback: DocumentVectors,
        doc_ids: Sequence[str],
        collection: Collection,
        workers: Workers,
    ) -> Expansion:
        clusters = self._represent(feedback, workers)  # line 4 of Algorithm 2; line 2 is done
        token_ids, nearest = clusters.token_ids, None
        if token_ids is None:  # lines 5 and 6
            nearest = collection.nearest_tokens(clusters.vectors, self.neighbours).token_ids
            token_ids = most_likely(nearest, collection.special_ids)
        sigmas = weigh(self.weighting, query, clusters.vectors, token_ids, collection)  # line 7
        if feedback.weights is not None:
            sigmas *= _mean_weights(feedback, clusters)
        order = np.argsort(-sigmas, kind="stable")
        chosen = order[sigmas[order] >= 0][: self.expansion_vectors]  # line 9
        members = [np.flatnonzero(clusters.labels == cluster) for cluster in chosen.tolist()]
        if nearest is None:
            pairs = zip(token_ids[chosen].tolist(), (feedback.token_ids[rows] for rows in members), strict=True)
            likely = [_tokens_of_cluster(token_id, tokens, collection.special_ids) for token_id, tokens in pairs]
        else:
            likely = [likely_tokens(tokens, collection.special_ids) for tokens in nearest[chosen]]
        sources = [sources_of(rows, doc_ids, feedback) for rows in members]
        added = Added(clusters.vectors[chosen], token_ids[chosen], sigmas[chosen], likely, sources)
        return expanded(self, query, added, doc_ids)

    def _represent(self, feedback: DocumentVectors, workers: Workers) -> Representatives:
        if self.compat == "paper":
            return represent_as_published(feedback, self.clusters, seed=self.seed)
        return represent(feedback, self.clusters, method=self.clustering, seed=self.seed, workers=workers)


def _mean_weights(feedback: DocumentVectors, clusters: Representatives) -> npt.NDArray[np.float64]:
    """The mean weight of the documents of the vectors of each cluster; 1 for a cluster without vectors."""
    assert feedback.weights is not None
    clustered = clusters.labels >= 0
    labels, size = clusters.labels[clustered], len(clusters.vectors)
    counts = np.bincount(labels, minlength=size)
    sums = np.bincount(labels, feedback.weights[feedback.documents[clustered]], minlength=size)
    return np.asarray(np.where(counts, sums / np.maximum(counts, 1), 1.0))


def _tokens_of_cluster(token_id: int, members: TokenIds, special_ids: frozenset[int]) -> LikelyTokens:
    """The tokens of a cluster and their shares, the representative's own token first.

    >>> _tokens_of_cluster(5, np.array([7, 7, 5, 101]), frozenset({101}))
    ((5, 0.25), (7, 0.5))
    """
    tokens = sorted(likely_tokens(members, special_ids), key=lambda token: token[0] != token_id)
    # The vector nearest to a mean may belong to another cluster.
    return tuple(tokens) if tokens and tokens[0][0] == token_id else ((token_id, 1.0),)
