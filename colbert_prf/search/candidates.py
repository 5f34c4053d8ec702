"""The documents a query may find, each with an approximate score: what the exact stage of a search chooses from.

1. scores of all centroids for all query vectors;
2. the documents of the best ``probes`` centroids of each query vector, or all documents;
3. centroid interaction: approximate weighted MaxSim of these, from the centroids of their vectors.

Deleted and filtered documents are left out from step 2 on. Steps 2 and 3 treat each segment for itself, so a collection
may be divided among processes by its segments.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Protocol, TypeAlias

import numpy as np

from colbert_prf.index.segment import Segment
from colbert_prf.index.snapshot import Snapshot
from colbert_prf.kernels import candidates as lists
from colbert_prf.kernels import topk
from colbert_prf.search.budget import Budget, Execution
from colbert_prf.search.scorer import DocumentsBySegment, Mask, Positions, ScoredDocuments, Scorer, Scores, StoredScorer
from colbert_prf.search.shortlist import WITH_RARE_TOKENS, RareTokens, heaviest, rare_tokens, token_weights
from colbert_prf.types import EncodedQuery

__all__ = ["Candidates", "StoredCandidates", "find_candidates"]

FEW_ALLOWED = 10_000
"""Up to this many documents of a segment that a filter leaves are all candidates: inverted lists would take longer."""

Choose: TypeAlias = Callable[..., DocumentsBySegment]


class Candidates(Protocol):
    """The documents a query may find, with their approximate scores; positions are ascending everywhere."""

    @property
    def scorer(self) -> Scorer:
        """Compares documents with the query."""

    def scorer_of(self, query: EncodedQuery) -> Scorer:
        """Compares documents with another query, such as the vectors that feedback adds."""

    def best(self, count: int) -> ScoredDocuments:
        """Those of the best approximate scores; equal scores by position."""

    def with_rare_tokens(self) -> ScoredDocuments:
        """Those with the rarest tokens of the query, where the budget is to be widened."""

    def at_least(self, score: float, *, besides: Positions, most: int | None = None) -> ScoredDocuments:
        """Those of at least an approximate score, except some that are known; of more than ``most`` the best."""

    def extended(self, scorer: Scorer) -> Candidates:
        """These and the candidates of another query, all with the approximate scores of this one."""


@dataclass(frozen=True, eq=False)
class StoredCandidates(Candidates):
    """Over a generation of an index folder.

    Parameters
    ----------
    stored
        The scorer of the query.
    documents
        The candidates of each segment.
    approximate
        Their approximate scores, one segment after the other.
    weights
        How rare their tokens of the query are, likewise; None where that does not count.
    choose
        Chooses candidates by a query; None where all documents that may be found are candidates.
    execution
        What to compute with.
    """

    stored: StoredScorer
    documents: DocumentsBySegment
    approximate: Scores
    weights: Scores | None
    choose: Choose | None
    execution: Execution

    @property
    def scorer(self) -> Scorer:
        """Compares documents with the query."""
        return self.stored

    def scorer_of(self, query: EncodedQuery) -> StoredScorer:
        """Compares documents with another query."""
        return StoredScorer(self.stored.snapshot, query, self.execution.workers)

    @cached_property
    def _positions(self) -> Positions | None:
        """The positions of all candidates; None where they are 0, 1, 2 and so on."""
        if all(documents is None for documents in self.documents):
            return None
        snapshot = self.stored.snapshot
        parts = [np.empty(0, np.int64)]
        for segment, documents, start in zip(snapshot.segments, self.documents, snapshot.starts, strict=False):
            parts.append((np.arange(len(segment)) if documents is None else documents) + int(start))
        return np.concatenate(parts)

    def _scored(self, rows: Positions) -> ScoredDocuments:
        """Some of the candidates, by their ascending rows among all."""
        return ScoredDocuments(rows if self._positions is None else self._positions[rows], self.approximate[rows])

    def best(self, count: int) -> ScoredDocuments:
        """Those of the best approximate scores, except documents without vectors."""
        rows = topk.best(self.approximate, count)
        return self._scored(rows[np.isfinite(self.approximate[rows])])

    def with_rare_tokens(self) -> ScoredDocuments:
        """Those with the rarest tokens of the query; none where that does not count."""
        return self._scored(self._rare_rows)

    @property
    def rarities(self) -> Scores:
        """How rare the query's tokens in each of :meth:`with_rare_tokens` are."""
        return np.empty(0, np.float32) if self.weights is None else self.weights[self._rare_rows]

    @cached_property
    def _rare_rows(self) -> Positions:
        return np.empty(0, np.int64) if self.weights is None else heaviest(self.weights, self.approximate)

    def at_least(self, score: float, *, besides: Positions, most: int | None = None) -> ScoredDocuments:
        """Those of at least an approximate score, except some and those without vectors."""
        # A little less, because sums are rounded; minus infinity, of a document without vectors, never suffices.
        enough = self.approximate >= np.float32(max(score - 1e-3, float(np.finfo(np.float32).min)))
        enough[besides if self._positions is None else np.searchsorted(self._positions, besides)] = False
        rows = np.flatnonzero(enough)
        if most is not None and len(rows) > most:
            rows = rows[topk.best(self.approximate[rows], most)]
        return self._scored(rows)

    def extended(self, scorer: Scorer) -> StoredCandidates:
        """These and the candidates of another query."""
        if self.choose is None:
            return self
        assert isinstance(scorer, StoredScorer)
        pairs = zip(self.documents, self.choose(scorer), strict=True)
        documents = [None if old is None or new is None else np.union1d(old, new) for old, new in pairs]
        return replace(self, documents=documents, approximate=self.stored.approximate(documents), weights=None)


