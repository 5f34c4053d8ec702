"""The search over a compressed index: centroid scores, candidates, centroid interaction, exact MaxSim.

1. scores of all centroids for all query vectors;
2. the documents of the best ``probes`` centroids of each query vector, or all documents;
3. centroid interaction, approximate weighted MaxSim from the codes alone: keep the best ``rescore``, and those with
   rare tokens of the query;
4. exact weighted MaxSim on the decoded vectors of these, and of those that may still be among the best ten (see
   :mod:`colbert_prf.search.shortlist`): keep the best ``k``.

Deleted and filtered documents are out from step 2 on, so ``k`` results come back when ``k`` exist. What a first pass
leaves behind lets :mod:`colbert_prf.search.second_pass` search again with more query vectors at a part of the cost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from colbert_prf.index.segment import Segment
from colbert_prf.index.snapshot import Snapshot
from colbert_prf.search.effort import Effort
from colbert_prf.search.scorer import Scorer, Scoring
from colbert_prf.search.shortlist import (
    WITH_RARE_TOKENS,
    could_enter,
    least_worth_scoring,
    matching_places,
    token_weights,
)
from colbert_prf.types import EncodedQuery

if TYPE_CHECKING:
    from colbert_prf.kernels.interaction import ByteTable

__all__ = [
    "FinishedPass",
    "Found",
    "Scored",
    "StartedPass",
    "begin",
    "candidates_of",
    "default_probes",
    "default_rescore",
    "find",
    "first_pass",
    "interact_with",
    "positions_at",
    "positions_of",
]

PROBE_EVERYTHING = 10_000_000
"""Up to so many vectors all documents pass through centroid interaction: it takes a nanosecond a vector."""
FEW_ALLOWED = 10_000
"""Up to so many documents that a filter leaves are all candidates: that takes less than reading inverted lists."""
SCORED_EARLY = 150
"""Documents of the best approximate scores among which the very best nearly always are."""
ROUNDS = 2
"""How often a first pass looks for documents that may still be among the best: the second time it knows better ones."""
MOST_ADDED = 20_000
"""Documents a round adds, so that a search of a large index ends soon."""


class Found(NamedTuple):
    """Positions of documents and their scores, best first; equal scores by position."""

    positions: npt.NDArray[np.int64]
    scores: npt.NDArray[np.float32]


class Scored(NamedTuple):
    """Positions of documents, ascending, and their scores; minus infinity for one without vectors."""

    positions: npt.NDArray[np.int64]
    scores: npt.NDArray[np.float32]

    def best(self, k: int) -> Found:
        """The best of them, those without vectors left out."""
        from colbert_prf.kernels.topk import best_sorted

        order = best_sorted(self.scores, k)
        order = order[np.isfinite(self.scores[order])]
        return Found(self.positions[order], self.scores[order])


def default_rescore(k: int) -> int:
    """Documents to score exactly at least for ``k`` results; an ordinary question needs few more.

    >>> [default_rescore(k) for k in (1, 10, 100, 1000)]
    [200, 200, 500, 2300]
    """
    return max(200, min(5 * k, 2 * k + 300))


def default_probes(k: int, num_vectors: int) -> int | None:
    """Centroids to probe per query vector; None, all documents, for an index of up to ten million vectors.

    >>> default_probes(1000, 3_000_000), default_probes(10, 30_000_000), default_probes(1000, 30_000_000)
    (None, 2, 16)
    """
    if num_vectors <= PROBE_EVERYTHING:
        return None
    return 2 if k <= 10 else 4 if k <= 100 else 16


@dataclass(frozen=True)
class FinishedPass:
    """What a search knows when it ends, and a second pass reuses.

    Parameters
    ----------
    query
        What was searched.
    scorer
        Gives exact scores.
    values
        The query's centroid scores as bytes.
    chosen
        The candidates of each segment, ascending; None for all of its documents.
    approximate
        The approximate score of each candidate, by segment.
    places
        The candidates that were scored, ascending, in the order of all candidates, segment after segment.
    positions, scores
        Their positions, ascending, and their exact scores.
    """

    query: EncodedQuery
    scorer: Scorer
    values: ByteTable
    chosen: list[npt.NDArray[np.int64] | None]
    approximate: list[npt.NDArray[np.float32]]
    places: npt.NDArray[np.int64]
    positions: npt.NDArray[np.int64]
    scores: npt.NDArray[np.float32]

    @property
    def scored(self) -> Scored:
        """All documents that were scored."""
        return Scored(self.positions, self.scores)


@dataclass(frozen=True)
class StartedPass:
    """A first pass of which some documents are scored and others are being scored.

    Parameters
    ----------
    first
        What is known so far: its scores are filled in by :meth:`finish`.
    early, others
        Which of its documents are scored, and which are being scored; both ascending.
    scoring
        Of the others.
    snapshot
        What is searched.
    cut
        All candidates of at least this approximate score are among its documents.
    """

    first: FinishedPass
    early: npt.NDArray[np.int64]
    others: npt.NDArray[np.int64]
    scoring: Scoring
    snapshot: Snapshot
    cut: float

    def best(self, count: int) -> Found:
        """The best documents scored early: nearly always the best of all."""
        return Scored(self.first.positions[self.early], self.first.scores[self.early]).best(count)

    def finish(self, effort: Effort) -> FinishedPass:
        """Score the others, and with :attr:`Effort.widen` those that may still be among the best."""
        with effort.stage("maxsim"):
            self.first.scores[self.others] = self.scoring.finish()
            return _widened(self.snapshot, self.first, self.cut, effort) if effort.widen else self.first


def find(
    snapshot: Snapshot, query: EncodedQuery, k: int, effort: Effort, *, allowed: npt.NDArray[np.bool_] | None = None
) -> Found:
    """Find the best documents of a generation; see :func:`first_pass`."""
    return first_pass(snapshot, query, k, effort, allowed=allowed).scored.best(k)


def first_pass(
    snapshot: Snapshot, query: EncodedQuery, k: int, effort: Effort, *, allowed: npt.NDArray[np.bool_] | None = None
) -> FinishedPass:
    """Search a generation; parameters as in :func:`begin`."""
    return begin(snapshot, query, k, effort, allowed=allowed).finish(effort)


def begin(
    snapshot: Snapshot,
    query: EncodedQuery,
    k: int,
    effort: Effort,
    *,
    allowed: npt.NDArray[np.bool_] | None = None,
    early: int = 0,
) -> StartedPass:
    """Begin to search a generation: other threads score documents while the calling one does something else.

    Parameters
    ----------
    snapshot
        The generation.
    query
        Of the index's dim.
    k
        How many documents are wanted.
    effort
        How hard to try.
    allowed
        Whether each position may be found, of shape (num_positions,).
    early
        How many of the best documents are wanted before all are scored: those of the best approximate scores, several
        times as many, are scored first.
    """
    from colbert_prf.kernels.topk import best

    with effort.stage("centroids"):
        table = snapshot.codec.scores(query.vectors, effort.workers)
        values = snapshot.codec.byte_table(table)
    with effort.stage("candidates"):
        weights = token_weights(snapshot, query) if effort.widen else None
        chosen = candidates_of(snapshot, values, len(query), k, effort.probes, allowed, weights)
    with effort.stage("interaction"):
        approximate = interact_with(snapshot, values, query, chosen, effort)
        joined = _joined(approximate)
        places = best(joined, max(k, effort.rescore))
        places = places[np.isfinite(joined[places])]
        cut = float(joined[places].min(initial=np.inf))
        if weights is not None:
            here = [all_ if some is None else all_[some] for all_, some in zip(weights, chosen, strict=True)]
            places = np.union1d(places, matching_places(_joined(here), joined))
        estimates, positions = joined[places], positions_at(snapshot, chosen, places)
    with effort.stage("maxsim"):
        scorer, scores = Scorer(snapshot, query, table=table), np.empty(len(positions), np.float32)
        first = best(estimates, max(SCORED_EARLY, 4 * early) if early else 0)
        is_other = np.ones(len(positions), np.bool_)
        is_other[first] = False
        others = np.flatnonzero(is_other)
        scores[first] = scorer.scores(positions[first], effort.workers)
        scoring = scorer.begin(positions[others], effort.workers)
    known = FinishedPass(query, scorer, values, chosen, approximate, places, positions, scores)
    return StartedPass(known, first, others, scoring, snapshot, cut)


def _widened(snapshot: Snapshot, first: FinishedPass, cut: float, effort: Effort) -> FinishedPass:
    """Score also the candidates that may be among the best, by what exact scores tell about approximate ones."""
    from colbert_prf.kernels.topk import best

    approximate = _joined(first.approximate)
    for _ in range(ROUNDS):
        least = least_worth_scoring(first.scores, approximate[first.places], cut)
        more = could_enter(approximate, first.places, least)
        if not len(more):
            break
        if len(more) > MOST_ADDED:
            more = more[best(approximate[more], MOST_ADDED)]
        cut = min(cut, float(approximate[more].min()))
        scores = first.scorer.scores(positions_at(snapshot, first.chosen, more), effort.workers)
        places = np.concatenate([first.places, more])
        order = np.argsort(places)
        places, scores = places[order], np.concatenate([first.scores, scores])[order]
        first = replace(first, places=places, positions=positions_at(snapshot, first.chosen, places), scores=scores)
    return first


def interact_with(
    snapshot: Snapshot,
    values: ByteTable,
    query: EncodedQuery,
    chosen: Sequence[npt.NDArray[np.int64] | None],
    effort: Effort,
) -> list[npt.NDArray[np.float32]]:
    """Approximate scores of the candidates of each segment, from their codes alone."""
    from colbert_prf.kernels.interaction import interact

    return [
        interact(values, query.weights, segment.columns["codes"], segment.offsets, documents, **effort.workers)
        for segment, documents in zip(snapshot.segments, chosen, strict=True)
    ]


def candidates_of(
    snapshot: Snapshot,
    values: ByteTable,
    num_query_vectors: int,
    k: int,
    probes: int | None,
    allowed: npt.NDArray[np.bool_] | None,
    weights: Sequence[npt.NDArray[np.float32]] | None = None,
) -> list[npt.NDArray[np.int64] | None]:
    """The candidates of each segment, ascending; None for all of its documents.

    With ``probes``, those with the largest token weights are among them, where there are ``weights``.
    """
    from colbert_prf.kernels.candidates import probed_centroids
    from colbert_prf.kernels.topk import best

    masks = [_mask(segment, start, allowed) for segment, start in zip(snapshot.segments, snapshot.starts, strict=False)]
    few_allowed = allowed is not None and np.count_nonzero(allowed) <= FEW_ALLOWED
    if probes is not None and not few_allowed:
        centroids = probed_centroids(values.values, num_query_vectors, probes)
        found: list[npt.NDArray[np.int64] | None] = []
        for number, (segment, mask) in enumerate(zip(snapshot.segments, masks, strict=True)):
            seen = segment.documents_with_any(centroids)
            if weights is not None:
                here = weights[number] if mask is None else weights[number] * mask
                heaviest = best(here, WITH_RARE_TOKENS)
                seen[heaviest[here[heaviest] > 0]] = True
            found.append(np.flatnonzero(seen if mask is None else seen & mask))
        if sum(len(documents) for documents in found if documents is not None) >= k:
            return found
    return [None if mask is None else np.flatnonzero(mask) for mask in masks]


def _mask(segment: Segment, start: int, allowed: npt.NDArray[np.bool_] | None) -> npt.NDArray[np.bool_] | None:
    """Which documents of a segment may be found; None for all."""
    mask = ~segment.deleted if segment.deleted.any() else None
    if allowed is None:
        return mask
    here = allowed[start : start + len(segment)]
    return here if mask is None else here & mask


def _joined(parts: Sequence[npt.NDArray[np.float32]]) -> npt.NDArray[np.float32]:
    """The arrays of all segments, one after the other."""
    return parts[0] if len(parts) == 1 else np.concatenate([np.empty(0, np.float32), *parts])


def positions_of(snapshot: Snapshot, chosen: list[npt.NDArray[np.int64] | None]) -> npt.NDArray[np.int64]:
    """The positions of the candidates of all segments, ascending."""
    places = [np.empty(0, dtype=np.int64)]
    for segment, documents, start in zip(snapshot.segments, chosen, snapshot.starts, strict=False):
        here = np.arange(len(segment)) if documents is None else documents
        places.append(here + int(start))
    return np.concatenate(places)


def positions_at(
    snapshot: Snapshot, chosen: list[npt.NDArray[np.int64] | None], places: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """The positions of some candidates, by their places in the order of all."""
    if len(chosen) == 1:
        return places if chosen[0] is None else chosen[0][places]
    return positions_of(snapshot, chosen)[places]
