"""Search again with vectors added to a query, reusing what the first pass found out: lines 10 to 14 of Algorithm 2.

The score of a document is that of the original vectors plus that of the added ones. So a document the first pass scored
keeps that part of its score, and only the added vectors are compared with it; one the first pass did not see is scored
in full. The ReRanker does this for every candidate of the first pass. The Ranker looks at all documents: by the known
part of their scores and the approximate score of the added vectors it chooses those that are scored exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from colbert_prf.index.snapshot import Snapshot
from colbert_prf.search.effort import Effort
from colbert_prf.search.engine import (
    FinishedPass,
    Found,
    Scored,
    candidates_of,
    interact_with,
    positions_at,
    positions_of,
)
from colbert_prf.search.scorer import Scorer
from colbert_prf.types import EncodedQuery, Expansion

if TYPE_CHECKING:
    from colbert_prf.kernels.interaction import ByteTable

__all__ = ["AddedVectors", "added_vectors", "default_keep", "find_again", "score_again"]


def default_keep(k: int, expansion: Expansion) -> int:
    """Documents the Ranker scores exactly with the expanded query for ``k`` results.

    They are chosen by scores of which only the part of the added vectors is approximate: the more of the query's weight
    these have, the more documents. With so many the best 1,000 are found as well as by the first pass, see
    ``docs/notes/feedback.md``.

    >>> from colbert_prf.types import ExpansionVector
    >>> query = EncodedQuery(np.array([7, 9], np.int32), np.eye(2, dtype=np.float32), np.array([10, 1], np.float32))
    >>> default_keep(1000, Expansion(query, (ExpansionVector(9, ((9, 1.0),), 5.1, 1.0),)))
    1090
    """
    return k + max(90, round(2.5 * expansion.share**2 * k))


@dataclass(frozen=True)
class AddedVectors:
    """The vectors feedback added to a query, ready to be compared with documents.

    Parameters
    ----------
    query
        The vectors and their weights.
    scorer
        Gives their part of a score exactly.
    values
        Their centroid scores as bytes.
    """

    query: EncodedQuery
    scorer: Scorer
    values: ByteTable

    @property
    def upper_bound(self) -> float:
        """The most they can give approximately to any document."""
        from colbert_prf.kernels.interaction import largest_scores

        return float(self.query.weights @ largest_scores(self.values)[: len(self.query)])

    def estimates(
        self, snapshot: Snapshot, positions: npt.NDArray[np.int64], effort: Effort
    ) -> npt.NDArray[np.float32]:
        """What they give approximately to some documents, ascending."""
        parts = interact_with(snapshot, self.values, self.query, snapshot.places(positions), effort)
        return np.concatenate([np.empty(0, np.float32), *parts])


def added_vectors(snapshot: Snapshot, expansion: Expansion, effort: Effort) -> AddedVectors:
    """Prepare the vectors of an expansion, at least one."""
    from colbert_prf.kernels.interaction import byte_table

    added = expansion.query.from_vector(expansion.num_original)
    with effort.stage("centroids again"):
        table = snapshot.codec.scores(added.vectors, effort.workers)
        return AddedVectors(added, Scorer(snapshot, added, table=table), byte_table(table))


def score_again(first: FinishedPass, added: AddedVectors, k: int, effort: Effort, *, depth: int | None = None) -> Found:
    """Score the documents of the first pass again, all exactly: the ReRanker.

    Parameters
    ----------
    first
        What the first pass left behind.
    added
        The vectors added.
    k
        How many documents are wanted.
    effort
        What to compute with.
    depth
        The best so many of the first pass; all it scored if left out.
    """
    from colbert_prf.kernels.topk import best

    kept = slice(None) if depth is None else best(first.scores, depth)
    positions, original = first.positions[kept], first.scores[kept]
    with effort.stage("maxsim again"):
        return Scored(positions, original + added.scorer.scores(positions, effort.workers)).best(k)


def find_again(
    snapshot: Snapshot,
    first: FinishedPass,
    added: AddedVectors,
    k: int,
    keep: int,
    effort: Effort,
    *,
    allowed: npt.NDArray[np.bool_] | None = None,
) -> Found:
    """Find the best documents for a query with vectors added: the Ranker.

    Parameters
    ----------
    snapshot, allowed
        As in the first pass.
    first, added, k, effort
        As in :func:`score_again`.
    keep
        Documents to score exactly, at least ``k``.
    """
    from colbert_prf.kernels.topk import best

    with effort.stage("candidates again"):
        chosen, approximate = _candidates_again(snapshot, first, added, k, effort, allowed)
    with effort.stage("interaction again"):
        positions, original = first.positions, first.scores
        estimates = original + added.estimates(snapshot, positions, effort)
        places = first.places
        if chosen is not first.chosen:
            places = np.searchsorted(positions_of(snapshot, chosen), positions)
        # What the approximation misses of an original score, where it is known.
        missing = np.float32(np.median(original - approximate[places]) if len(places) else 0)
        worst = np.partition(estimates, -keep)[-keep] if len(estimates) >= keep else -np.inf
        unseen = _could_enter(approximate, places, float(worst - missing) - added.upper_bound)
        if len(unseen):
            others = positions_at(snapshot, chosen, unseen)
            theirs = approximate[unseen] + missing + added.estimates(snapshot, others, effort)
            positions, estimates = np.concatenate([positions, others]), np.concatenate([estimates, theirs])
            original = np.concatenate([original, np.full(len(others), np.nan, np.float32)])
        kept = best(estimates, keep)
        kept = kept[np.argsort(positions[kept])]
    with effort.stage("maxsim again"):
        positions, original = positions[kept], original[kept]
        unscored = np.isnan(original)
        if unscored.any():
            original[unscored] = first.scorer.scores(positions[unscored], effort.workers)
        return Scored(positions, original + added.scorer.scores(positions, effort.workers)).best(k)


def _candidates_again(
    snapshot: Snapshot,
    first: FinishedPass,
    added: AddedVectors,
    k: int,
    effort: Effort,
    allowed: npt.NDArray[np.bool_] | None,
) -> tuple[list[npt.NDArray[np.int64] | None], npt.NDArray[np.float32]]:
    """The candidates of both passes, by segment, and the approximate scores of the original vectors for them."""
    chosen, approximate = first.chosen, first.approximate
    if effort.probes is not None:
        more = candidates_of(snapshot, added.values, len(added.query), k, effort.probes, allowed)
        chosen = [
            None if old is None or new is None else np.union1d(old, new) for old, new in zip(chosen, more, strict=True)
        ]
        approximate = interact_with(snapshot, first.values, first.query, chosen, effort)
    return chosen, np.concatenate([np.empty(0, np.float32), *approximate])


def _could_enter(
    approximate: npt.NDArray[np.float32], places: npt.NDArray[np.int64], least: float
) -> npt.NDArray[np.int64]:
    """The candidates, except those at some places, whose approximate score is at least so much."""
    # A little less, for sums are rounded; a document without vectors, at minus infinity, never.
    enough = approximate >= np.float32(max(least - 1e-3, float(np.finfo(np.float32).min)))
    enough[places] = False
    return np.flatnonzero(enough)
