"""A first pass over each kind of index, and the second passes that may follow it."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
import numpy.typing as npt

from colbert_prf.index.collection import Collection
from colbert_prf.index.snapshot import Snapshot
from colbert_prf.search.effort import Effort
from colbert_prf.search.engine import FinishedPass, Found, Scored, begin
from colbert_prf.search.ivfpq import PaperEngine
from colbert_prf.search.scorer import Scorer
from colbert_prf.search.second_pass import added_vectors, default_keep, find_again, score_again
from colbert_prf.types import EncodedQuery, Expansion

__all__ = ["CompressedPass", "ExactPass", "FirstPass", "PaperPass"]

Mask = npt.NDArray[np.bool_] | None
"""Whether each position may be found, of shape (num_positions,); None for all."""


class FirstPass(ABC):
    """A first pass under way; it begins when it is made, and other threads may go on with it."""

    @abstractmethod
    def best(self, count: int) -> Found:
        """The best documents scored so far."""

    def finish(self) -> None:  # noqa: B027 - most have nothing left to do
        """Score the documents that are not scored yet; a second pass needs all."""

    @abstractmethod
    def score_again(self, expansion: Expansion, k: int, depth: int | None) -> Found:
        """The best of its documents, all or the best ``depth``, scored with the expanded query: the ReRanker."""

    @abstractmethod
    def find_again(self, expansion: Expansion, k: int, rescore: int | None) -> Found:
        """The best of all documents for the expanded query, of which ``rescore`` are scored exactly: the Ranker."""


class CompressedPass(FirstPass):
    """Over a generation of an index folder; second passes reuse what it found out.

    Parameters
    ----------
    snapshot
        The generation.
    query, k
        What is searched, and how many documents are wanted.
    effort
        How hard to try.
    allowed
        Which documents may be found.
    early
        How many of the best documents are wanted before all are scored.
    """

    def __init__(
        self, snapshot: Snapshot, query: EncodedQuery, k: int, effort: Effort, allowed: Mask, early: int = 0
    ) -> None:
        self._snapshot, self._effort, self._allowed = snapshot, effort, allowed
        self._started = begin(snapshot, query, k, effort, allowed=allowed, early=early)
        self._finished: FinishedPass | None = None

    def best(self, count: int) -> Found:
        """Until it is finished, the best of those with the best approximate scores."""
        return self._started.best(count) if self._finished is None else self._finished.scored.best(count)

    def finish(self) -> None:
        """Take part in what the other threads are doing."""
        self._finished = self._started.finish(self._effort)

    def score_again(self, expansion: Expansion, k: int, depth: int | None) -> Found:
        """Score the added vectors; the original ones are scored already."""
        assert self._finished is not None
        added = added_vectors(self._snapshot, expansion, self._effort)
        return score_again(self._finished, added, k, self._effort, depth=depth)

    def find_again(self, expansion: Expansion, k: int, rescore: int | None) -> Found:
        """Score the added vectors, and documents the first pass did not see."""
        assert self._finished is not None
        added = added_vectors(self._snapshot, expansion, self._effort)
        keep = default_keep(k, expansion) if rescore is None else max(k, rescore)
        return find_again(self._snapshot, self._finished, added, k, keep, self._effort, allowed=self._allowed)


class PaperPass(FirstPass):
    """Over a generation of an index folder, as the authors do it: the Ranker searches from scratch.

    Parameters
    ----------
    paper
        Keeps the FAISS index between searches.
    snapshot, query, k, effort, allowed
        As in :class:`CompressedPass`.
    """

    def __init__(
        self, paper: PaperEngine, snapshot: Snapshot, query: EncodedQuery, k: int, effort: Effort, allowed: Mask
    ) -> None:
        self._paper, self._snapshot, self._effort, self._allowed = paper, snapshot, effort, allowed
        self._scored = paper.scored(snapshot, query, k, effort, allowed=allowed)

    def best(self, count: int) -> Found:
        """The best of all."""
        return self._scored.best(count)

    def score_again(self, expansion: Expansion, k: int, depth: int | None) -> Found:
        """Score every candidate, or the best of them."""
        positions = self._scored.positions if depth is None else np.sort(self._scored.best(depth).positions)
        with self._effort.stage("maxsim again"):
            scorer = Scorer(self._snapshot, expansion.query, workers=self._effort.workers)
            return Scored(positions, scorer.scores(positions, self._effort.workers)).best(k)

    def find_again(self, expansion: Expansion, k: int, rescore: int | None) -> Found:
        """Search from scratch."""
        return self._paper.find(self._snapshot, expansion.query, k, self._effort, allowed=self._allowed)


class ExactPass(FirstPass):
    """Over any collection, such as an index in memory: every document is scored exactly, in both passes.

    Parameters
    ----------
    collection
        The documents.
    query, effort, allowed
        As in :class:`CompressedPass`.
    """

    def __init__(self, collection: Collection, query: EncodedQuery, effort: Effort, allowed: Mask) -> None:
        self._collection, self._effort = collection, effort
        self._positions = np.arange(collection.num_positions) if allowed is None else np.flatnonzero(allowed)
        with effort.stage("score"):
            self._scored = self._score(query, self._positions)

    def _score(self, query: EncodedQuery, positions: npt.NDArray[np.int64]) -> Scored:
        return Scored(positions, self._collection.score(query)[positions])

    def best(self, count: int) -> Found:
        """The best of all."""
        return self._scored.best(count)

    def score_again(self, expansion: Expansion, k: int, depth: int | None) -> Found:
        """Score everything, or the best of the first pass."""
        positions = self._positions if depth is None else np.sort(self._scored.best(depth).positions)
        with self._effort.stage("score again"):
            return self._score(expansion.query, positions).best(k)

    def find_again(self, expansion: Expansion, k: int, rescore: int | None) -> Found:
        """Score everything."""
        with self._effort.stage("score again"):
            return self._score(expansion.query, self._positions).best(k)
