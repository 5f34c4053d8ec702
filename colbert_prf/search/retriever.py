"""What every ranking system is: a query in, a ranking out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar

from colbert_prf.deprecated import EndToEnd
from colbert_prf.errors import InputError
from colbert_prf.types import EncodedQuery, Explanation, Ranking, TermExplanation

__all__ = ["DEFAULT_K", "RUN_DEPTH", "EndToEnd", "Retriever", "several_queries"]

Query = TypeVar("Query")

DEFAULT_K = 10
"""Documents a search returns unless it is asked for more."""
RUN_DEPTH = 1000
"""The same for run files, experiments and the stages of PyTerrier."""


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

    def search_many(self, queries: Iterable[str], k: int = DEFAULT_K, **options: Any) -> Iterator[Ranking]:
        """Answer queries one after another, with the options of ``search``; a faster system overrides this."""
        return (self.search(query, k, **options) for query in several_queries(queries))


def several_queries(queries: Iterable[Query]) -> Iterable[Query]:
    """Refuse what is no collection of queries, above all a single text, whose letters would each be a query.

    Raises
    ------
    InputError
        It says what to give.

    Examples
    --------
    >>> several_queries("fish")
    Traceback (most recent call last):
    ...
    colbert_prf.errors.InputError: search_many takes several queries, found 'fish'; give ['fish'] or use search
    """
    if isinstance(queries, str):
        shown = f"{queries!r:.80}"
        raise InputError(f"search_many takes several queries, found {shown}; give [{shown}] or use search")
    if isinstance(queries, EncodedQuery):
        raise InputError("search_many takes several queries, found one EncodedQuery; give a list or use search")
    if isinstance(queries, bytes | Mapping) or not isinstance(queries, Iterable):
        raise InputError(f"search_many takes several queries, such as ['do fish grow'], found {queries!r:.80}")
    return queries
