"""Answers about the server, its indexes, documents and writes, and errors."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import ConfigDict, Field

from colbert_prf.server.schemas.base import Answer, FeedbackMethod, Method

__all__ = [
    "Document",
    "ErrorAnswer",
    "FeedbackInfo",
    "Health",
    "IndexAnswer",
    "IndexList",
    "IndexSummary",
    "Limits",
    "Parameter",
    "Readiness",
    "TaskAnswer",
]


class ErrorAnswer(Answer):
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


class Document(Answer):
    """A document as it is in the index."""

    doc_id: str
    text: str | None
    metadata: dict[str, Any]
    generation: int


class Limits(Answer):
    """What a request may ask for."""

    k: int
    queries: int = Field(description="Queries in one request.")
    query_characters: int
    explanations: int = Field(description="Hits explained in one request, over all its queries.")
    body_bytes: int = Field(description="Of a request, `PUT …/documents` excepted.")
    upload_bytes: int = Field(description="Of `PUT …/documents`.")


class Parameter(Answer):
    """A parameter of a feedback method."""

    name: str
    default: float | int | bool | str | None


class FeedbackInfo(Answer):
    """A feedback method and its parameters."""

    method: FeedbackMethod
    title: str
    parameters: list[Parameter] = Field(description="`weight` or `beta`, whichever is the default, has its value.")


class IndexSummary(Answer):
    """An index in the list."""

    name: str
    num_documents: int
    generation: int


class IndexList(Answer):
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


class TaskAnswer(Answer):
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


class Health(Answer):
    """The process answers."""

    status: Literal["ok"] = "ok"


class Readiness(Answer):
    """Whether models and kernels are warm and searches are taken."""

    status: Literal["ready", "starting", "stopping"]
    indexes: dict[str, Literal["ready", "loading", "stale"]] = Field(
        description="By name; `stale`: a newer generation cannot be opened."
    )
