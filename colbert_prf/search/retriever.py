"""What every ranking system is: a query in, a ranking out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any

from colbert_prf.errors import InputError
from colbert_prf.feedback import Feedback
from colbert_prf.search.searcher import Searcher
from colbert_prf.terms import TermExplanation
from colbert_prf.types import Explanation, Ranking

__all__ = ["EndToEnd", "Retriever"]


class Retriever(ABC):
    """Answers queries given as texts; what an experiment compares and what other systems build on."""

    @abstractmethod
    def search(self, query: str, k: int = 1000) -> Ranking:
        """Find the ``k`` best documents.

        Parameters
        ----------
        query
            A text.
        k
            How many; fewer come back only if fewer were found.

        Returns
        -------
        Ranking
            Its ``timings`` say how long each stage took.
        """

    def explain(self, query: str, doc_id: str) -> Explanation | TermExplanation:
        """Tell where the score of a document comes from; an :class:`InputError` where a system cannot tell."""
        raise InputError(f"{type(self).__name__} does not explain its scores")

    def search_many(self, queries: Iterable[str], k: int = 1000) -> Iterator[Ranking]:
        """Answer queries one after another; a system that is faster in batches overrides this."""
        return (self.search(query, k) for query in queries)


class EndToEnd(Retriever):
    """ColBERT over its index, with or without feedback.

    Parameters
    ----------
    searcher
        What searches.
    feedback
        Learn from what was found and search again.
    options
        Of every search, such as ``probes``, ``rescore`` or ``threads``.

    Examples
    --------
    >>> from colbert_prf.index import MemoryIndex
    >>> index = MemoryIndex.create([("a", "Goldfish grow all their life."), ("b", "Bank rates fell.")])
    >>> EndToEnd(Searcher(index)).search("do fish grow", k=1).doc_ids
    ['a']
    """

    def __init__(self, searcher: Searcher, *, feedback: Feedback | None = None, **options: Any) -> None:
        self.searcher = searcher
        self.feedback = feedback
        self.options = options

    def search(self, query: str, k: int = 1000) -> Ranking:
        """Find the ``k`` best documents."""
        return self.searcher.search(query, k, feedback=self.feedback, **self.options)

    def explain(self, query: str, doc_id: str, k: int = 1000) -> Explanation:
        """Tell which token each query vector matched, those that feedback added included.

        Parameters
        ----------
        query, k
            Of the search that found it: what feedback learns from may depend on ``k``.
        doc_id
            The document.
        """
        if self.feedback is None:
            return self.searcher.explain(query, doc_id)
        return self.searcher.explain(self.search(query, k).encoded_query, doc_id)
