"""The two passes of a search with feedback, over each kind of index: find, and find again with an expanded query."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from colbert_prf.effort import Effort
from colbert_prf.engine import Early, FirstPass, Found, Scored, first_pass
from colbert_prf.feedback import Feedback
from colbert_prf.index import MemoryIndex
from colbert_prf.index.snapshot import Snapshot
from colbert_prf.kernels.parallel import ALONE, Workers
from colbert_prf.paper import PaperEngine
from colbert_prf.scorer import Scorer
from colbert_prf.second_pass import added_vectors, default_keep, find_again, score_again
from colbert_prf.types import EncodedQuery, Expansion

__all__ = ["CompressedPasses", "ExactPasses", "PaperPasses", "Passes"]


Learn: TypeAlias = Callable[[Found, Workers], Expansion]
"""Expands a query from the best documents."""
ReadFound: TypeAlias = Callable[[], Found]
"""Gives documents, best first, sorted when they are asked for."""


class Passes(ABC):
    """One search: a first pass, and after it at most one second pass.

    Parameters
    ----------
    source
        One state of an index.
    effort
        How hard to try.
    allowed
        Whether each position may be found, of shape (num_positions,); None for all.
    """

    def __init__(self, source: Any, effort: Effort, allowed: npt.NDArray[np.bool_] | None) -> None:
        self.source = source
        self.effort = effort
        self.allowed = allowed

    @abstractmethod
    def first(self, query: EncodedQuery, k: int) -> Found:
        """The best documents for a query."""

    def first_and_learned(self, query: EncodedQuery, k: int, count: int, learn: Learn) -> tuple[ReadFound, Expansion]:
        """What gives the best documents for a query, and what is learned from the best ``count`` of them."""
        found = self.first(query, k)
        with self.effort.stage("expansion"):
            return lambda: found, learn(found, self.effort.workers)

    @abstractmethod
    def again(self, expansion: Expansion, k: int, feedback: Feedback, rescore: int | None = None) -> Found:
        """The best documents for the expanded query, of all or of those of the first pass.

        Parameters
        ----------
        expansion
            With at least one vector added.
        k
            How many.
        feedback
            Whether and how deep it only scores anew.
        rescore
            Documents scored exactly with the expanded query, where that is a choice; as :func:`default_keep` says by
            default.
        """


class CompressedPasses(Passes):
    """Over a generation of an index folder; the second pass reuses the first."""

    source: Snapshot
    _state: FirstPass

    def first(self, query: EncodedQuery, k: int) -> Found:
        """Search, and keep what was found out."""
        self._state = first_pass(self.source, query, k, self.effort, allowed=self.allowed)
        return self._state.scored.best(k)

    def first_and_learned(self, query: EncodedQuery, k: int, count: int, learn: Learn) -> tuple[ReadFound, Expansion]:
        """Learn from what seem to be the best documents while others are scored; again, if others turn out to be."""
        lessons: list[tuple[Found, Expansion]] = []

        def learn_early(few: Found) -> None:
            with self.effort.stage("expansion", within="maxsim"):
                lessons.append((few, learn(few, ALONE)))

        early = Early(count, learn_early)
        self._state = first_pass(self.source, query, k, self.effort, allowed=self.allowed, early=early)
        ((few, expansion),) = lessons
        best = self._state.scored.best(count)
        if not np.array_equal(best.positions, few.positions):
            with self.effort.stage("expansion"):
                expansion = learn(best, self.effort.workers)
        return lambda: self._state.scored.best(k), expansion

    def again(self, expansion: Expansion, k: int, feedback: Feedback, rescore: int | None = None) -> Found:
        """Score the added vectors, and what the first pass did not see."""
        added = added_vectors(self.source, expansion, self.effort)
        if feedback.rerank:
            return score_again(self._state, added, k, self.effort, depth=feedback.rerank_depth)
        keep = default_keep(k, expansion) if rescore is None else max(k, rescore)
        return find_again(self.source, self._state, added, k, keep, self.effort, allowed=self.allowed)


class PaperPasses(Passes):
    """Over a generation of an index folder, as the authors do it: the second pass searches from scratch.

    Parameters
    ----------
    source, effort, allowed
        As in :class:`Passes`.
    engine
        Keeps the FAISS index between searches.
    """

    source: Snapshot
    _found: Scored

    def __init__(
        self, source: Snapshot, effort: Effort, allowed: npt.NDArray[np.bool_] | None, engine: PaperEngine
    ) -> None:
        super().__init__(source, effort, allowed)
        self._engine = engine

    def first(self, query: EncodedQuery, k: int) -> Found:
        """Search, and keep every candidate."""
        self._found = self._engine.scored(self.source, query, k, self.effort, allowed=self.allowed)
        return self._found.best(k)

    def again(self, expansion: Expansion, k: int, feedback: Feedback, rescore: int | None = None) -> Found:
        """Search anew, or score every candidate of the first pass."""
        if not feedback.rerank:
            return self._engine.find(self.source, expansion.query, k, self.effort, allowed=self.allowed)
        depth = feedback.rerank_depth
        positions = self._found.positions if depth is None else np.sort(self._found.best(depth).positions)
        with self.effort.stage("maxsim again"):
            scorer = Scorer(self.source, expansion.query, workers=self.effort.workers)
            return Scored(positions, scorer.scores(positions, self.effort.workers)).best(k)


class ExactPasses(Passes):
    """Over an index in memory: every document is scored exactly, in both passes."""

    source: MemoryIndex
    _found: Found

    def first(self, query: EncodedQuery, k: int) -> Found:
        """Score everything."""
        with self.effort.stage("score"):
            self._found = _best(self.source.score(query), self.source.num_positions, self.allowed)
        return Found(self._found.positions[:k], self._found.scores[:k])

    def again(self, expansion: Expansion, k: int, feedback: Feedback, rescore: int | None = None) -> Found:
        """Score everything, or the best of the first pass."""
        allowed = self.allowed
        if feedback.rerank and feedback.rerank_depth is not None:
            allowed = np.zeros(self.source.num_positions, dtype=np.bool_)
            allowed[self._found.positions[: feedback.rerank_depth]] = True
        with self.effort.stage("score again"):
            return _best(self.source.score(expansion.query), k, allowed)


def _best(scores: npt.NDArray[np.float32], k: int, mask: npt.NDArray[np.bool_] | None) -> Found:
    """The k best finite scores, best first, equal scores by position."""
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    order = np.argsort(-scores, kind="stable")[:k]
    order = order[np.isfinite(scores[order])]
    return Found(order, scores[order])
