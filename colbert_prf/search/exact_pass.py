"""The search of a collection without an index, such as one in memory: every document is scored exactly, twice."""

from __future__ import annotations

import numpy as np

from colbert_prf.index.collection import Collection
from colbert_prf.search.budget import Execution
from colbert_prf.search.first_pass import FirstPass
from colbert_prf.search.scorer import Mask, Positions, ScoredDocuments, TopDocuments
from colbert_prf.types import EncodedQuery, Expansion

__all__ = ["ExactPass"]


class ExactPass(FirstPass):
    """Over any collection.

    Parameters
    ----------
    collection
        The documents.
    query
        What is searched.
    execution
        Where the time of each stage goes.
    allowed
        Which documents may be found.
    """

    def __init__(self, collection: Collection, query: EncodedQuery, execution: Execution, allowed: Mask = None) -> None:
        self._collection, self._execution = collection, execution
        self._positions = np.arange(collection.num_positions) if allowed is None else np.flatnonzero(allowed)
        with execution.stage("score"):
            self._scored = self._score(query, self._positions)

    def _score(self, query: EncodedQuery, positions: Positions) -> ScoredDocuments:
        return ScoredDocuments(positions, self._collection.score(query)[positions])

    def best(self, count: int) -> TopDocuments:
        """The best of all."""
        return self._scored.top(count)

    def score_again(self, expansion: Expansion, k: int, *, depth: int | None, rescore: int | None) -> TopDocuments:
        """Score everything, or the best of the first pass."""
        positions = self._positions if depth is None else np.sort(self._scored.top(depth).positions)
        with self._execution.stage("score again"):
            return self._score(expansion.query, positions).top(k)

    def find_again(self, expansion: Expansion, k: int, *, rescore: int | None) -> TopDocuments:
        """Score everything."""
        with self._execution.stage("score again"):
            return self._score(expansion.query, self._positions).top(k)
