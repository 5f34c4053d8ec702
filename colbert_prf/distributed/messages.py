"""What a searcher asks its shards, and what they answer; positions count from 0 in a shard.

Every question holds all that its answer depends on. So a shard may be asked again, and one that was restarted answers
as if it had been there all the time.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from colbert_prf.search.arguments import Predicate
from colbert_prf.search.budget import Budget
from colbert_prf.search.filters import Filter
from colbert_prf.search.scorer import Positions, ScoredDocuments, Scores
from colbert_prf.search.shortlist import RareTokens
from colbert_prf.types import EncodedQuery

__all__ = ["AskedPass", "AskedQuery", "Best", "GenerationKey", "More", "NotOpen", "Refusal", "writable"]


class GenerationKey(NamedTuple):
    """One generation of an index: its number, and the digest of its manifest."""

    number: int
    digest: str


class AskedQuery(NamedTuple):
    """A query that documents are compared with.

    ``key`` names it among all queries of all searchers, so that a shard computes what depends on the query alone once.
    ``threads`` are those that one answer may take; None for all of the shard.
    """

    key: str
    query: EncodedQuery
    threads: int | None


class AskedPass(NamedTuple):
    """A first pass over a shard: what :func:`~colbert_prf.search.candidates.find_candidates` takes.

    ``rare`` are the query's rare tokens in the whole collection, None where they do not count; ``allowed`` the
    positions that may be found, ascending, None for all; ``where`` a filter whose fields the collection has.
    """

    asked: AskedQuery
    k: int
    budget: Budget
    rare: RareTokens | None
    allowed: Positions | None
    where: Filter | Predicate | None


class Best(NamedTuple):
    """The best candidates of a shard by approximate scores, and those with rare tokens.

    ``rarities`` say how rare the tokens of each of ``rare`` are. ``exact`` and ``exact_rare`` are the exact scores of
    the first of them, which the searcher will probably want; NaN for the others. No candidate that is not here has a
    higher approximate score than ``bound``.
    """

    documents: ScoredDocuments
    exact: Scores
    rare: ScoredDocuments
    rarities: Scores
    exact_rare: Scores
    bound: float


class More(NamedTuple):
    """Further candidates with their exact scores or, in a second pass, the approximate ones of the added vectors."""

    documents: ScoredDocuments
    values: Scores


class NotOpen:
    """The answer of a shard that does not have the generation open."""


class Refusal(NamedTuple):
    """The answer of a shard that finds something wrong."""

    error: Exception


def writable(value: Any) -> Any:
    """A message whose arrays may be written to.

    Ray hands out arrays that may not, for which Numba would compile every kernel once more.

    >>> array = np.arange(3)
    >>> array.flags.writeable = False
    >>> copied = writable(More(ScoredDocuments(array, array), array))
    >>> copied.documents.positions.flags.writeable, copied.values.tolist()
    (True, [0, 1, 2])
    """
    if isinstance(value, np.ndarray):
        return value if value.flags.writeable else value.copy()
    if isinstance(value, EncodedQuery):
        return EncodedQuery(writable(value.token_ids), writable(value.vectors), writable(value.weights))
    if isinstance(value, tuple):
        parts = [writable(part) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    return value
