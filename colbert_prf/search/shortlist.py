"""Which documents are scored exactly beside those with the best approximate scores.

Centroid interaction cannot tell rare things apart: a word that stands in one document shares its centroid with others.
Two rules add what it may have missed, so that the best ten documents are found nearly always:

- documents with the query's rare tokens, found by the token lists of the segments;
- documents whose approximate score leaves open whether they are among the best ten. The documents scored so far tell
  how far approximate scores are from exact ones, and the margin follows from that.

``docs/notes/engine.md`` has what each rule gives.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from colbert_prf.index.segment import Segment
from colbert_prf.index.snapshot import Snapshot
from colbert_prf.kernels import topk
from colbert_prf.search.scorer import Mask, Positions, ScoredDocuments, Scores, TopDocuments
from colbert_prf.types import EncodedQuery

__all__ = [
    "WITH_RARE_TOKENS",
    "RareTokens",
    "Shortlist",
    "heaviest",
    "least_worth_scoring",
    "rare_tokens",
    "token_weights",
]

WITH_RARE_TOKENS = 200
"""Documents that are scored exactly because they have rare tokens of the query."""
COMMON = 50
"""A token in more than one of so many documents is not looked up, unless :data:`WITH_RARE_TOKENS` or fewer have it."""
SURE_RANKS = 10
"""The best so many documents are to be found nearly always, also where fewer are wanted."""
DEVIATIONS = 4.5
"""How many standard deviations of the errors so far a document's approximate score may be too low."""


class Shortlist(NamedTuple):
    """Documents scored exactly: ``positions`` (n,), ascending, and of each its ``approximate`` and its exact score."""

    positions: Positions
    approximate: Scores
    scores: Scores

    def top(self, k: int) -> TopDocuments:
        """The best of them."""
        return ScoredDocuments(self.positions, self.scores).top(k)

    def only(self, rows: Positions) -> Shortlist:
        """Some of them."""
        return Shortlist(self.positions[rows], self.approximate[rows], self.scores[rows])

    def union(self, other: Shortlist) -> Shortlist:
        """Both; no document is in both."""
        both = Shortlist(
            np.concatenate([self.positions, other.positions]),
            np.concatenate([self.approximate, other.approximate]),
            np.concatenate([self.scores, other.scores]),
        )
        return both.only(np.argsort(both.positions))


class RareTokens(NamedTuple):
    """The ``tokens`` (n,) of a query that are not common in a collection, and 1 / N_t of each in ``values``."""

    tokens: Positions
    values: Scores


def rare_tokens(query: EncodedQuery, frequencies: npt.NDArray[np.int64], num_positions: int) -> RareTokens:
    """The tokens of a query that are not common.

    Parameters
    ----------
    query
        What is searched.
    frequencies
        In how many documents of the collection each token is, N_t.
    num_positions
        How many documents the collection has, deleted ones included.

    Examples
    --------
    >>> query = EncodedQuery(np.array([2, 1, 1, 0], np.int32), np.eye(4, dtype=np.float32))
    >>> rare_tokens(query, np.array([201, 4, 0]), 5_000)
    RareTokens(tokens=array([1]), values=array([0.25], dtype=float32))
    """
    tokens = np.unique(query.token_ids).astype(np.int64)
    tokens = tokens[(tokens >= 0) & (tokens < len(frequencies))]
    most = max(WITH_RARE_TOKENS, num_positions // COMMON)
    tokens = tokens[(frequencies[tokens] > 0) & (frequencies[tokens] <= most)]
    return RareTokens(tokens, (1 / frequencies[tokens]).astype(np.float32))


def token_weights(snapshot: Snapshot, rare: RareTokens, masks: Sequence[Mask]) -> list[Scores]:
    """How rare the query's tokens in each document are, by segment: the sum of 1 / N_t over those that are not common.

    Documents that a mask (None for all) leaves out weigh nothing. A token t that N_t documents have adds 1 to the sum
    over all documents. So at most ``m · f`` documents have a weight of 1 / f or more, where m is the number of tokens:
    every document with a token of N_t ≤ 200 / m is among the heaviest 200.
    """
    return [_weights_of(*part, rare) for part in zip(snapshot.segments, masks, strict=True)]


def _weights_of(segment: Segment, mask: Mask, rare: RareTokens) -> Scores:
    if mask is None:
        return segment.token_sums(*rare)
    # The lists of a segment of which nothing may be found are not read.
    return segment.token_sums(*rare) * mask if mask.any() else np.zeros(len(segment), np.float32)


def heaviest(weights: Scores, approximate: Scores, count: int = WITH_RARE_TOKENS) -> Positions:
    """The rows of the ``count`` largest positive weights, ascending; equal weights by their approximate scores.

    >>> approximate = np.array([5, 1, 2, 3], np.float32)
    >>> heaviest(np.array([0, 1, 0.5, 0], np.float32), approximate).tolist()
    [1, 2]
    """
    rows = np.flatnonzero(weights)
    rows = rows[np.isfinite(approximate[rows])]
    if len(rows) <= count:
        return rows
    least = np.partition(weights[rows], -count)[-count]
    above, equal = rows[weights[rows] > least], rows[weights[rows] == least]
    return np.sort(np.concatenate([above, equal[topk.best(approximate[equal], count - len(above))]]))


def least_worth_scoring(scores: Scores, approximate: Scores, cut: float, rank: int = SURE_RANKS) -> float:
    """The least approximate score with which a document may be among the best.

    Parameters
    ----------
    scores, approximate
        Of the documents scored so far, each of shape (num_scored,).
    cut
        All documents of at least this approximate score are scored: their errors are those of a sample that was not
        chosen by rare tokens.
    rank
        How many are the best.

    Examples
    --------
    The second best score is 9; approximate scores are 1 too low, always:

    >>> least_worth_scoring(np.array([10, 9, 4], np.float32), np.array([9, 8, 3], np.float32), 3, rank=2)
    8.0
    """
    if len(scores) <= rank:
        return float("-inf")
    worst = float(np.partition(scores, -rank)[-rank])
    errors = (scores - approximate)[approximate >= cut].astype(np.float64)
    return worst - float(errors.mean()) - DEVIATIONS * float(errors.std())
