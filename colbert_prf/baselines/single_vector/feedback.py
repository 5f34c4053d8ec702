"""Feedback with single vectors: the query moves towards the documents it found."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from colbert_prf.errors import InputError
from colbert_prf.types import Vectors

__all__ = ["AverageFeedback", "RocchioFeedback", "VectorFeedback"]


@dataclass(frozen=True, kw_only=True)
class VectorFeedback(ABC):
    """Makes a new query vector from the best documents.

    Parameters
    ----------
    feedback_docs
        Documents learned from.

    References
    ----------
    Li, Mourad, Zhuang, Koopman, Zuccon: Pseudo Relevance Feedback with Deep Language Models and Dense Retrievers, TOIS
    2023.
    """

    feedback_docs: int = 3

    def __post_init__(self) -> None:
        if self.feedback_docs < 1:
            raise InputError(f"feedback_docs must be at least 1, found {self.feedback_docs}")

    @abstractmethod
    def expand(self, query: Vectors, documents: Vectors) -> Vectors:
        """The new query, of shape (dim,), from the old and at least one document, of shape (n, dim)."""


@dataclass(frozen=True, kw_only=True)
class AverageFeedback(VectorFeedback):
    """The mean of the query and the documents, each counted once.

    Examples
    --------
    >>> AverageFeedback().expand(np.array([1.0, 0.0], np.float32), np.array([[0.0, 1.0]], np.float32)).tolist()
    [0.5, 0.5]
    """

    def expand(self, query: Vectors, documents: Vectors) -> Vectors:
        """The mean of all."""
        return np.asarray(np.concatenate([query[None], documents]).mean(axis=0), dtype=np.float32)


@dataclass(frozen=True, kw_only=True)
class RocchioFeedback(VectorFeedback):
    """α times the query plus β times the mean of the documents.

    Parameters
    ----------
    feedback_docs
        As in :class:`VectorFeedback`.
    alpha, beta
        What the query and what the documents count.

    Examples
    --------
    >>> method = RocchioFeedback(alpha=1.0, beta=0.5)
    >>> method.expand(np.array([1.0, 0.0], np.float32), np.array([[0.0, 1.0], [0.0, 0.0]], np.float32)).tolist()
    [1.0, 0.25]
    """

    alpha: float = 0.4
    beta: float = 0.6

    def __post_init__(self) -> None:
        super().__post_init__()
        if min(self.alpha, self.beta) < 0:
            raise InputError(f"alpha and beta must not be negative, found {self.alpha} and {self.beta}")

    def expand(self, query: Vectors, documents: Vectors) -> Vectors:
        """The weighted sum."""
        return np.asarray(self.alpha * query + self.beta * documents.mean(axis=0), dtype=np.float32)
