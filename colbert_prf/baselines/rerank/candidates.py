"""Exact scores of some documents of an index, for any number of queries."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from colbert_prf.errors import InputError
from colbert_prf.search.scorer import exact_scores
from colbert_prf.search.searcher import Searcher
from colbert_prf.types import EncodedQuery

__all__ = ["Candidates"]


class Candidates:
    """Documents of an index, looked up once; nothing is encoded but queries.

    Parameters
    ----------
    searcher
        Over the index.
    doc_ids
        Of the documents; an unknown one is an :class:`InputError` that names it.

    Examples
    --------
    >>> from colbert_prf import MemoryIndex
    >>> index = MemoryIndex.create([("a", "Goldfish grow all their life."), ("b", "Bank rates fell.")])
    >>> searcher = Searcher(index)
    >>> scores = Candidates(searcher, ["b", "a"]).scores(searcher.encoder.encode_query("do fish grow"))
    >>> bool(scores[1] > scores[0])
    True
    """

    def __init__(self, searcher: Searcher, doc_ids: Sequence[str]) -> None:
        self._workers = searcher.workers
        self._dim, self._collection = searcher.index.dim, searcher.index.snapshot
        self._positions = self._collection.positions(doc_ids)

    def scores(self, query: EncodedQuery) -> npt.NDArray[np.float64]:
        """Weighted MaxSim of each document, in the order of the ids; minus infinity for one without vectors."""
        if query.dim != self._dim:
            raise InputError(f"the query has vectors of dim {query.dim}, the index of dim {self._dim}")
        return exact_scores(self._collection, query, self._positions, self._workers).astype(np.float64)
