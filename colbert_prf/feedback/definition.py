"""Algorithm 2 of the paper, lines 2 to 9, in plain NumPy: what :class:`~colbert_prf.ColbertPRF` is tested against.

Wang, Macdonald, Tonellotto and Ounis, Pseudo-Relevance Feedback for Multiple Representation Dense Retrieval, ICTIR
2021. Line 1 is the first pass and lines 10 to 14 score documents with what is learned here: see
:mod:`colbert_prf.search.prf_search`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from colbert_prf.types import TokenIds, Vectors

__all__ = ["LearnedVector", "learn_definition"]


class LearnedVector(NamedTuple):
    """A centroid υ of the feedback vectors, of shape (dim,), its token t and the weight σ of this token."""

    vector: Vectors
    token_id: int
    sigma: float


def learn_definition(
    vectors: Vectors,
    token_ids: TokenIds,
    offsets: npt.NDArray[np.int64],
    best: Sequence[int],
    *,
    cluster: Callable[[Vectors], Vectors],
    neighbours: int,
    expansion_vectors: int,
    special_ids: Collection[int] = (),
) -> list[LearnedVector]:
    """Learn expansion vectors from the best documents of a collection.

    Parameters
    ----------
    vectors, token_ids
        Of all documents, one document after the other, of shapes (num_vectors, dim) and (num_vectors,).
    offsets
        Document d has the vectors ``offsets[d]:offsets[d + 1]``.
    best
        The f_b best documents of the first pass, best first.
    cluster
        K-means: gives K centroids of shape (K, dim).
    neighbours
        Document vectors F_t(υ, r) whose tokens name a centroid, r.
    expansion_vectors
        Centroids kept at most, f_e.
    special_ids
        Tokens that never name a centroid; one with no other token near it is dropped.

    Returns
    -------
    list
        Highest σ first, equal ones in the order of the clusters.

    Examples
    --------
    Document 0 has the tokens 7 and 8, document 1 has token 7 again. Token 8 is in one of two documents: ln(3/2).

    >>> vectors, token_ids = np.array([[1, 0], [0, 1], [1, 0]], np.float32), np.array([7, 8, 7], np.int32)
    >>> found = learn_definition(
    ...     vectors, token_ids, np.array([0, 2, 3]), [0], cluster=lambda rows: rows, neighbours=1, expansion_vectors=1
    ... )
    >>> [(learned.vector.tolist(), learned.token_id, round(learned.sigma, 4)) for learned in found]
    [([0.0, 1.0], 8, 0.4055)]
    """
    num_documents = len(offsets) - 1
    document_of = np.repeat(np.arange(num_documents), np.diff(offsets))
    feedback = np.concatenate([vectors[document_of == document] for document in best])  # line 2: Φ(Q, f_b)
    learned = []  # line 3
    for centroid in cluster(feedback):  # lines 4 and 5
        nearest = np.argsort(-(vectors @ centroid), kind="stable")[:neighbours]
        near = [token for token in token_ids[nearest].tolist() if token not in special_ids]
        if not near:
            continue
        token = max(near, key=near.count)  # line 6: of equally frequent tokens the nearest
        frequency = len(np.unique(document_of[token_ids == token]))
        sigma = float(np.log((num_documents + 1) / (frequency + 1)))  # line 7
        learned.append(LearnedVector(centroid, token, sigma))  # line 8
    return sorted(learned, key=lambda found: -found.sigma)[:expansion_vectors]  # line 9
