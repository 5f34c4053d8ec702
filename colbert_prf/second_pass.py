"""Search again with vectors added to a query, reusing what the first pass found out.

The score of a document is that of the original vectors plus that of the added ones. So only the added vectors are
compared with centroids and documents; a document the first pass scored exactly keeps that part of its score, and only
one it did not see is scored in full. Which documents to score exactly is decided by the known part, exact where it is
known, plus the approximate score of the added vectors. Of a deep ranking only the best are scored exactly with these;
further down their part of the score stays approximate.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from colbert_prf.effort import Effort
from colbert_prf.engine import (
    FirstPass,
    Found,
    candidates_of,
    interact_with,
    positions_at,
    positions_of,
)
from colbert_prf.index.snapshot import Snapshot
from colbert_prf.scorer import Scorer
from colbert_prf.types import EncodedQuery, Expansion

if TYPE_CHECKING:
    from colbert_prf.kernels.interaction import ByteTable

__all__ = ["Depths", "Gains", "default_depths", "find_again", "gains_of", "score_again"]

FEW, FEWEST_EXACT = 200, 150
"""So few documents are all scored exactly with the added vectors; of more, so many in any case."""


class Depths(NamedTuple):
    """How many documents the second pass looks at: ``kept`` by their estimates, ``exact`` of which are scored exactly.

    The others keep, for the part of the added vectors, their estimates.
    """

    kept: int
    exact: int


def default_depths(k: int, expansion: Expansion, bits: int) -> Depths:
    """How many documents the second pass looks at for ``k`` results, over an index of so many bits.

    Only the part of the added vectors is approximate: the more of the query's weight they have, the more documents.
    With so many the best 1,000 are found as well as by the first pass, and scores differ from exact ones about as
    much as rounding vectors to few bits changes them, see ``docs/feedback.md``. Where vectors are not rounded, at 16
    bits, neither are scores.

    >>> from colbert_prf.types import ExpansionVector
    >>> query = EncodedQuery(np.array([7, 9], np.int32), np.eye(2, dtype=np.float32), np.array([10, 1], np.float32))
    >>> default_depths(1000, Expansion(query, (ExpansionVector(9, ((9, 1.0),), 5.1, 1.0),)), bits=4)
    Depths(kept=1090, exact=150)
    """
    kept = k + max(90, round(2.5 * expansion.share**2 * k))
    exact = max(FEWEST_EXACT, round(200 * expansion.share**3 * k))
    return Depths(kept, kept if bits == 16 or kept <= FEW else min(kept, exact))


@dataclass(frozen=True)
class Gains:
    """What vectors added to a query give to documents, as far as it can be told before the first pass ends.

    Parameters
    ----------
    added
        The vectors and their weights.
    scorer
        Gives what they add exactly.
    values
        Their centroid scores as bytes.
    estimates
        What they give approximately to each document the first pass scores.
    """

    added: EncodedQuery
    scorer: Scorer
    values: ByteTable
    estimates: npt.NDArray[np.float32]

    @property
    def most(self) -> float:
        """The most they can give approximately to any document."""
        from colbert_prf.kernels.interaction import largest_scores

        return float(self.added.weights @ largest_scores(self.values)[: len(self.added)])


def gains_of(
    snapshot: Snapshot,
    added: EncodedQuery,
    positions: npt.NDArray[np.int64],
    effort: Effort,
    *,
    within: str | None = None,
) -> Gains:
    """What vectors added to a query give to some documents, ascending.

    Parameters
    ----------
    snapshot, effort
        As in the first pass.
    added
        The vectors and their weights.
    positions
        Of the documents the first pass scores.
    within
        The stage this is a part of, if any.
    """
    from colbert_prf.kernels.interaction import byte_table

    with effort.stage("centroids again", within=within):
        table = snapshot.codec.scores(added.vectors, effort.workers)
        values = byte_table(table)
    with effort.stage("interaction again", within=within):
        estimates = _estimates(snapshot, values, added, positions, effort)
    return Gains(added, Scorer(snapshot, added, table=table), values, estimates)


def find_again(
    snapshot: Snapshot,
    first: FirstPass,
    gains: Gains,
    k: int,
    depths: Depths,
    effort: Effort,
    *,
    allowed: npt.NDArray[np.bool_] | None = None,
) -> Found:
    """Find the best documents for a query with vectors added: the Ranker.

    Parameters
    ----------
    snapshot, k, allowed
        As in the first pass.
    first
        What the first pass left behind.
    gains
        What the vectors added give to the documents of the first pass.
    depths
        How many documents to look at, of which at least ``k`` are to be kept.
    effort
        What to compute with.
    """
    from colbert_prf.kernels.topk import best

    added, values = gains.added, gains.values
    with effort.stage("candidates again"):
        chosen, known = first.chosen, first.approximate
        if effort.probes is not None:
            more = candidates_of(snapshot, values, len(added), k, effort.probes, allowed)
            chosen = [_united(old, new) for old, new in zip(chosen, more, strict=True)]
            known = interact_with(snapshot, first.values, first.query, chosen, effort)
    with effort.stage("interaction again"):
        candidates = _Candidates.of(first, gains)
        approximate = known[0] if len(known) == 1 else np.concatenate([np.empty(0, np.float32), *known])
        everything = None if chosen is first.chosen else positions_of(snapshot, chosen)
        places = first.places if everything is None else np.searchsorted(everything, first.positions)
        # What the approximation misses of an original score, where it is known.
        missing = _middle(first.scores - approximate[places]) if len(places) else np.float32(0)
        kept = best(candidates.estimates, depths.kept)
        worst = candidates.estimates[kept].min() if len(kept) == depths.kept else -np.inf
        hopeful = _hopeful(approximate, places, float(worst - missing) - gains.most)
        if len(hopeful):
            others = positions_at(snapshot, chosen, hopeful) if everything is None else everything[hopeful]
            theirs = approximate[hopeful] + missing + _estimates(snapshot, values, added, others, effort)
            candidates = candidates.with_unseen(others, theirs)
            kept = best(candidates.estimates, depths.kept)
    return _scored(snapshot, first, gains, candidates.only(kept), k, depths.exact, effort)


def score_again(
    snapshot: Snapshot,
    first: FirstPass,
    gains: Gains,
    k: int,
    depths: Depths,
    effort: Effort,
    *,
    depth: int | None = None,
) -> Found:
    """Score the documents of the first pass anew: the ReRanker.

    Parameters
    ----------
    snapshot, first, gains, k, depths, effort
        As in :func:`find_again`.
    depth
        The best so many of the first pass; all it scored if left out.
    """
    from colbert_prf.kernels.topk import best

    candidates = _Candidates.of(first, gains)
    if depth is not None:
        candidates = candidates.only(best(first.scores, depth))
    # Where only the best of many are scored exactly, none of them falls below the last.
    kept = best(candidates.estimates, depths.kept if depths.exact == depths.kept else k)
    return _scored(snapshot, first, gains, candidates.only(kept), k, depths.exact, effort)


class _Candidates(NamedTuple):
    """Documents, ascending, and what they are estimated to score with the expanded query.

    ``known`` is what the original vectors give exactly, NaN where it was not found out yet.
    """

    positions: npt.NDArray[np.int64]
    estimates: npt.NDArray[np.float32]
    known: npt.NDArray[np.float32]

    @classmethod
    def of(cls, first: FirstPass, gains: Gains) -> _Candidates:
        """The documents the first pass scored."""
        return cls(first.positions, first.scores + gains.estimates, first.known)

    def only(self, kept: npt.NDArray[np.int64]) -> _Candidates:
        """Some of them, ascending."""
        return _Candidates(self.positions[kept], self.estimates[kept], self.known[kept])

    def with_unseen(self, positions: npt.NDArray[np.int64], estimates: npt.NDArray[np.float32]) -> _Candidates:
        """These and others, which the first pass did not score."""
        every = np.concatenate([self.positions, positions])
        known = np.concatenate([self.known, np.full(len(positions), np.nan, np.float32)])
        return _Candidates(every, np.concatenate([self.estimates, estimates]), known).only(np.argsort(every))


def _united(old: npt.NDArray[np.int64] | None, new: npt.NDArray[np.int64] | None) -> npt.NDArray[np.int64] | None:
    return None if old is None or new is None else np.union1d(old, new)


def _estimates(
    snapshot: Snapshot, values: ByteTable, added: EncodedQuery, positions: npt.NDArray[np.int64], effort: Effort
) -> npt.NDArray[np.float32]:
    """What the added vectors give approximately to some documents, ascending."""
    parts = interact_with(snapshot, values, added, snapshot.places(positions), effort)
    return np.concatenate([np.empty(0, np.float32), *parts])


def _middle(values: npt.NDArray[np.float32]) -> np.float32:
    """A median; NumPy's own takes seven times as long for so few."""
    half = len(values) // 2
    return np.float32(np.partition(values, half)[half])


