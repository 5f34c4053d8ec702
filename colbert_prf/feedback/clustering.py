"""The vectors that stand for the feedback documents: means of clusters, the real vector nearest to each, or medoids."""

from __future__ import annotations

from typing import Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt

from colbert_prf.errors import MissingExtraError
from colbert_prf.index.collection import DocumentVectors
from colbert_prf.kernels import kmeans, kmedoids, seeding
from colbert_prf.kernels.workers import Workers
from colbert_prf.types import TokenIds, Vectors

__all__ = ["CLUSTERINGS", "Clustering", "Representatives", "represent", "represent_as_published"]

Clustering = Literal["kmeans", "kmeans-closest", "kmedoids"]
CLUSTERINGS: tuple[str, ...] = get_args(Clustering)
PUBLISHED_LENGTH = 180
"""Vectors a document is filled up to with zeros in the authors' code."""


class Representatives(NamedTuple):
    """``vectors`` (num_clusters, dim), the cluster ``labels`` (n,) of the feedback vectors, and their own tokens.

    ``token_ids`` (num_clusters,) is None where a representative is no real vector. A vector that was left out of a
    sample has the label -1.
    """

    vectors: Vectors
    labels: npt.NDArray[np.int64]
    token_ids: TokenIds | None = None

    def occupied(self) -> Representatives:
        """Those of clusters that have a vector; where vectors are alike there may be others.

        >>> Representatives(np.eye(3, dtype=np.float32), np.array([2, 0, 2])).occupied().labels.tolist()
        [1, 0, 1]
        """
        sizes = np.bincount(self.labels, minlength=len(self.vectors))
        if all(sizes.tolist()):
            return self
        kept = np.flatnonzero(sizes)
        token_ids = None if self.token_ids is None else self.token_ids[kept]
        return Representatives(self.vectors[kept], np.searchsorted(kept, self.labels), token_ids)


def represent(
    feedback: DocumentVectors, num_clusters: int, *, method: Clustering, seed: int, workers: Workers
) -> Representatives:
    """Cluster feedback vectors into at most ``num_clusters``; of more than ten thousand, a sample.

    Parameters
    ----------
    feedback
        At least one vector.
    num_clusters
        K; as many as there are vectors, if these are fewer.
    method
        ``kmeans``: means, which are shorter than unit length. ``kmeans-closest``: the feedback vector nearest to each
        mean, with its own token. ``kmedoids``: feedback vectors that keep the sum of distances small.
    seed
        Of the random starts.
    workers
        What to compute with; it does not change the result.
    """
    sample, rows = feedback, np.arange(len(feedback.vectors))
    if len(rows) > seeding.MAX_VECTORS:
        rows = np.sort(np.random.default_rng(seed).choice(len(rows), seeding.MAX_VECTORS, replace=False))
        sample = feedback.only(rows)
    num_clusters = min(num_clusters, len(rows))
    if method == "kmedoids":
        medoids, labels, _ = kmedoids.kmedoids(sample.vectors, num_clusters, seed=seed, **workers)
        clusters = Representatives(sample.vectors[medoids], labels, sample.token_ids[medoids])
    else:
        means, labels, _ = kmeans.kmeans(sample.vectors, num_clusters, seed=seed, **workers)
        clusters = Representatives(means, labels)
        if method == "kmeans-closest":
            closest = _closest(means, sample.vectors)
            clusters = Representatives(sample.vectors[closest], labels, sample.token_ids[closest])
    clusters = clusters.occupied()
    labels = np.full(len(feedback.vectors), -1, dtype=np.int64)
    labels[rows] = clusters.labels
    return clusters._replace(labels=labels)


def _closest(means: Vectors, vectors: Vectors) -> npt.NDArray[np.int64]:
    """The vector nearest to each mean."""
    distances = np.square(means).sum(axis=1)[:, None] - 2 * means @ vectors.T
    return np.asarray(distances.argmin(axis=1))


def represent_as_published(feedback: DocumentVectors, num_clusters: int, *, seed: int) -> Representatives:
    """Cluster as the authors' code does: scikit-learn, over documents filled up with zero vectors; all clusters stay.

    Raises
    ------
    MissingExtraError
        Without scikit-learn.
    """
    try:
        from sklearn.cluster import KMeans  # type: ignore[import-untyped]
    except ImportError as error:
        raise MissingExtraError("compat='paper'", extra="compat") from error
    lengths = np.bincount(feedback.documents)
    filling = int(np.maximum(PUBLISHED_LENGTH - lengths, 0).sum())
    rows = np.concatenate([feedback.vectors, np.zeros((filling, feedback.vectors.shape[1]), dtype=np.float32)])
    model = KMeans(min(num_clusters, len(rows)), random_state=seed, n_init=10).fit(rows)
    return Representatives(model.cluster_centers_.astype(np.float32), model.labels_[: len(feedback.vectors)])
