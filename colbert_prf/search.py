"""From a query to a ranking."""

from __future__ import annotations

from time import perf_counter

import numpy as np

from colbert_prf.encoder import Encoder
from colbert_prf.errors import InputError
from colbert_prf.index import MemoryIndex
from colbert_prf.types import EncodedQuery, Hit, Ranking

__all__ = ["Searcher"]


class Searcher:
    """Answers queries over an index; a search never changes the next one.

    Parameters
    ----------
    index
        What to search.

    Examples
    --------
    >>> index = MemoryIndex.create([("a", "Goldfish grow all their life."), ("b", "Bank rates fell.")])
    >>> Searcher(index).search("do fish grow", k=1).doc_ids
    ['a']
    """

    def __init__(self, index: MemoryIndex) -> None:
        self.index = index

    def search(self, query: str | EncodedQuery, k: int = 10) -> Ranking:
        """Find the ``k`` best documents.

        Parameters
        ----------
        query
            A text, encoded with the index's own model; or an encoded query with any weights.
        k
            How many; fewer come back only if the index has fewer.

        Raises
        ------
        InputError
            If ``k`` is not positive, or the query's vectors are of another dim than the index's.
        """
        if k < 1:
            raise InputError(f"k must be at least 1, found {k}")
        timings: dict[str, float] = {}
        started = perf_counter()
        if isinstance(query, str):
            query = self._encoder().encode_query(query)
            timings["encode"] = perf_counter() - started
        if query.dim != self.index.dim:
            raise InputError(f"the query has vectors of dim {query.dim}, the index of dim {self.index.dim}")
        started = perf_counter()
        scores = self.index.score(query)
        timings["score"] = perf_counter() - started
        hits = tuple(self._hit(position, scores[position]) for position in _best(scores, k))
        return Ranking(query, hits, timings)

    def _encoder(self) -> Encoder:
        if self.index.encoder is None:
            raise InputError("the index has no encoder; give an EncodedQuery, or an encoder when creating the index")
        return self.index.encoder

    def _hit(self, position: int, score: np.float32) -> Hit:
        texts = self.index.texts
        return Hit(self.index.doc_ids[position], float(score), texts[position] if texts else None)


def _best(scores: np.ndarray[tuple[int, ...], np.dtype[np.float32]], k: int) -> list[int]:
    """Positions of the k best finite scores, best first, equal scores by position."""
    order = np.argsort(-scores, kind="stable")[:k]
    return [int(position) for position in order if np.isfinite(scores[position])]
