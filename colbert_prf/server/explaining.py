"""Where scores come from and what feedback added, as answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from colbert_prf.encoder import Encoder
from colbert_prf.search.spelling import likely_words
from colbert_prf.server.passages import Passage, Passages
from colbert_prf.server.schemas import (
    Added,
    AddedTerm,
    ExpansionAnswer,
    ExplainedHit,
    Likely,
    Parts,
    QueryToken,
    Shade,
    Source,
    TermMatch,
    TokenMatch,
)
from colbert_prf.types import (
    EncodedQuery,
    Expansion,
    ExpansionVector,
    Explanation,
    Match,
    TermExpansion,
    TermExplanation,
)

__all__ = ["expansion_answer", "explained_hit", "explained_terms", "query_tokens", "term_expansion_answer"]

Kind = Literal["word", "special", "added"]


def query_tokens(query: EncodedQuery, encoder: Encoder) -> list[QueryToken]:
    """The vectors of a query as it was asked."""
    ids = query.token_ids.tolist()
    rows = zip(encoder.tokens(ids), query.weights.tolist(), ids, strict=True)
    return [
        QueryToken(token=token, weight=weight, special=token_id in encoder.special_ids)
        for token, weight, token_id in rows
    ]


def explained_hit(explanation: Explanation, num_original: int, passage: Passage, encoder: Encoder) -> ExplainedHit:
    """An explanation with the places of tokens in the passage.

    Parameters
    ----------
    explanation
        One match per query vector.
    num_original
        Vectors of the query before feedback.
    passage
        The document explained.
    encoder
        Spells tokens.
    """
    matches = explanation.matches
    kinds = [_kind(number, match, num_original, encoder) for number, match in enumerate(matches)]
    totals = {
        kind: sum(m.contribution for m, k in zip(matches, kinds, strict=True) if k == kind) for kind in set(kinds)
    }
    names = encoder.tokens(match.query_token_id for match in matches)
    matched = encoder.tokens(match.token_id for match in matches)
    shades, outside = _shades(matches, passage, encoder)
    return ExplainedHit(
        doc_id=explanation.doc_id,
        score=explanation.score,
        parts=Parts(words=totals.get("word", 0.0), special=totals.get("special", 0.0), added=totals.get("added", 0.0)),
        matches=[
            TokenMatch(
                vector=number,
                kind=kinds[number],
                token=names[number],
                matched=matched[number],
                position=match.position,
                similarity=match.similarity,
                weight=match.weight,
                contribution=match.contribution,
                **passage.span(match.position),
            )
            for number, match in enumerate(matches)
            if match.weight > 0 or kinds[number] != "added"  # what was switched off matches nothing
        ],
        shades=shades,
        outside=outside,
    )


def explained_terms(explanation: TermExplanation) -> ExplainedHit:
    """An explanation of BM25."""
    terms = [
        TermMatch(
            term=match.term,
            frequency=match.frequency,
            document_frequency=match.document_frequency,
            weight=match.weight,
            contribution=match.contribution,
        )
        for match in explanation.matches
    ]
    return ExplainedHit(doc_id=explanation.doc_id, score=explanation.score, terms=terms)


def expansion_answer(expansion: Expansion, passages: Passages, encoder: Encoder, off: Sequence[int]) -> ExpansionAnswer:
    """What feedback added, with the words it came from.

    Parameters
    ----------
    expansion
        Of the query.
    passages
        Those learned from.
    encoder
        Spells tokens.
    off
        Numbers of vectors that were switched off.
    """
    vectors = [
        _added(number, vector, passages, encoder, number not in off) for number, vector in enumerate(expansion.vectors)
    ]
    return ExpansionAnswer(feedback=list(expansion.feedback), share=expansion.share, vectors=vectors)


def term_expansion_answer(expansion: TermExpansion) -> ExpansionAnswer:
    """What feedback made of a query of terms."""
    terms = [
        AddedTerm(term=term, weight=weight, added=term in expansion.added) for term, weight in expansion.weights.items()
    ]
    total = sum(expansion.weights.values())
    share = sum(expansion.added.values()) / total if total > 0 else 0.0
    return ExpansionAnswer(feedback=list(expansion.feedback), share=share, terms=terms)


def _kind(number: int, match: Match, num_original: int, encoder: Encoder) -> Kind:
    if number >= num_original:
        return "added"
    return "special" if match.query_token_id in encoder.special_ids else "word"


def _shades(matches: Sequence[Match], passage: Passage, encoder: Encoder) -> tuple[list[Shade], float]:
    """The passage's tokens that were matched, in their order, and what those gave that are not in its text."""
    positions = np.array([match.position for match in matches], dtype=np.int64)
    contributions = np.array([match.contribution for match in matches])
    sums = np.bincount(positions, weights=contributions, minlength=len(passage.token_ids))
    special = np.isin(passage.token_ids, list(encoder.special_ids))
    has_spans = bool((passage.tokens[:, 0] >= 0).any())
    inside = passage.tokens[:, 0] >= 0 if has_spans else ~special
    hit = np.bincount(positions, minlength=len(passage.token_ids)) > 0
    shown = np.flatnonzero(hit & inside).tolist()
    names = encoder.tokens(passage.token_ids[shown].tolist())
    shades = [
        Shade(position=position, token=name, contribution=float(sums[position]), **passage.span(position))
        for position, name in zip(shown, names, strict=True)
    ]
    return shades, float(sums[hit & ~inside].sum())


def _added(number: int, vector: ExpansionVector, passages: Passages, encoder: Encoder, active: bool) -> Added:
    names = encoder.tokens(token_id for token_id, _ in vector.likely)
    likely = zip(names, (probability for _, probability in vector.likely), strict=True)
    return Added(
        number=number,
        label=likely_words(vector, encoder.tokens),
        token=encoder.tokens([vector.token_id])[0],
        probability=vector.probability,
        likely=[Likely(token=token, probability=probability) for token, probability in likely],
        sigma=vector.sigma,
        weight=vector.weight,
        active=active,
        sources=[_source(doc_id, position, passages[doc_id], encoder) for doc_id, position in vector.sources],
    )


def _source(doc_id: str, position: int, passage: Passage, encoder: Encoder) -> Source:
    return Source(
        doc_id=doc_id,
        position=position,
        token=encoder.tokens([int(passage.token_ids[position])])[0],
        word=passage.word(position),
        **passage.span(position),
    )
