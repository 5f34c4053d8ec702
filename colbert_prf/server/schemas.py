"""What the service reads and answers: one model per request and answer, the source of ``/openapi.json``.

Offsets of characters count Unicode code points, as Python does; JavaScript's ``Array.from(text)`` has the same count.
Times are milliseconds.
"""

from __future__ import annotations

import json
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from colbert_prf.search.retriever import DEFAULT_K

__all__ = [
    "Added",
    "DeleteRequest",
    "Document",
    "ErrorAnswer",
    "ExpandAnswer",
    "ExpandRequest",
    "ExplainAnswer",
    "ExplainRequest",
    "ExplainedHit",
    "FeedbackRequest",
    "Health",
    "IndexAnswer",
    "IndexList",
    "MergeRequest",
    "PlaneAnswer",
    "PlaneRequest",
    "Readiness",
    "SearchAnswer",
    "SearchHit",
    "SearchRequest",
    "SearchResult",
    "TaskAnswer",
]


def _writable(value: dict[str, Any]) -> dict[str, Any]:
    """Refuse what Python's reader of JSON lets pass, although JSON has none: NaN, infinities, half surrogate pairs."""
    try:
        json.dumps(value, allow_nan=False, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise ValueError(f"not JSON: {error}") from None
    return value


DocId = Annotated[str, Field(min_length=1, description="A document's id.", examples=["tempfile.mkdtemp"])]
QueryText = Annotated[str, Field(min_length=1, description="A query in words.", examples=["do goldfish grow"])]
Where = Annotated[
    Annotated[dict[str, Any], AfterValidator(_writable)] | None,
    Field(
        default=None,
        description="A filter on metadata, as data: only documents that pass may be found: `docs/guide/filters.md`.",
        examples=[{"year": {">=": 1999}}],
    ),
]
Method = Literal["colbert", "bm25", "hybrid"]
FeedbackMethod = Literal["prf", "centroid", "rm3", "bo1", "kl"]


class _Request(BaseModel):
    # Wrong types, NaN, infinities and unknown fields are refused.
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class _Answer(BaseModel):
    model_config = ConfigDict(ser_json_inf_nan="null")


# Requests.


class FeedbackRequest(_Request):
    """A feedback method, its parameters, and what a person marked.

    Left out, a parameter has the default of its method; `GET /v1/indexes/{name}` lists parameters and defaults.
    """

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"method": "prf", "feedback_docs": 3, "weight": 0.2, "without": [4]}]}
    )

    method: FeedbackMethod = Field(
        default="prf",
        description="`prf` (ColBERT-PRF) and `centroid` learn vectors and go with the methods `colbert` and `hybrid`; "
        "`rm3`, `bo1` and `kl` learn terms and go with `bm25` and `hybrid`.",
    )
    feedback_docs: int | None = Field(default=None, ge=1, le=1000, description="Documents learned from, f_b.")
    expansion_vectors: int | None = Field(default=None, ge=1, le=1000, description="Vectors added at most, f_e.")
    weight: float | None = Field(
        default=None, ge=0, lt=1e30, description="Times the query that all added vectors weigh. Not with `beta`."
    )
    beta: float | None = Field(default=None, ge=0, lt=1e30, description="β of the paper. Not with `weight`.")
    rerank: bool | None = Field(default=None, description="Only score the documents of the first pass again.")
    rerank_depth: int | None = Field(default=None, ge=1, le=100_000, description="Documents `rerank` scores.")
    push: float | None = Field(
        default=None, ge=0, lt=1e30, description="How far documents marked as not relevant push vectors away."
    )
    clusters: int | None = Field(default=None, ge=1, le=1000, description="K, of `prf`.")
    neighbours: int | None = Field(
        default=None, ge=1, le=10_000, description="Document vectors that name a centroid, of `prf`."
    )
    clustering: Literal["kmeans", "kmeans-closest", "kmedoids"] | None = Field(default=None, description="Of `prf`.")
    weighting: Literal["idf", "ictf", "cosine"] | None = Field(default=None, description="σ, of `prf`.")
    seed: int | None = Field(default=None, ge=0, le=2**31 - 1, description="Of the clustering, of `prf`.")
    compat: Literal["paper"] | None = Field(default=None, description="`paper` clusters as the authors' code, `prf`.")
    relevance: float | None = Field(default=None, ge=0, le=1, description="λ of `centroid`.")
    feedback_terms: int | None = Field(default=None, ge=1, le=1000, description="Terms learned, of `rm3`, `bo1`, `kl`.")
    original: float | None = Field(default=None, ge=0, le=1, description="λ of `rm3`: what the query keeps.")
    relevant: list[DocId] = Field(
        default_factory=list,
        max_length=1000,
        description="Documents marked as relevant: learned from instead of the best of the first pass.",
    )
    non_relevant: list[DocId] = Field(
        default_factory=list, max_length=1000, description="Documents marked as not relevant: moved away from."
    )
    texts: list[Annotated[str, Field(min_length=1)]] = Field(
        default_factory=list,
        max_length=100,
        description="Texts to learn from instead of the best of the first pass, such as an answer written by a "
        "language model.",
    )
    with_passages: bool = Field(
        default=False, description="With `texts`: learn from the best of the first pass as well."
    )
    without: list[Annotated[int, Field(ge=0)]] = Field(
        default_factory=list,
        max_length=1000,
        description="Numbers of added vectors to switch off: they weigh 0 and the numbers of the others stay.",
    )


