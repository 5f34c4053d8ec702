"""What the service reads."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from colbert_prf.search.retriever import DEFAULT_K
from colbert_prf.server.schemas.base import DocId, FeedbackMethod, Method, QueryText, Request, Where

__all__ = [
    "DeleteRequest",
    "ExpandRequest",
    "ExplainRequest",
    "FeedbackRequest",
    "MergeRequest",
    "PlaneRequest",
    "SearchRequest",
]


class FeedbackRequest(Request):
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


class _QueryRequest(Request):
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


class DeleteRequest(Request):
    """Documents to delete: all of them or, if one is unknown, none."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"doc_ids": ["d1", "d2"]}]})

    doc_ids: list[DocId] = Field(min_length=1, max_length=100_000)


class MergeRequest(Request):
    """Join segments and drop what was deleted."""

    model_config = ConfigDict(json_schema_extra={"examples": [{}, {"retrain": True}]})

    retrain: bool = Field(default=False, description="Also train a new codec.")
    reencode: bool = Field(default=False, description="With `retrain`: encode the kept texts again.")
