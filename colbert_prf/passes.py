"""The two passes of a search with feedback, over each kind of index: find, and find again with an expanded query."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from colbert_prf.effort import Effort
from colbert_prf.engine import Early, FirstPass, Found, best_of, first_pass
from colbert_prf.feedback import Feedback
from colbert_prf.index import MemoryIndex
from colbert_prf.index.snapshot import Snapshot
from colbert_prf.kernels.parallel import ALONE, Workers
from colbert_prf.paper import PaperEngine
from colbert_prf.scorer import Scorer
from colbert_prf.second_pass import Depths, Gains, default_depths, find_again, gains_of, score_again
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

    def first_and_learned(
        self, query: EncodedQuery, k: int, count: int, learn: Learn, *, exact: int | None = None
    ) -> tuple[ReadFound, Expansion]:
        """What gives the best documents for a query, and what is learned from the best ``count`` of them.

        Where approximate scores are to be had, all but ``exact`` documents may have such until they are asked for.
        """
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
            Documents scored exactly with the expanded query, where that is a choice; as :func:`default_depths` says by
            default.
        """


class CompressedPasses(Passes):
    """Over a generation of an index folder; the second pass reuses the first."""

    source: Snapshot
    _state: FirstPass
    _begun: tuple[Expansion, Gains] | None = None
    """What was found out for the second pass while the first was not over, and for which expansion."""

    def first(self, query: EncodedQuery, k: int) -> Found:
        """Search, and keep what was found out."""
        self._state = first_pass(self.source, query, k, self.effort, allowed=self.allowed)
        return best_of(self._state.scored, k)

    def first_and_learned(
        self, query: EncodedQuery, k: int, count: int, learn: Learn, *, exact: int | None = None
    ) -> tuple[ReadFound, Expansion]:
        """Learn from what seem to be the best documents while others are scored; again, if others turn out to be."""
        lessons: list[tuple[Found, Expansion]] = []

        def learn_early(few: Found, positions: npt.NDArray[np.int64]) -> None:
            with self.effort.stage("expansion", within="maxsim"):
                expansion = learn(few, ALONE)
            lessons.append((few, expansion))
            if len(expansion):
                # The other threads have something to do.
                alone = replace(self.effort, threads=1)
                gains = gains_of(self.source, _added(expansion), positions, alone, within="maxsim")
                self._begun = (expansion, gains)
                _ = expansion.share  # the second pass asks for it; what it asks for now takes no time of its own

        early = Early(count, learn_early, None if self.source.codec.bits == 16 else exact)
        self._state = first_pass(self.source, query, k, self.effort, allowed=self.allowed, early=early)
        ((few, expansion),) = lessons
        if not self._are_best(few, count):
            self._state = self._state.exactly(self.effort.workers)
            with self.effort.stage("expansion"):
                expansion = learn(best_of(self._state.scored, count), self.effort.workers)
        return lambda: best_of(self._state.exactly(self.effort.workers).scored, k), expansion

    def roughly(self, exact: int) -> CompressedPasses:
        """The same after a first pass that scored only ``exact`` documents exactly; at 16 bits it scores all so."""
        if self.source.codec.bits == 16:
            return self
        passes = CompressedPasses(self.source, self.effort, self.allowed)
        passes._state = self._state.roughly(exact)
        return passes

    def _are_best(self, few: Found, count: int) -> bool:
        """Whether some documents are for certain the best ``count`` of the first pass."""
        found = len(few.scores)
        return found == count and (count == 0 or np.count_nonzero(self._state.scores >= few.scores[-1]) == count)

    def again(self, expansion: Expansion, k: int, feedback: Feedback, rescore: int | None = None) -> Found:
        """Score the added vectors, and what the first pass did not see."""
        if self._begun is not None and self._begun[0] is expansion:
            gains = self._begun[1]
        else:
            gains = gains_of(self.source, _added(expansion), self._state.positions, self.effort)
        depths = default_depths(k, expansion, self.source.codec.bits)
        if rescore is not None:
            depths = Depths(max(k, rescore), max(k, rescore))
        if feedback.rerank:
            return score_again(self.source, self._state, gains, k, depths, self.effort, depth=feedback.rerank_depth)
        return find_again(self.source, self._state, gains, k, depths, self.effort, allowed=self.allowed)


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
    _found: Found

    def __init__(
        self, source: Snapshot, effort: Effort, allowed: npt.NDArray[np.bool_] | None, engine: PaperEngine
    ) -> None:
        super().__init__(source, effort, allowed)
        self._engine = engine

    def first(self, query: EncodedQuery, k: int) -> Found:
        """Search, and keep every candidate."""
        self._found = self._engine.scored(self.source, query, k, self.effort, allowed=self.allowed)
        return best_of(self._found, k)

    def again(self, expansion: Expansion, k: int, feedback: Feedback, rescore: int | None = None) -> Found:
        """Search anew, or score every candidate of the first pass."""
        if not feedback.rerank:
            return self._engine.find(self.source, expansion.query, k, self.effort, allowed=self.allowed)
        depth = feedback.rerank_depth
        positions = self._found.positions if depth is None else np.sort(best_of(self._found, depth).positions)
        with self.effort.stage("maxsim again"):
            scorer = Scorer(self.source, expansion.query, workers=self.effort.workers)
            return best_of(Found(positions, scorer.scores(positions, self.effort.workers)), k)


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


def _added(expansion: Expansion) -> EncodedQuery:
    """The vectors an expansion adds, and their weights."""
    return expansion.query.from_vector(expansion.num_original)


def _best(scores: npt.NDArray[np.float32], k: int, mask: npt.NDArray[np.bool_] | None) -> Found:
    """The k best finite scores, best first, equal scores by position."""
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    order = np.argsort(-scores, kind="stable")[:k]
    order = order[np.isfinite(scores[order])]
    return Found(order, scores[order])