def _hopeful(
    approximate: npt.NDArray[np.float32], places: npt.NDArray[np.int64], least: float
) -> npt.NDArray[np.int64]:
    """The candidates beside some places whose approximate score is at least so much."""
    # A little less, for sums are rounded; a document without vectors, at minus infinity, never.
    hopeful = approximate >= np.float32(max(least - 1e-3, float(np.finfo(np.float32).min)))
    hopeful[places] = False
    return np.flatnonzero(hopeful)


def _scored(
    snapshot: Snapshot,
    first: FirstPass,
    gains: Gains,
    candidates: _Candidates,
    k: int,
    count: int,
    effort: Effort,
) -> Found:
    """The best of some documents, of which ``count`` are scored exactly and those the first pass did not."""
    from colbert_prf.kernels.mixing import largest_or_nan, mixed, without_number
    from colbert_prf.kernels.topk import best_sorted

    positions, estimates, known = candidates
    doc_ids: list[str] = []

    def read() -> None:
        # While other threads score documents; of many more than are wanted it would take longer than afterwards.
        if k <= len(positions) <= k + k // 4:
            doc_ids.extend(snapshot.doc_ids_of(positions))

    with effort.stage("maxsim again"):
        places = largest_or_nan(estimates, known, count)
        exact = known[places]
        if len(unknown := without_number(known, places)):
            exact[unknown] = first.scorer.scores(positions[places[unknown]], effort.workers)
        exact += gains.scorer.scores(positions[places], effort.workers, beside=read)
        scores = mixed(estimates, known, places, exact)
        order = best_sorted(scores, k)
        # One call reads all of them from a list.
        own = [*itemgetter(*order.tolist())(doc_ids)] if len(order) > 1 and doc_ids else None
    return Found(positions[order], scores[order], own)
