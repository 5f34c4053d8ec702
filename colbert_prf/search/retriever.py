"""What every ranking system is: a query in, a ranking out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator

from colbert_prf.deprecated import EndToEnd
from colbert_prf.errors import InputError
from colbert_prf.types import Explanation, Ranking, TermExplanation

__all__ = ["DEFAULT_K", "EndToEnd", "Retriever"]

DEFAULT_K = 10
"""Documents a search returns unless it is asked for more; a run file has 1,000 a query, see ``run_topics``."""


class Retriever(ABC):
    """Answers queries given as texts; what an experiment compares and what other systems build on."""

    @abstractmethod
    def search(self, query: str, k: int = DEFAULT_K) -> Ranking:
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

    def search_many(self, queries: Iterable[str], k: int = DEFAULT_K) -> Iterator[Ranking]:
        """Answer queries one after another; a system that is faster in batches overrides this."""
        return (self.search(query, k) for query in queries)
