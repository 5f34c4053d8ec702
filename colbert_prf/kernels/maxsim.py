"""Weighted MaxSim, the score of late interaction."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["maxsim"]

CHUNK_VECTORS = 1 << 15
"""Document vectors multiplied at once: bounds the similarity matrix to a few megabytes, so that it stays in cache."""


def maxsim(
    query_vectors: npt.NDArray[np.float32],
    query_weights: npt.NDArray[np.float32],
    document_vectors: npt.NDArray[np.float32],
    offsets: npt.NDArray[np.int64],
) -> npt.NDArray[np.float32]:
    """Score every document exactly: the definition all faster engines are tested against.

    ``s(q, d) = sum_i w_i max_j q_i · d_j`` (Khattab and Zaharia, SIGIR 2020; weighted as in Wang et al., ICTIR 2021).
    A negative maximum stays negative. A document without vectors scores minus infinity.

    Parameters
    ----------
    query_vectors
        Of shape (num_query_vectors, dim).
    query_weights
        Of shape (num_query_vectors,).
    document_vectors
        The vectors of all documents, one after the other, of shape (num_vectors, dim).
    offsets
        Document ``i`` owns the rows ``offsets[i]:offsets[i + 1]``; of shape (num_documents + 1,).

    Returns
    -------
    scores
        Of shape (num_documents,).

    Examples
    --------
    Two query vectors, the second of weight 2; the document's first vector is best for one, its second for the other:

    >>> query = np.array([[1, 0], [0, 1]], dtype=np.float32)
    >>> weights = np.array([1, 2], dtype=np.float32)
    >>> document = np.array([[0.8, 0.6], [0.0, 1.0]], dtype=np.float32)
    >>> maxsim(query, weights, document, np.array([0, 2])).tolist()  # 1 * 0.8 + 2 * 1.0
    [2.799999952316284]
    """
    num_documents = len(offsets) - 1
    scores = np.full(num_documents, -np.inf, dtype=np.float32)
    start = 0
    while start < num_documents:
        limit = offsets[start] + CHUNK_VECTORS
        end = max(start + 1, int(np.searchsorted(offsets, limit, side="right")) - 1)
        filled = start + np.flatnonzero(offsets[start + 1 : end + 1] > offsets[start:end])
        if len(filled):
            similarities = document_vectors[offsets[start] : offsets[end]] @ query_vectors.T
            best = np.maximum.reduceat(similarities, offsets[filled] - offsets[start], axis=0)
            # Not `best @ query_weights`: with five weights, OpenBLAS's product for AVX-512 also reads what was left in
            # memory behind them, and NumPy warns of an invalid value that is not in the result.
            scores[filled] = np.einsum("dq,q->d", best, query_weights)
        start = end
    return scores
