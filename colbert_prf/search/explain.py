"""Why a document was found: which of its tokens each query vector matched, and what that gave."""

from __future__ import annotations

from colbert_prf.errors import InputError
from colbert_prf.index.collection import Collection
from colbert_prf.types import EncodedQuery, Explanation, Match

__all__ = ["explain_hit"]


def explain_hit(collection: Collection, query: EncodedQuery, doc_id: str) -> Explanation:
    """Match every query vector with its best document token; the contributions add up to the document's score."""
    positions = collection.positions([doc_id])
    token_ids, similarities = (
        collection.vectors_of(positions).token_ids,
        collection.similarities(int(positions[0]), query),
    )
    if not len(similarities):
        raise InputError(f"document {doc_id!r} has no vectors, so that nothing in it can match")
    best = similarities.argmax(axis=0)
    matches = tuple(
        Match(
            query_token_id=int(query.token_ids[i]),
            token_id=int(token_ids[j]),
            position=int(j),
            similarity=float(similarities[j, i]),
            weight=float(query.weights[i]),
        )
        for i, j in enumerate(best)
    )
    return Explanation(doc_id, matches)