class _QueryRequest(_Request):
    feedback: FeedbackRequest | None = Field(default=None, description="Left out: no feedback.")
    where: Where


class SearchRequest(_QueryRequest):
    """One query, or several as `queries`."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"query": "do goldfish grow", "k": 3},
                {"query": "do goldfish grow", "k": 10, "feedback": {"method": "prf", "weight": 0.2}, "explain": True},
                {"queries": ["do goldfish grow", "bank rates"], "k": 5, "texts": False},
            ]
        }
    )

    query: QueryText | None = Field(default=None, description="A query in words. Give this or `queries`.")
    queries: list[QueryText] | None = Field(
        default=None, min_length=1, description="Several queries, answered in this order."
    )
    k: int = Field(default=DEFAULT_K, ge=1, description="How many hits; the server's limit is in `GET /v1/indexes`.")
    method: Method = Field(
        default="colbert", description="`colbert`, `bm25`, or `hybrid`: the two fused by reciprocal ranks."
    )
    explain: bool = Field(default=False, description="Tell for each hit which tokens gave its score. Not with hybrid.")
    texts: bool = Field(default=True, description="Whether hits have their texts.")
    fields: list[str] = Field(
        default_factory=list, max_length=100, description='Metadata fields of hits; `["*"]` for all.', examples=[["*"]]
    )
    probes: int | None = Field(default=None, ge=1, le=2**31 - 1, description="Centroids per query vector, colbert.")
    rescore: int | None = Field(default=None, ge=1, le=100_000, description="Documents scored exactly, colbert.")
    group: Literal["document"] | None = Field(
        default=None, description="Rank documents by their best passage, of an index of passages; colbert."
    )
    exact: bool = Field(
        default=False, description="Score every document exactly, colbert. Not with `probes` or `rescore`."
    )


class ExplainRequest(_QueryRequest):
    """Why documents have the scores they have for a query, with the same feedback as in a search."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"query": "do goldfish grow", "doc_ids": ["d1"], "feedback": {"weight": 0.2}}]}
    )

    query: QueryText
    doc_ids: list[DocId] = Field(min_length=1, description="The documents to explain.")
    method: Literal["colbert", "bm25"] = Field(default="colbert")
    k: int = Field(default=DEFAULT_K, ge=1, description="Of the search: feedback may depend on it.")


class ExpandRequest(_QueryRequest):
    """What feedback adds to a query; without `feedback`, ColBERT-PRF with its defaults."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"query": "do goldfish grow", "feedback": {}}]})

    query: QueryText


class PlaneRequest(_QueryRequest):
    """The paper's figure of feedback, as coordinates; `feedback` is that of `prf`."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"query": "do goldfish grow", "feedback": {"clusters": 24}, "compare": "The tank bombarded the troops."}
            ]
        }
    )

    query: QueryText
    compare: str | None = Field(default=None, min_length=1, description="A text from another context.")


