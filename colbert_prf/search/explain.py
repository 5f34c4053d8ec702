"""Why a document was found: which of its tokens each query vector matched, and what that gave."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from colbert_prf.errors import InputError
from colbert_prf.index import Index, MemoryIndex
from colbert_prf.index.snapshot import Snapshot
from colbert_prf.search.scorer import packed_vectors
from colbert_prf.types import EncodedQuery, Explanation, Match, TokenIds

__all__ = ["explain_hit"]


def explain_hit(index: Index | MemoryIndex, query: EncodedQuery, doc_id: str) -> Explanation:
    """Match every query vector with its best document token; the contributions add up to the document's score."""
    if isinstance(index, MemoryIndex):
        token_ids, similarities = _in_memory(index, query, doc_id)
    else:
        token_ids, similarities = _compressed(index.snapshot, query, doc_id)
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


def _in_memory(index: MemoryIndex, query: EncodedQuery, doc_id: str) -> tuple[TokenIds, npt.NDArray[np.float32]]:
    place = index.positions([doc_id])[0]
    rows = slice(index.offsets[place], index.offsets[place + 1])
    return index.token_ids[rows], index.vectors[rows] @ query.vectors.T


def _compressed(snapshot: Snapshot, query: EncodedQuery, doc_id: str) -> tuple[TokenIds, npt.NDArray[np.float32]]:
    from colbert_prf.kernels.exact import similarities_definition

    position = int(snapshot.positions([doc_id])[0])
    token_ids, codec = snapshot.token_ids(position), snapshot.codec
    if codec.bits == 16:
        return token_ids, snapshot.vectors(position) @ query.vectors.T
    segment, place = snapshot.place(position)
    vectors, table = codec.pad(query.vectors), codec.scores(query.vectors)
    return token_ids, similarities_definition(vectors, table, codec.residuals, packed_vectors(segment), place)
