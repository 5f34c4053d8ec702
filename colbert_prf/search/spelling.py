"""Feedback in words: what an added vector is called, and how it moved the hits."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from colbert_prf.types import ExpansionVector, Ranking

__all__ = ["Spelling", "likely_ids", "likely_words", "ranks_before"]

Spelling = Callable[[Iterable[int]], list[str]]

HALF, LEAST, MOST = 0.5, 0.2, 2
"""A token is shown beside the likeliest if at least half as likely, and by two neighbours of ten; two in all."""


def likely_ids(vector: ExpansionVector) -> list[int]:
    """The tokens an added vector is shown with."""
    least = max(HALF * vector.probability, LEAST)
    others = [token_id for token_id, probability in vector.likely if probability >= least]
    return list(dict.fromkeys([vector.token_id, *others]))[:MOST]


def likely_words(vector: ExpansionVector, tokens: Spelling) -> str:
    """Spell an added vector as the paper does: ``tank``, or ``(swiss|switzerland)`` where several are likely.

    >>> likely_words(ExpansionVector(1, ((1, 0.5), (2, 0.3), (3, 0.2)), 1.0, 1.0), lambda ids: ["swiss", "swede"])
    '(swiss|swede)'
    """
    words = tokens(likely_ids(vector))
    return words[0] if len(words) == 1 else f"({'|'.join(words)})"


def ranks_before(ranking: Ranking) -> list[int | None] | None:
    """The rank, from 1, that each hit had in the first pass; None for one that was not there, or without feedback."""
    if ranking.before is None:
        return None
    ranks = {doc_id: rank for rank, doc_id in enumerate(ranking.before.doc_ids, start=1)}
    return [ranks.get(doc_id) for doc_id in ranking.doc_ids]
