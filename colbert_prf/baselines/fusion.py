"""Two or more systems as one: by the ranks they give, or by their scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import fsum
from typing import Literal, get_args

from colbert_prf.errors import InputError, whole_number
from colbert_prf.search.retriever import DEFAULT_K, Retriever
from colbert_prf.types import Hit, Ranking

__all__ = ["Fusion", "FusionMethod"]

FusionMethod = Literal["ranks", "scores"]


class Fusion(Retriever):
    """Merge the rankings of systems.

    By ``"ranks"``, reciprocal rank fusion: Σ_s w_s / (c + rank_s(d)) over the systems that found the
    document. By ``"scores"``: Σ_s w_s · (s(d) - min) / (max - min), each system's scores for the query
    stretched to 0 to 1; 0 where a system did not find the document. Equal scores are in the order of the best rank,
    then of the ids, so that the order of the systems never matters.

    Parameters
    ----------
    systems
        At least one.
    method
        ``"ranks"`` or ``"scores"``.
    weights
        One for each system; all 1 if left out.
    constant
        c, how little the first ranks stand out; 60 in the paper.
    depth
        What each system is asked for, at least.

    References
    ----------
    Cormack, Clarke, Büttcher: Reciprocal rank fusion outperforms Condorcet and individual rank learning methods, SIGIR
    2009.
    """

    def __init__(
        self,
        systems: Sequence[Retriever],
        *,
        method: FusionMethod = "ranks",
        weights: Sequence[float] | None = None,
        constant: float = 60.0,
        depth: int = 1000,
    ) -> None:
        weights = [1.0] * len(systems) if weights is None else list(weights)
        if not systems or len(weights) != len(systems):
            raise InputError(f"fusion needs systems and a weight for each, found {len(systems)} and {len(weights)}")
        if min(weights) < 0 or constant < 0 or depth < 1:
            raise InputError("weights and constant must not be negative, and depth must be at least 1")
        if method not in get_args(FusionMethod):
            raise InputError(f"method must be one of {get_args(FusionMethod)}, found {method!r}")
        self.systems = list(systems)
        self.method = method
        self.weights = weights
        self.constant = constant
        self.depth = depth

    def search(self, query: str, k: int = DEFAULT_K) -> Ranking:
        """Ask every system and merge what they found."""
        k = whole_number("k", k, least=1)
        rankings = [system.search(query, max(k, self.depth)) for system in self.systems]
        timings: dict[str, float] = {}
        for number, ranking in enumerate(rankings, start=1):
            timings |= {f"{number}: {stage}": seconds for stage, seconds in ranking.timings.items()}
        return Ranking(query, self.fused(rankings)[:k], timings)

    def fused(self, rankings: Sequence[Ranking]) -> tuple[Hit, ...]:
        """Merge rankings, one of each system, in their order."""
        parts: dict[str, list[float]] = {}
        ranks: dict[str, int] = {}
        hits: dict[str, Hit] = {}
        for ranking, weight in zip(rankings, self.weights, strict=True):
            points = self._points(ranking)
            for rank, hit in enumerate(ranking, start=1):
                parts.setdefault(hit.doc_id, []).append(weight * points[hit.doc_id])
                ranks[hit.doc_id] = min(rank, ranks.get(hit.doc_id, rank))
                hits.setdefault(hit.doc_id, hit)
        scores = {doc_id: fsum(values) for doc_id, values in parts.items()}
        order = sorted(scores, key=lambda doc_id: (-scores[doc_id], ranks[doc_id], doc_id))
        return tuple(replace(hits[doc_id], score=scores[doc_id]) for doc_id in order)

    def _points(self, ranking: Ranking) -> Mapping[str, float]:
        """What a system gives to each document it found, before its weight."""
        if self.method == "ranks":
            return {hit.doc_id: 1 / (self.constant + rank) for rank, hit in enumerate(ranking, start=1)}
        scores = ranking.scores
        low, width = min(scores, default=0.0), max(scores, default=0.0) - min(scores, default=0.0)
        return {hit.doc_id: (hit.score - low) / width if width > 0 else 1.0 for hit in ranking}
