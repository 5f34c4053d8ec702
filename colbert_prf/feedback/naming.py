"""The tokens that representatives of feedback documents stand for: F_t(υ, r) and σ.

Only the representatives of highest σ are added to a query, and looking one up in an index takes longer than finding it.
So those come first whose nearest feedback vectors include one of a rare token; another is looked up only if the rarest
token near it would be rare enough. A representative whose own token is rarer than all of these would be missed:
``docs/notes/feedback.md`` has how often that is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from colbert_prf.feedback.base import most_likely
from colbert_prf.feedback.source import FeedbackSource, FeedbackVectors
from colbert_prf.kernels.parallel import Workers
from colbert_prf.types import TokenIds, Vectors

__all__ = ["Names", "Sigma", "look_up"]

GLANCED = 4
"""Nearest feedback vectors whose tokens tell what σ a representative may have."""

Sigma: TypeAlias = Callable[[TokenIds], npt.NDArray[np.float64]]
"""Gives the σ of all representatives with given tokens, of shape (n,) or (n, m); negative for special ones and -1."""


class Names(NamedTuple):
    """What representatives stand for, as far as they were looked up.

    ``near`` (n, count) are the tokens of the nearest document vectors, in ``token_ids`` (n,) the most likely of each,
    -1 where there is none, and ``sigmas`` (n,) their σ, negative where there is none. In ``order`` are the numbers of
    those that have a token, highest σ first.
    """

    near: TokenIds
    token_ids: TokenIds
    sigmas: npt.NDArray[np.float64]
    order: npt.NDArray[np.int64]

    @classmethod
    def of(cls, near: TokenIds, sigma: Sigma, special_ids: frozenset[int]) -> Names:
        """Name representatives by the tokens near each.

        >>> names = Names.of(np.array([[7, 101], [101, 101], [8, -1]]), lambda tokens: tokens / 10, frozenset({101}))
        >>> names.token_ids.tolist(), names.order.tolist()
        ([7, -1, 8], [2, 0])
        """
        token_ids = most_likely(near, special_ids)
        sigmas = sigma(token_ids)
        order = np.argsort(-sigmas, kind="stable")
        return cls(near, token_ids, sigmas, order[sigmas[order] >= 0])


def look_up(
    vectors: Vectors,
    feedback: FeedbackVectors,
    source: FeedbackSource,
    neighbours: int,
    sigma: Sigma,
    workers: Workers,
    *,
    likely: int | None = None,
) -> Names:
    """Look representatives up: all, or those likely to be of the highest σ.

    Parameters
    ----------
    vectors
        The representatives, of shape (num_representatives, dim).
    feedback
        The vectors they represent.
    source
        Where they are looked up.
    neighbours
        Document vectors that name a representative, r.
    sigma
        Gives their σ.
    workers
        What to compute with.
    likely
        How many are wanted, those of highest σ: others may stay without a name. All are looked up if left out, and
        where a source has no quick way to tell which are likely.
    """
    glance = None if likely is None else source.glance(vectors, neighbours, feedback)
    if glance is None or likely is None:
        near = source.nearest_tokens(vectors, neighbours, feedback, workers).token_ids
        return Names.of(near, sigma, source.special_ids)
    near = np.full_like(glance.near.token_ids, -1)
    hopes = sigma(glance.near.token_ids[:, :GLANCED]).max(axis=1)
    order = np.argsort(-hopes, kind="stable")
    first, others = np.split(order, [likely + max(2, 2 * likely // 5)])

    def find(numbers: npt.NDArray[np.int64]) -> Names:
        closer = glance.of(numbers)
        source.look_closer(vectors[numbers], closer, feedback, workers)
        near[numbers] = closer.near.token_ids
        return Names.of(near, sigma, source.special_ids)

    names = find(first)
    if len(others) and len(names.order) >= likely:
        others = others[hopes[others] >= names.sigmas[names.order[likely - 1]]]
    return find(others) if len(others) else names
