"""ColBERT-PRF: the vectors of the best documents are clustered; clusters that stand for rare tokens expand the query.

Wang, Macdonald, Tonellotto and Ounis, Pseudo-Relevance Feedback for Multiple Representation Dense Retrieval, ICTIR
2021.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
import numpy.typing as npt

from colbert_prf.errors import InputError
from colbert_prf.feedback.base import Added, Feedback, expanded, likely_tokens, require_whole
from colbert_prf.feedback.clustering import (
    CLUSTERINGS,
    Clustering,
    Representatives,
    represent,
    represent_as_published,
)
from colbert_prf.feedback.naming import Names, look_up
from colbert_prf.feedback.source import FeedbackSource, FeedbackVectors, sources_of
from colbert_prf.feedback.strength import DEFAULT, DEFAULT_AS_PUBLISHED, Strength
from colbert_prf.feedback.weighting import WEIGHTINGS, Weighting, weigh
from colbert_prf.kernels.parallel import Workers
from colbert_prf.types import EncodedQuery, Expansion

__all__ = ["ColbertPRF"]

MOST_NEIGHBOURS = 10_000
"""Of each centroid; the paper takes 10, and memory is set aside for all of them."""


@dataclass(frozen=True, kw_only=True)
class ColbertPRF(Feedback):
    """Expand a query with the discriminative centroids of its best documents.

    The vectors of the ``feedback_docs`` best documents are clustered into ``clusters``. Each centroid υ is given the
    token t that is most frequent among the ``neighbours`` document vectors nearest to it, P(t|υ), and the weight
    σ = ln((N + 1) / (N_t + 1)) of that token; centroids of special tokens are dropped. The ``expansion_vectors`` of
    highest σ are added to the query::

        s(q, d) = Σ_i max_j q_i·d_j + β Σ_(υ,σ) σ · max_j υ·d_j

    where β is ``beta``, or with ``weight``, the default, such that the added vectors together weigh ``weight`` times
    the query. The paper learns from three documents and adds ten vectors; ``docs/notes/defaults.md`` says how the
    defaults here were chosen. What every method has, ``feedback_docs``, ``expansion_vectors``, ``weight``, ``beta``,
    ``rerank``, ``rerank_depth`` and ``push``, is described in :class:`Feedback`.

    Parameters
    ----------
    clusters
        K.
    neighbours
        Document vectors that name a centroid, r; at most 10,000.
    clustering
        ``kmeans``, or with real vectors ``kmeans-closest`` and ``kmedoids``, which keep their own tokens.
    weighting
        σ by ``idf``, ``ictf`` or ``cosine``.
    seed
        Of the clustering; the same seed gives the same expansion on any number of threads.
    compat
        ``"paper"`` to cluster as the authors' code does: documents filled up to 180 with zero vectors, scikit-learn's
        KMeans. With neither ``weight`` nor ``beta``, a default for ``beta`` applies.

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
    clustering: Clustering = "kmeans"
    weighting: Weighting = "idf"
    seed: int = 42
    compat: Literal["paper"] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        require_whole(1, "clusters", self.clusters)
        require_whole(1, "neighbours", self.neighbours, largest=MOST_NEIGHBOURS)
        require_whole(0, "seed", self.seed, largest=None)
        for name, value, known in (
            ("clustering", self.clustering, CLUSTERINGS),
            ("weighting", self.weighting, WEIGHTINGS),
            ("compat", self.compat, (None, "paper")),
        ):
            if value not in known:
                raise InputError(f"{name} must be one of {known}, found {value!r}")

    @property
    def _default_strength(self) -> Strength:
        return DEFAULT_AS_PUBLISHED if self.compat == "paper" else DEFAULT

    def _learn(
        self, query: EncodedQuery, positions: npt.NDArray[np.int64], source: FeedbackSource, workers: Workers
    ) -> Expansion:
        feedback, doc_ids = source.vectors_of(positions), source.doc_ids_of(positions)  # line 2 of Algorithm 2
        found = self._represent(feedback, workers)  # line 4
        names = self._name(query, feedback, found, source, workers)  # lines 5 to 8
        chosen = names.order[: self.expansion_vectors]  # line 9
        added = Added(
            found.vectors[chosen],
            names.token_ids[chosen],
            names.sigmas[chosen],
            [likely_tokens(near, source.special_ids) for near in names.near[chosen]],
            [sources_of(np.flatnonzero(found.labels == number), doc_ids, feedback) for number in chosen.tolist()],
        )
        return expanded(self, query, added, doc_ids)

    def _represent(self, feedback: FeedbackVectors, workers: Workers) -> Representatives:
        if self.compat == "paper":
            return represent_as_published(feedback, self.clusters, seed=self.seed)
        return represent(feedback, self.clusters, method=self.clustering, seed=self.seed, workers=workers)

    def _name(
        self,
        query: EncodedQuery,
        feedback: FeedbackVectors,
        found: Representatives,
        source: FeedbackSource,
        workers: Workers,
    ) -> Names:
        """The tokens that representatives stand for, at least of those to be added."""
        sigma = partial(weigh, self.weighting, query, found.vectors, source=source)
        if found.token_ids is not None:
            return Names.of(found.token_ids[:, np.newaxis], sigma, source.special_ids)
        likely = None if self.compat == "paper" else self.expansion_vectors
        return look_up(found.vectors, feedback, source, self.neighbours, sigma, workers, likely=likely)
