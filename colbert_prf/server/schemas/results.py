"""Answers to a query: hits, where their scores come from, and what feedback added."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from colbert_prf.server.schemas.base import Answer

__all__ = [
    "Added",
    "AddedTerm",
    "ExpandAnswer",
    "ExpansionAnswer",
    "ExplainAnswer",
    "ExplainedHit",
    "Likely",
    "Parts",
    "QueryToken",
    "SearchAnswer",
    "SearchHit",
    "SearchResult",
    "Shade",
    "Source",
    "Span",
    "TermMatch",
    "Timing",
    "TokenMatch",
]


class Span(Answer):
    """Where a token stands in a text; null for tokens that are not in it, such as `[CLS]`, or if no text is kept."""

    start: int | None = Field(description="First character, in code points.")
    end: int | None = Field(description="One after the last.")


class TokenMatch(Span):
    """What one query vector found in a passage."""

    vector: int = Field(description="Number of the query vector, in `tokens` and then `expansion.vectors`.")
    kind: Literal["word", "special", "added"] = Field(
        description="`special`: `[CLS]`, `[MASK]` and the like; `added`: by feedback."
    )
    token: str = Field(description="Of the query vector.")
    matched: str = Field(description="The passage's token.")
    position: int = Field(description="Of the matched token, among the passage's vectors.")
    similarity: float
    weight: float
    contribution: float = Field(description="similarity × weight.")


class TermMatch(Answer):
    """What one term gives to a score of BM25."""

    term: str
    frequency: int
    document_frequency: int
    weight: float
    contribution: float


class Shade(Span):
    """A token of the passage and the sum of what query vectors found in it."""

    position: int
    token: str
    contribution: float


class Parts(Answer):
    """The score, by kind of query vector: the three add up to it."""

    words: float = Field(description="Of the query's own words.")
    special: float = Field(description="Of `[CLS]`, `[MASK]` and the like.")
    added: float = Field(description="Of what feedback added.")


class ExplainedHit(Answer):
    """Where a score comes from: the contributions of `matches` (or `terms`) add up to it."""

    doc_id: str
    score: float = Field(description="The sum of the contributions.")
    parts: Parts | None = Field(default=None, description="Of `colbert`.")
    matches: list[TokenMatch] = Field(default_factory=list, description="One per query vector, of `colbert`.")
    shades: list[Shade] = Field(
        default_factory=list, description="Tokens of the passage that were matched, in the order of the text."
    )
    outside: float = Field(default=0.0, description="Contributions of matched tokens that are not in the text.")
    terms: list[TermMatch] = Field(default_factory=list, description="Of `bm25`.")


class SearchHit(Answer):
    """A document that was found."""

    rank: int = Field(description="From 1.")
    doc_id: str
    passage_id: str | None = Field(default=None, description="With `group`: the best passage of the document.")
    score: float
    text: str | None = Field(default=None, description="Null if not asked for or if the index keeps no texts.")
    metadata: dict[str, Any] | None = Field(default=None, description="The `fields` asked for.")
    rank_before: int | None = Field(
        default=None, description="With feedback: the rank in the first pass; null if it was not in its first k."
    )
    move: int | None = Field(
        default=None, description="With feedback: ranks it rose (negative: fell); null for a new one."
    )
    explanation: ExplainedHit | None = None


class QueryToken(Answer):
    """A vector of the query."""

    token: str
    weight: float
    special: bool


class Likely(Answer):
    """A token that an added vector may stand for."""

    token: str
    probability: float = Field(description="P(t|υ).")


class Source(Span):
    """A feedback vector that an added vector stands for."""

    doc_id: str
    position: int = Field(description="Among the document's vectors.")
    token: str
    word: str | None = Field(description="The whole word of the passage; null if the token is not in its text.")


class Added(Answer):
    """A vector that feedback added to the query."""

    number: int = Field(description="For `without`.")
    label: str = Field(description="As the paper spells it: `tank`, or `(swiss|switzerland)`.")
    token: str = Field(description="The most likely token.")
    probability: float = Field(description="P(t|υ) of that token.")
    likely: list[Likely]
    sigma: float
    weight: float = Field(description="In the expanded query; 0 if switched off.")
    active: bool = Field(description="False if switched off by `without`.")
    sources: list[Source]


class AddedTerm(Answer):
    """A term of an expanded query of BM25."""

    term: str
    weight: float
    added: bool = Field(description="False for a term of the query.")


class ExpansionAnswer(Answer):
    """What feedback made of the query."""

    feedback: list[str] = Field(description="Ids of the documents learned from, best first.")
    share: float = Field(description="Of the expanded query's weight, how much the added vectors have.")
    vectors: list[Added] = Field(default_factory=list)
    terms: list[AddedTerm] = Field(default_factory=list, description="Of `rm3`, `bo1` and `kl`.")


class Timing(Answer):
    """How long a stage took."""

    stage: str = Field(description="Such as `maxsim again`.")
    group: Literal["wait", "encode", "first pass", "learn", "second pass", "answer"]
    milliseconds: float


class ShardCounts(Answer):
    """How many shards an index is divided into, and how many of them answered."""

    total: int
    answered: int = Field(description="Fewer than `total`: documents of the others are missing.")


class SearchResult(Answer):
    """The answer to one query."""

    query: str
    tokens: list[QueryToken] = Field(description="Vectors of the query as asked; empty for `bm25` and `hybrid`.")
    hits: list[SearchHit] = Field(description="Best first.")
    before: list[SearchHit] | None = Field(default=None, description="With feedback: the hits of the first pass.")
    expansion: ExpansionAnswer | None = None
    timings: list[Timing] = Field(description="In the order in which the stages ran.")
    shards: ShardCounts | None = Field(default=None, description="Where the index is searched by a cluster.")


class SearchAnswer(Answer):
    """One result per query, in their order; all of one generation."""

    index: str
    generation: int = Field(description="Of the index: how many times it was changed.")
    took: float = Field(description="Milliseconds in the server, waiting included.")
    results: list[SearchResult]


class ExplainAnswer(Answer):
    """One explanation per document asked for."""

    index: str
    generation: int
    took: float
    tokens: list[QueryToken]
    expansion: ExpansionAnswer | None = None
    explanations: list[ExplainedHit]
    texts: list[str | None] = Field(description="Of the documents, to show the spans in.")


class ExpandAnswer(Answer):
    """The query's own vectors and what feedback adds."""

    index: str
    generation: int
    took: float
    query: str
    tokens: list[QueryToken]
    expansion: ExpansionAnswer