def find_candidates(
    snapshot: Snapshot,
    query: EncodedQuery,
    k: int,
    budget: Budget,
    execution: Execution | None = None,
    *,
    allowed: Mask = None,
    rare: RareTokens | None = None,
) -> StoredCandidates:
    """Find the candidates of a generation.

    Parameters
    ----------
    snapshot
        The generation.
    query
        Of the index's dim.
    k
        How many documents are wanted of each segment that has as many.
    budget
        Its ``probes``; where it is to be widened, documents with rare tokens of the query are candidates as well.
    execution
        What to compute with.
    allowed
        Which documents may be found.
    rare
        The rare tokens of the query, where the generation is a part of the collection that tells which are rare.
    """
    execution = execution or Execution()
    with execution.stage("centroids"):
        scorer = StoredScorer(snapshot, query, execution.workers)
        scorer.prepare()
    with execution.stage("candidates"):
        masks = [_mask(*part, allowed) for part in zip(snapshot.segments, snapshot.starts, strict=False)]
        if budget.widen and rare is None:
            rare = rare_tokens(query, snapshot.document_frequencies, snapshot.num_positions)
        weights = token_weights(snapshot, rare, masks) if budget.widen and rare is not None else None
        choose = None if budget.probes is None else partial(_probed, masks=masks, k=k, probes=budget.probes)
        documents = _all_of(masks) if choose is None else choose(scorer, weights=weights)
        rarities = None if weights is None else _joined(weights, documents)
    with execution.stage("interaction"):
        approximate = scorer.approximate(documents)
    return StoredCandidates(scorer, documents, approximate, rarities, choose, execution)


def _mask(segment: Segment, start: int, allowed: Mask) -> Mask:
    """Which documents of a segment may be found; None for all."""
    mask = ~segment.deleted if segment.deleted.any() else None
    if allowed is None:
        return mask
    allowed_here = allowed[start : start + len(segment)]
    return allowed_here if mask is None else allowed_here & mask


def _all_of(masks: Sequence[Mask]) -> DocumentsBySegment:
    """The documents of each segment that may be found."""
    return [None if mask is None else np.flatnonzero(mask) for mask in masks]


def _probed(
    scorer: StoredScorer,
    *,
    masks: Sequence[Mask],
    k: int,
    probes: int,
    weights: Sequence[Scores] | None = None,
) -> DocumentsBySegment:
    """The documents of the best centroids of each query vector, and those with the largest token weights.

    All that may be found of a segment where this leaves fewer than ``k``, or where a filter allows only a few.
    """
    centroids = lists.probed_centroids(scorer.centroid_bytes.values, len(scorer.query), probes)
    chosen: list[Positions | None] = []
    for number, (segment, mask) in enumerate(zip(scorer.snapshot.segments, masks, strict=True)):
        if mask is not None and np.count_nonzero(mask) <= FEW_ALLOWED:
            chosen.append(np.flatnonzero(mask))
            continue
        probed = segment.documents_with_any(centroids)
        if weights is not None:
            rows = topk.best(weights[number], WITH_RARE_TOKENS)
            probed[rows[weights[number][rows] > 0]] = True
        documents = np.flatnonzero(probed if mask is None else probed & mask)
        chosen.append(documents if len(documents) >= k else None if mask is None else np.flatnonzero(mask))
    return chosen


def _joined(parts: Sequence[Scores], documents: DocumentsBySegment) -> Scores:
    """The values of the chosen documents of each segment, one segment after the other."""
    chosen = [part if rows is None else part[rows] for part, rows in zip(parts, documents, strict=True)]
    return chosen[0] if len(chosen) == 1 else np.concatenate([np.empty(0, np.float32), *chosen])