class DeleteRequest(_Request):
    """Documents to delete: all of them or, if one is unknown, none."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"doc_ids": ["d1", "d2"]}]})

    doc_ids: list[DocId] = Field(min_length=1, max_length=100_000)


class MergeRequest(_Request):
    """Join segments and drop what was deleted."""

    model_config = ConfigDict(json_schema_extra={"examples": [{}, {"retrain": True}]})

    retrain: bool = Field(default=False, description="Also train a new codec.")
    reencode: bool = Field(default=False, description="With `retrain`: encode the kept texts again.")


# Answers.


class ErrorAnswer(_Answer):
    """Every answer of 400 and above."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "code": "unknown_index",
                    "message": "there is no index 'fish'",
                    "hint": "GET /v1/indexes lists the names",
                }
            ]
        }
    )

    code: str = Field(description="A word for programs, such as `unknown_index`, `overloaded`, `invalid_request`.")
    message: str = Field(description="What was wrong and what was found.")
    hint: str = Field(description="What to do.")


class Span(_Answer):
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


class TermMatch(_Answer):
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


class Parts(_Answer):
    """The score, by kind of query vector: the three add up to it."""

    words: float = Field(description="Of the query's own words.")
    special: float = Field(description="Of `[CLS]`, `[MASK]` and the like.")
    added: float = Field(description="Of what feedback added.")


class ExplainedHit(_Answer):
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


class SearchHit(_Answer):
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


class QueryToken(_Answer):
    """A vector of the query."""

    token: str
    weight: float
    special: bool


class Likely(_Answer):
    """A token that an added vector may stand for."""

    token: str
    probability: float = Field(description="P(t|υ).")


class Source(Span):
    """A feedback vector that an added vector stands for."""

    doc_id: str
    position: int = Field(description="Among the document's vectors.")
    token: str
    word: str | None = Field(description="The whole word of the passage; null if the token is not in its text.")


class Added(_Answer):
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


class AddedTerm(_Answer):
    """A term of an expanded query of BM25."""

    term: str
    weight: float
    added: bool = Field(description="False for a term of the query.")


class ExpansionAnswer(_Answer):
    """What feedback made of the query."""

    feedback: list[str] = Field(description="Ids of the documents learned from, best first.")
    share: float = Field(description="Of the expanded query's weight, how much the added vectors have.")
    vectors: list[Added] = Field(default_factory=list)
    terms: list[AddedTerm] = Field(default_factory=list, description="Of `rm3`, `bo1` and `kl`.")


class Timing(_Answer):
    """How long a stage took."""

    stage: str = Field(description="Such as `maxsim again`.")
    group: Literal["wait", "encode", "first pass", "learn", "second pass", "answer"]
    milliseconds: float


class SearchResult(_Answer):
    """The answer to one query."""

    query: str
    tokens: list[QueryToken] = Field(description="Vectors of the query as asked; empty for `bm25` and `hybrid`.")
    hits: list[SearchHit] = Field(description="Best first.")
    before: list[SearchHit] | None = Field(default=None, description="With feedback: the hits of the first pass.")
    expansion: ExpansionAnswer | None = None
    timings: list[Timing] = Field(description="In the order in which the stages ran.")


class SearchAnswer(_Answer):
    """One result per query, in their order; all of one generation."""

    index: str
    generation: int = Field(description="Of the index: how many times it was changed.")
    took: float = Field(description="Milliseconds in the server, waiting included.")
    results: list[SearchResult]


class ExplainAnswer(_Answer):
    """One explanation per document asked for."""

    index: str
    generation: int
    took: float
    tokens: list[QueryToken]
    expansion: ExpansionAnswer | None = None
    explanations: list[ExplainedHit]
    texts: list[str | None] = Field(description="Of the documents, to show the spans in.")


class ExpandAnswer(_Answer):
    """The query's own vectors and what feedback adds."""

    index: str
    generation: int
    took: float
    query: str
    tokens: list[QueryToken]
    expansion: ExpansionAnswer


