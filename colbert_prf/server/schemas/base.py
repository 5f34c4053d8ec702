"""What requests and answers have in common."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

__all__ = [
    "Answer",
    "DocId",
    "FeedbackMethod",
    "Method",
    "QueryText",
    "Request",
    "Where",
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


class Request(BaseModel):
    """A request: wrong types, NaN, infinities and unknown fields are refused."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class Answer(BaseModel):
    """An answer: what JSON cannot hold is null."""

    model_config = ConfigDict(ser_json_inf_nan="null")
