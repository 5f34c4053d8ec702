"""The search of the preset ``paper``: both passes look documents up in the FAISS index of :mod:`.ivfpq`."""

from __future__ import annotations

import numpy as np

from colbert_prf.index.snapshot import Snapshot
from colbert_prf.search.budget import Execution
from colbert_prf.search.first_pass import FirstPass
from colbert_prf.search.ivfpq import PaperEngine
from colbert_prf.search.scorer import Mask, ScoredDocuments, StoredScorer, TopDocuments
from colbert_prf.types import EncodedQuery, Expansion

__all__ = ["PaperPass"]


class PaperPass(FirstPass):
    """Over a generation of an index folder; the Ranker searches from scratch.

    Parameters
    ----------
    engine
        Keeps the FAISS index between searches.
    snapshot, query, k, probes, execution, allowed
        As in :meth:`PaperEngine.scored`.
    """

    def __init__(
        self,
        engine: PaperEngine,
        snapshot: Snapshot,
        query: EncodedQuery,
        k: int,
        probes: int | None,
        execution: Execution,
        allowed: Mask = None,
    ) -> None:
        self._engine, self._snapshot, self._probes = engine, snapshot, probes
        self._execution, self._allowed = execution, allowed
        self._scored = engine.scored(snapshot, query, k, probes, execution, allowed=allowed)

    def best(self, count: int) -> TopDocuments:
        """The best of all."""
        return self._scored.top(count)

    def score_again(self, expansion: Expansion, k: int, *, depth: int | None, rescore: int | None) -> TopDocuments:
        """Score every candidate, or the best of them."""
        positions = self._scored.positions if depth is None else np.sort(self._scored.top(depth).positions)
        with self._execution.stage("maxsim again"):
            scorer = StoredScorer(self._snapshot, expansion.query, self._execution.workers)
            return ScoredDocuments(positions, scorer.scores(positions)).top(k)

    def find_again(self, expansion: Expansion, k: int, *, rescore: int | None) -> TopDocuments:
        """Search from scratch."""
        scored = self._engine.scored(
            self._snapshot, expansion.query, k, self._probes, self._execution, allowed=self._allowed
        )
        return scored.top(k)
