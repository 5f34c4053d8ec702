"""Which documents are scored exactly beside those with the best approximate scores.

Centroid interaction cannot tell rare things apart: a word that stands in one document shares its centroid with others.
Two rules add what it may have missed, so that the best ten documents are found nearly always:

- documents with the query's rare tokens, found by the token lists of the segments;
- documents whose approximate score leaves open whether they are among the best ten. The documents scored so far tell
  how far approximate scores are from exact ones, and the margin follows from that.

``docs/notes/engine.md`` has what each rule gives.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from colbert_prf.index.snapshot import Snapshot
from colbert_prf.kernels.topk import best
from colbert_prf.types import EncodedQuery

__all__ = ["could_enter", "least_worth_scoring", "matching_places", "token_weights"]

WITH_RARE_TOKENS = 200
"""Documents that are scored exactly because they have rare tokens of the query."""
COMMON = 50
"""A token in more than one of so many documents is not looked up, unless :data:`WITH_RARE_TOKENS` or fewer have it."""
SURE_RANKS = 10
"""The best so many documents are to be found nearly always, also where fewer are wanted."""
DEVIATIONS = 4.0
"""How many standard deviations of the errors so far a document's approximate score may be too low."""

Weights = npt.NDArray[np.float32]


def token_weights(snapshot: Snapshot, query: EncodedQuery) -> list[Weights]:
    """How rare the query's tokens in each document are, by segment: the sum of 1 / N_t over those that are not common.

    A token t that N_t documents have adds 1 to the sum over all documents. So at most ``m · f`` documents have a weight
    of 1 / f or more, where m is the number of tokens: every document with a token of N_t ≤ 200 / m is among the best
    200.
    """
    frequencies = snapshot.document_frequencies
    tokens = np.unique(query.token_ids).astype(np.int64)
    tokens = tokens[(tokens >= 0) & (tokens < len(frequencies))]
    most = max(WITH_RARE_TOKENS, int(snapshot.starts[-1]) // COMMON)
    tokens = tokens[(frequencies[tokens] > 0) & (frequencies[tokens] <= most)]
    values = (1 / frequencies[tokens]).astype(np.float32)
    return [segment.token_sums(tokens, values) for segment in snapshot.segments]


def matching_places(weights: Weights, approximate: npt.NDArray[np.float32]) -> npt.NDArray[np.int64]:
    """The candidates with the largest token weights, ascending; equal weights by their approximate scores.

    >>> approximate = np.array([5, 1, 2, 3], np.float32)
    >>> matching_places(np.array([0, 1, 0.5, 0], np.float32), approximate).tolist()
    [1, 2]
    """
    places = np.flatnonzero(weights)
    places = places[np.isfinite(approximate[places])]
    if len(places) <= WITH_RARE_TOKENS:
        return places
    found = weights[places]
    least = np.partition(found, -WITH_RARE_TOKENS)[-WITH_RARE_TOKENS]
    above, equal = places[found > least], places[found == least]
    return np.sort(np.concatenate([above, equal[best(approximate[equal], WITH_RARE_TOKENS - len(above))]]))


def least_worth_scoring(
    scores: npt.NDArray[np.float32], approximate: npt.NDArray[np.float32], cut: float, rank: int = SURE_RANKS
) -> float:
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


def could_enter(
    approximate: npt.NDArray[np.float32], places: npt.NDArray[np.int64], least: float
) -> npt.NDArray[np.int64]:
    """The candidates, except those at some places, whose approximate score is at least so much."""
    # A little less, for sums are rounded; a document without vectors, at minus infinity, never.
    enough = approximate >= np.float32(max(least - 1e-3, float(np.finfo(np.float32).min)))
    enough[places] = False
    return np.flatnonzero(enough)
