"""Feedback documents that count by their scores: those a re-ranker is sure of teach more than the others.

As in the relevance model, where the words of a document count by the probability of the document given the query
(Lavrenko and Croft, Relevance-Based Language Models, SIGIR 2001). Here that probability comes from the scores of a
system that ranks better than the first pass, such as a cross-encoder; GRM weighs generated documents by a re-ranker
(Mackie and others, GRM: Generative Relevance Modeling Using Relevance-Aware Sample Estimation, 2023)::

    w(d) = f_b · exp(s(d) / T) / Σ_d' exp(s(d') / T)

over the f_b feedback documents, so that the weights are 1 on average. ColbertPRF multiplies the σ of a cluster
by the mean weight of the documents of its vectors; CentroidPRF counts a vector as much as its document.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from colbert_prf.errors import InputError

__all__ = ["document_weights"]


def document_weights(scores: Sequence[float], temperature: float = 1.0) -> npt.NDArray[np.float64]:
    """What documents weigh by their scores, 1 on average, of shape (num_documents,).

    Parameters
    ----------
    scores
        Of at least one document.
    temperature
        T: the higher, the more alike the weights are.

    Examples
    --------
    Scores that differ by ln 3 make one document weigh three times as much as the other:

    >>> document_weights([np.log(3) + 7, 7]).round(6).tolist()
    [1.5, 0.5]
    """
    if not temperature > 0:
        raise InputError(f"temperature must be above 0, found {temperature!r}")
    logits = np.asarray(scores, np.float64) / temperature
    if not np.isfinite(logits).all():
        raise InputError("documents are weighed by finite scores; the ranking has one that is not")
    weights = np.exp(logits - logits.max())
    return np.asarray(weights * (len(weights) / weights.sum()))
