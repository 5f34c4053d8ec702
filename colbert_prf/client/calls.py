"""Methods of a client as requests of HTTP."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Generic, TypeVar
from urllib.parse import quote, urlsplit

from pydantic import BaseModel
from typing_extensions import TypedDict

from colbert_prf.errors import InputError
from colbert_prf.feedback import Feedback
from colbert_prf.feedback.methods import METHODS
from colbert_prf.search.grouping import Group
from colbert_prf.server.schemas import (
    Document,
    ExpandAnswer,
    ExplainAnswer,
    IndexAnswer,
    Method,
    PlaneAnswer,
    SearchAnswer,
    TaskAnswer,
)

__all__ = ["Answer", "Call", "Calls", "SearchOptions", "arguments"]

Answer = TypeVar("Answer", bound=BaseModel)


class SearchOptions(TypedDict, total=False):
    """What a search may have besides the query and k; see :class:`~colbert_prf.server.schemas.SearchRequest`."""

    method: Method
    feedback: Feedback | Mapping[str, Any] | None
    relevant: Sequence[str]
    non_relevant: Sequence[str]
    feedback_texts: Sequence[str]
    with_passages: bool
    where: Mapping[str, Any] | None
    group: Group | None
    explain: bool
    texts: bool
    fields: Sequence[str]
    probes: int
    rescore: int
    exact: bool


_LEARNED = {"relevant": "relevant", "non_relevant": "non_relevant", "feedback_texts": "texts"}
"""What feedback learns from: as it is called here, and in a request, where it is a part of the feedback."""


@dataclass(frozen=True)
class Call(Generic[Answer]):
    """A request, and the model of its answer."""

    answer: type[Answer]
    method: str
    path: str
    body: Mapping[str, Any] | None = None
    parameters: Mapping[str, str] | None = None
    content: bytes | None = None


class Calls:
    """The requests of both clients, to an index by the address ``http://host:port/NAME``."""

    def __init__(self, address: str) -> None:
        parts = urlsplit(address)
        base, _, name = parts.path.rstrip("/").rpartition("/")
        if parts.scheme not in ("http", "https") or not parts.netloc or not name:
            raise InputError(f"an index is addressed as http://host:port/NAME, found {address!r}")
        self.server = f"{parts.scheme}://{parts.netloc}{base}"
        self._path = f"/v1/indexes/{quote(name, safe='')}"

    def info(self) -> Call[IndexAnswer]:
        """What the index is made of."""
        return Call(IndexAnswer, "GET", self._path)

    def search(self, queries: Mapping[str, Any], k: int, options: SearchOptions) -> Call[SearchAnswer]:
        """Find documents; ``queries`` is one query or several, as a request has them."""
        return self._post(SearchAnswer, "search", {**queries, "k": k, **_body(options)})

    def explain(self, query: str, doc_ids: Sequence[str], options: SearchOptions) -> Call[ExplainAnswer]:
        """Tell which tokens give documents their scores."""
        return self._post(ExplainAnswer, "explain", {"query": query, "doc_ids": list(doc_ids), **_body(options)})

    def expand(self, query: str, options: SearchOptions) -> Call[ExpandAnswer]:
        """Tell what feedback adds."""
        return self._post(ExpandAnswer, "expand", {"query": query, **_body(options)})

    def plane(self, query: str, compare: str | None, options: SearchOptions) -> Call[PlaneAnswer]:
        """The paper's figure."""
        body = {"query": query, **_body(options)}
        return self._post(PlaneAnswer, "plane", body if compare is None else {**body, "compare": compare})

    def document(self, doc_id: str) -> Call[Document]:
        """A document, by a parameter, which any id fits into."""
        return Call(Document, "GET", f"{self._path}/documents", parameters={"id": doc_id})

    def upsert(self, documents: Iterable[Sequence[Any]]) -> Call[TaskAnswer]:
        """Add documents, as JSON lines."""
        return Call(TaskAnswer, "PUT", f"{self._path}/documents", content=b"".join(_lines(documents)))

    def delete(self, doc_ids: Iterable[str]) -> Call[TaskAnswer]:
        """Delete documents, by one id or several."""
        wanted = [doc_ids] if isinstance(doc_ids, str) else list(doc_ids)
        return Call(TaskAnswer, "DELETE", f"{self._path}/documents", {"doc_ids": wanted})

    def merge(self, retrain: bool) -> Call[TaskAnswer]:
        """Join segments."""
        return self._post(TaskAnswer, "merge", {"retrain": retrain})

    def task(self, task: TaskAnswer) -> Call[TaskAnswer]:
        """How a write stands."""
        return Call(TaskAnswer, "GET", f"/v1/tasks/{task.task}")

    def _post(self, answer: type[Answer], action: str, body: Mapping[str, Any]) -> Call[Answer]:
        return Call(answer, "POST", f"{self._path}/{action}", body)


def _body(options: SearchOptions) -> dict[str, Any]:
    """The options of a search as a request has them."""
    body: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    marks: dict[str, Any] = {field: list(body.pop(name)) for name, field in _LEARNED.items() if name in body}
    if body.pop("with_passages", False):
        marks["with_passages"] = True
    if "feedback" in body:
        given = body["feedback"]
        body["feedback"] = {**(_feedback_body(given) if isinstance(given, Feedback) else given), **marks}
    elif any(marks.values()):
        raise InputError("relevant, non_relevant and feedback_texts need a feedback method: give feedback=ColbertPRF()")
    if "fields" in body:
        body["fields"] = list(body["fields"])
    return body


def _feedback_body(feedback: Feedback) -> dict[str, Any]:
    """A method as a request has it: its name and its parameters.

    >>> from colbert_prf import ColbertPRF
    >>> _feedback_body(ColbertPRF(beta=1.0))["beta"]
    1.0
    """
    names = [name for name, method in METHODS.items() if type(feedback) is method]
    if not names:
        raise InputError(f"a server knows {', '.join(METHODS)}, found {type(feedback).__name__}; give a mapping")
    values = {field.name: getattr(feedback, field.name) for field in fields(feedback)}
    return {"method": names[0], **{name: value for name, value in values.items() if value is not None}}


def _lines(documents: Iterable[Sequence[Any]]) -> Iterator[bytes]:
    for document in documents:
        if isinstance(document, str) or not 2 <= len(document) <= 3:
            raise InputError(f"a document is (doc_id, text) or (doc_id, text, metadata), found {document!r}")
        metadata = {"metadata": document[2]} if len(document) == 3 else {}
        yield json.dumps({"doc_id": document[0], "text": document[1], **metadata}).encode() + b"\n"


def arguments(call: Call[Any]) -> dict[str, Any]:
    """What httpx takes for a call, besides its method and path."""
    if call.content is not None:
        return {"content": call.content, "headers": {"Content-Type": "application/x-ndjson"}}
    return {"json": call.body} if call.body is not None else {"params": call.parameters}
