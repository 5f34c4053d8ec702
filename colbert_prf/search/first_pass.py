"""Algorithm 1 of the paper, the search of ColBERT end to end, with pruning between its two stages.

1. candidates, with approximate scores: see :mod:`colbert_prf.search.candidates`;
2. the shortlist: the ``rescore`` best of them, and those with rare tokens of the query;
3. exact weighted MaxSim on the decoded vectors of the shortlist, and of the candidates that may still be among the best
   ten: see :mod:`colbert_prf.search.shortlist`.

``k`` results come back when ``k`` documents exist. What a first pass computes serves the second pass again: see
:mod:`colbert_prf.search.second_pass`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from colbert_prf.kernels import topk
from colbert_prf.search.budget import Budget, Execution, default_keep
from colbert_prf.search.candidates import Candidates
from colbert_prf.search.scorer import Scorer, Scoring, TopDocuments
from colbert_prf.search.second_pass import rescored, search_again
from colbert_prf.search.shortlist import Shortlist, least_worth_scoring
from colbert_prf.types import Expansion

__all__ = ["FirstPass", "PrunedPass"]

SCORED_EARLY = 150
"""Documents of the best approximate scores among which the very best nearly always are."""
ROUNDS = 2
"""How often a first pass looks for documents that may still be among the best: the second time it knows better ones."""
ERROR_SAMPLE = 200
"""Documents of the best approximate scores whose errors tell at first how far approximate scores are off.

The same for every k: the errors of lower ranks are smaller, and say too little about the best documents.
"""
MOST_ADDED = 20_000
"""Documents a round adds at most, so that a search of a large index ends soon."""


class FirstPass(ABC):
    """A first pass under way; it begins when it is made, and other threads may go on with it."""

    @abstractmethod
    def best(self, count: int) -> TopDocuments:
        """The best documents scored so far."""

    def finish(self) -> None:  # noqa: B027 - most have nothing left to do
        """Score the documents that are not scored yet; a second pass needs all."""

    @abstractmethod
    def score_again(self, expansion: Expansion, k: int, *, depth: int | None, rescore: int | None) -> TopDocuments:
        """The ReRanker: the best of its documents for the expanded query.

        ``rescore`` of them are scored exactly with it, ``k`` or more; or the ``depth`` best of the first pass.
        """

    @abstractmethod
    def find_again(self, expansion: Expansion, k: int, *, rescore: int | None) -> TopDocuments:
        """The Ranker: the best of all documents for the expanded query, of which ``rescore`` are scored exactly."""


class PrunedPass(FirstPass):
    """Over the candidates of a query in a compressed index.

    Parameters
    ----------
    candidates
        Of the query.
    k
        Documents wanted.
    budget
        How many are scored exactly.
    execution
        What to compute with.
    early
        Documents wanted before all are scored: several times as many, those of the best approximate scores, are scored
        first, and other threads go on with the rest.
    """

    def __init__(
        self, candidates: Candidates, k: int, budget: Budget, execution: Execution | None = None, early: int = 0
    ) -> None:
        self._candidates, self._budget, self._execution = candidates, budget, execution or Execution()
        with self._execution.stage("interaction"):
            chosen = candidates.best(max(k, budget.rescore))
            sample = topk.best(chosen.scores, ERROR_SAMPLE)
            self._cut = float(chosen.scores[sample].min(initial=np.inf))
            if budget.widen:
                chosen = chosen.union(candidates.with_rare_tokens())
        with self._execution.stage("maxsim"):
            self.shortlist = Shortlist(*chosen, np.empty(len(chosen.scores), np.float32))
            self._early = topk.best(chosen.scores, max(SCORED_EARLY, 4 * early) if early else 0)
            self._late = np.delete(np.arange(len(chosen.scores)), self._early)
            self.shortlist.scores[self._early] = candidates.scorer.scores(chosen.positions[self._early])
            self._scoring: Scoring | None = candidates.scorer.begin(chosen.positions[self._late])

    def best(self, count: int) -> TopDocuments:
        """Until it is finished, the best of those scored early: nearly always the best of all."""
        scored = self.shortlist if self._scoring is None else self.shortlist.only(self._early)
        return scored.top(count)

    def finish(self) -> None:
        """Score the others, and where the budget is to be widened, those that may still be among the best."""
        if self._scoring is None:
            return
        with self._execution.stage("maxsim"):
            self.shortlist.scores[self._late] = self._scoring.finish()
            self._scoring = None
            if self._budget.widen:
                self._widen()

    def _widen(self) -> None:
        """Score the candidates that may be among the best, by what exact scores tell about approximate ones."""
        for _ in range(ROUNDS):
            least = least_worth_scoring(self.shortlist.scores, self.shortlist.approximate, self._cut)
            more = self._candidates.at_least(least, besides=self.shortlist.positions, most=MOST_ADDED)
            if not len(more.positions):
                break
            self._cut = min(self._cut, float(more.scores.min()))
            scores = self._candidates.scorer.scores(more.positions)
            self.shortlist = self.shortlist.union(Shortlist(*more, scores))

    def score_again(self, expansion: Expansion, k: int, *, depth: int | None, rescore: int | None) -> TopDocuments:
        """Score the added vectors; the original ones are scored already."""
        shortlist, keep = self.shortlist, default_keep(k, expansion) if rescore is None else max(k, rescore)
        if depth is not None:
            shortlist, keep = shortlist.only(topk.best(shortlist.scores, depth)), depth
        return rescored(shortlist, self._added(expansion), keep, self._execution).top(k)

    def find_again(self, expansion: Expansion, k: int, *, rescore: int | None) -> TopDocuments:
        """Score the added vectors, and documents the first pass did not score."""
        added = self._added(expansion)
        keep = default_keep(k, expansion) if rescore is None else max(k, rescore)
        return search_again(self._candidates, self.shortlist, added, keep, self._execution).top(k)

    def _added(self, expansion: Expansion) -> Scorer:
        with self._execution.stage("centroids again"):
            return self._candidates.scorer_of(expansion.query.from_vector(expansion.num_original))
