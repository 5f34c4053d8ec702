"""Search again with vectors added to a query, reusing the scores of the first pass: lines 10 to 14 of Algorithm 2.

The score of a document is that of the original vectors plus that of the added ones. A document of the shortlist has the
first part already, so only the added vectors are compared with it. Both second passes choose the documents they score
exactly by estimates, in which the part of the added vectors is approximate: the ReRanker chooses from the shortlist,
the Ranker from all candidates.
"""

from __future__ import annotations

import numpy as np

from colbert_prf.kernels import topk
from colbert_prf.search.budget import Execution
from colbert_prf.search.candidates import Candidates
from colbert_prf.search.scorer import ScoredDocuments, Scorer
from colbert_prf.search.shortlist import Shortlist

__all__ = ["rescored", "search_again"]

LARGE_GAIN = 3.0
"""Standard deviations above the mean gain of the shortlist: documents that need more to be kept are left out.

On the pool of 41,867 passages this loses none of the documents kept without it, for k of 10, 100 and 1,000 and a weight
of 0.15 and 1.
"""


def rescored(shortlist: Shortlist, added: Scorer, keep: int, execution: Execution) -> ScoredDocuments:
    """Score documents of the shortlist for the expanded query: the ReRanker.

    Parameters
    ----------
    shortlist
        Of the first pass.
    added
        Scores the added vectors.
    keep
        Documents to score exactly.
    execution
        What to compute with.
    """
    with execution.stage("interaction again"):
        shortlist = shortlist.only(topk.best(shortlist.scores + added.estimates(shortlist.positions), keep))
    with execution.stage("maxsim again"):
        return ScoredDocuments(shortlist.positions, shortlist.scores + added.scores(shortlist.positions))


def search_again(
    candidates: Candidates, shortlist: Shortlist, added: Scorer, keep: int, execution: Execution
) -> ScoredDocuments:
    """Score documents of all candidates for the expanded query: the Ranker.

    Parameters
    ----------
    candidates
        Of the first pass; those of the added vectors are looked at as well.
    shortlist, added, keep, execution
        As in :func:`rescored`.
    """
    with execution.stage("candidates again"):
        candidates = candidates.extended(added)
    with execution.stage("interaction again"):
        gains = added.estimates(shortlist.positions)
        estimates = shortlist.scores + gains
        # What approximate scores of the original vectors miss, typically.
        missing = np.float32(np.median(shortlist.scores - shortlist.approximate) if len(gains) else 0)
        worst = np.partition(estimates, -keep)[-keep] if len(estimates) >= keep else -np.inf
        gain = gains.mean(dtype=np.float64) + LARGE_GAIN * gains.std(dtype=np.float64) if len(gains) else 0.0
        unscored = candidates.at_least(float(worst - missing - gain), besides=shortlist.positions)
        unscored_estimates = unscored.scores + missing + added.estimates(unscored.positions)
        positions = np.concatenate([shortlist.positions, unscored.positions])
        original = np.concatenate([shortlist.scores, np.full(len(unscored.positions), np.nan, np.float32)])
        chosen = topk.best(np.concatenate([estimates, unscored_estimates]), keep)
        chosen = chosen[np.argsort(positions[chosen])]
        positions, original = positions[chosen], original[chosen]
    with execution.stage("maxsim again"):
        is_unscored = np.isnan(original)
        # Both begin before either is waited for: where documents are scored elsewhere, that is one round trip.
        scoring, scoring_added = candidates.scorer.begin(positions[is_unscored]), added.begin(positions)
        original[is_unscored] = scoring.finish()
        return ScoredDocuments(positions, original + scoring_added.finish())