class Point(_Answer):
    """A vector in the plane."""

    x: float
    y: float
    token: str


class QueryPoint(Point):
    """A vector of the query."""

    special: bool
    weight: float


class FeedbackPoint(Point):
    """A vector of a passage that feedback learns from."""

    document: int = Field(description="Number in `documents`.")
    position: int = Field(description="Among the passage's vectors.")


class CentroidPoint(Point):
    """A centroid; its area in the figure grows with σ."""

    label: str
    sigma: float
    weight: float = Field(description="In the expanded query; 0 if it is not added.")
    probability: float
    chosen: bool = Field(description="Whether it is added to the query.")


class ComparePoint(Point):
    """A vector of the text to compare with."""

    shared: bool = Field(description="Whether the query, a centroid or a passage has its word too.")


class PlaneAnswer(_Answer):
    """The plane of the two principal components of query and feedback vectors."""

    index: str
    generation: int
    took: float
    query: str
    explained: list[float] = Field(description="Share of the variance along x and along y.")
    documents: list[str] = Field(description="Ids of the passages learned from.")
    tokens: list[QueryPoint]
    feedback: list[FeedbackPoint]
    centroids: list[CentroidPoint]
    compare: list[ComparePoint] = Field(default_factory=list)
    twins: list[int] = Field(default_factory=list, description="Numbers in `feedback` of words shared with `compare`.")


class Document(_Answer):
    """A document as it is in the index."""

    doc_id: str
    text: str | None
    metadata: dict[str, Any]
    generation: int


class Limits(_Answer):
    """What a request may ask for."""

    k: int
    queries: int = Field(description="Queries in one request.")
    query_characters: int
    explanations: int = Field(description="Hits explained in one request, over all its queries.")
    body_bytes: int = Field(description="Of a request, `PUT …/documents` excepted.")
    upload_bytes: int = Field(description="Of `PUT …/documents`.")


class Parameter(_Answer):
    """A parameter of a feedback method."""

    name: str
    default: float | int | bool | str | None


class FeedbackInfo(_Answer):
    """A feedback method and its parameters."""

    method: FeedbackMethod
    title: str
    parameters: list[Parameter] = Field(description="`weight` or `beta`, whichever is the default, has its value.")


class IndexSummary(_Answer):
    """An index in the list."""

    name: str
    num_documents: int
    generation: int


class IndexList(_Answer):
    """The indexes served, first the one the server was started with."""

    indexes: list[IndexSummary]
    limits: Limits
    writable: bool = Field(description="Whether writes are possible with the write key.")
    version: str


class IndexAnswer(IndexSummary):
    """What an index is made of."""

    num_deleted: int
    num_vectors: int
    num_segments: int
    num_centroids: int
    num_bytes: int
    dim: int
    bits: int
    texts: bool
    model: str | None
    methods: list[Method] = Field(description="BM25 needs texts.")
    feedback: list[FeedbackInfo]
    examples: list[str] = Field(description="Example queries.")


class TaskAnswer(_Answer):
    """A write: it is durable once `state` is `finished`."""

    task: str = Field(description="Id, for `GET /v1/tasks/{id}`.")
    index: str
    action: Literal["upsert", "delete", "merge"]
    state: Literal["waiting", "running", "finished", "failed"]
    done: int = Field(description="Documents done; after the last one the change is still to be published.")
    total: int = Field(description="Documents of the task.")
    created: datetime
    started: datetime | None = None
    ended: datetime | None = None
    generation: int | None = Field(default=None, description="That shows the change, once finished.")
    error: ErrorAnswer | None = Field(default=None, description="If it failed: nothing was changed.")


class Health(_Answer):
    """The process answers."""

    status: Literal["ok"] = "ok"


class Readiness(_Answer):
    """Whether models and kernels are warm and searches are taken."""

    status: Literal["ready", "starting", "stopping"]
    indexes: dict[str, Literal["ready", "loading", "stale"]] = Field(
        description="By name; `stale`: a newer generation cannot be opened."
    )
