"""A server's index as if it were here: the method names of :class:`~colbert_prf.Searcher`, over HTTP.

Needs the extra ``[server]``. Answers are the models of :mod:`colbert_prf.server.schemas`.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Generic, TypeVar
from urllib.parse import quote, urlsplit

from colbert_prf.errors import InputError, MissingExtraError, ServiceError
from colbert_prf.feedback import Feedback
from colbert_prf.feedback.methods import METHODS
from colbert_prf.search.grouping import Group
from colbert_prf.search.retriever import DEFAULT_K, several_queries

try:
    import httpx
    from pydantic import BaseModel, ValidationError
    from typing_extensions import TypedDict, Unpack

    from colbert_prf.server.schemas import (
        Document,
        ErrorAnswer,
        ExpandAnswer,
        ExplainAnswer,
        ExplainedHit,
        IndexAnswer,
        Method,
        PlaneAnswer,
        SearchAnswer,
        SearchResult,
        TaskAnswer,
    )
except ImportError as error:
    raise MissingExtraError("The client", extra="server") from error

__all__ = ["AsyncClient", "Client", "SearchOptions"]

Answer = TypeVar("Answer", bound=BaseModel)
RETRIED = (429, 503)
LONGEST_PAUSE = 30.0
POLL_SECONDS = 0.05


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
class _Call(Generic[Answer]):
    """A request, and the model of its answer."""

    answer: type[Answer]
    method: str
    path: str
    body: Mapping[str, Any] | None = None
    parameters: Mapping[str, str] | None = None
    content: bytes | None = None


class _Calls:
    """The requests of both clients, to an index by the address ``http://host:port/NAME``."""

    def __init__(self, address: str) -> None:
        parts = urlsplit(address)
        base, _, name = parts.path.rstrip("/").rpartition("/")
        if parts.scheme not in ("http", "https") or not parts.netloc or not name:
            raise InputError(f"an index is addressed as http://host:port/NAME, found {address!r}")
        self.server = f"{parts.scheme}://{parts.netloc}{base}"
        self._path = f"/v1/indexes/{quote(name, safe='')}"

    def info(self) -> _Call[IndexAnswer]:
        return _Call(IndexAnswer, "GET", self._path)

    def search(self, queries: Mapping[str, Any], k: int, options: SearchOptions) -> _Call[SearchAnswer]:
        return self._post(SearchAnswer, "search", {**queries, "k": k, **_body(options)})

    def explain(self, query: str, doc_ids: Sequence[str], options: SearchOptions) -> _Call[ExplainAnswer]:
        return self._post(ExplainAnswer, "explain", {"query": query, "doc_ids": list(doc_ids), **_body(options)})

    def expand(self, query: str, options: SearchOptions) -> _Call[ExpandAnswer]:
        return self._post(ExpandAnswer, "expand", {"query": query, **_body(options)})

    def plane(self, query: str, compare: str | None, options: SearchOptions) -> _Call[PlaneAnswer]:
        body = {"query": query, **_body(options)}
        return self._post(PlaneAnswer, "plane", body if compare is None else {**body, "compare": compare})

    def document(self, doc_id: str) -> _Call[Document]:
        return _Call(Document, "GET", f"{self._path}/documents", parameters={"id": doc_id})

    def upsert(self, documents: Iterable[Sequence[Any]]) -> _Call[TaskAnswer]:
        return _Call(TaskAnswer, "PUT", f"{self._path}/documents", content=b"".join(_lines(documents)))

    def delete(self, doc_ids: Iterable[str]) -> _Call[TaskAnswer]:
        wanted = [doc_ids] if isinstance(doc_ids, str) else list(doc_ids)
        return _Call(TaskAnswer, "DELETE", f"{self._path}/documents", {"doc_ids": wanted})

    def merge(self, retrain: bool) -> _Call[TaskAnswer]:
        return self._post(TaskAnswer, "merge", {"retrain": retrain})

    def task(self, task: TaskAnswer) -> _Call[TaskAnswer]:
        return _Call(TaskAnswer, "GET", f"/v1/tasks/{task.task}")

    def _post(self, answer: type[Answer], action: str, body: Mapping[str, Any]) -> _Call[Answer]:
        return _Call(answer, "POST", f"{self._path}/{action}", body)


class _Settings:
    """What both clients are made of."""

    def __init__(self, address: str, *, key: str | None = None, retries: int = 5, timeout: float = 60.0) -> None:
        self.calls = _Calls(address)
        self.retries = retries
        headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        self.options: dict[str, Any] = {"base_url": self.calls.server, "headers": headers, "timeout": timeout}

    def pause(self, response: httpx.Response, attempt: int) -> float | None:
        """Seconds to wait before the same request is sent again; None if it should not be."""
        if response.status_code not in RETRIED or attempt >= self.retries:
            return None
        wanted = response.headers.get("Retry-After", "")
        return min(float(wanted) if wanted.isdigit() else 0.1 * 2**attempt, LONGEST_PAUSE)


class Client:
    """An index of a server.

    Parameters
    ----------
    address
        Such as ``http://127.0.0.1:8000/demo``: the server, then the name of the index.
    key
        The read key, or to write the write key.
    retries
        Times a request is sent again that the server was too busy for, after as long as it asks for.
    timeout
        Seconds to wait for an answer.
    transport
        Of httpx, in place of a connection.

    Raises
    ------
    ServiceError
        From every method, if the server refuses a request or cannot be reached.
    """

    def __init__(
        self,
        address: str,
        *,
        key: str | None = None,
        retries: int = 5,
        timeout: float = 60.0,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._settings = _Settings(address, key=key, retries=retries, timeout=timeout)
        self._calls = self._settings.calls
        self._http = httpx.Client(**self._settings.options, transport=transport)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def info(self) -> IndexAnswer:
        """What the index is made of."""
        return self._send(self._calls.info())

    def search(self, query: str, k: int = DEFAULT_K, **options: Unpack[SearchOptions]) -> SearchResult:
        """Find the ``k`` best documents; ``feedback`` is a method such as ``ColbertPRF()``, or a mapping."""
        return self._send(self._calls.search({"query": query}, k, options)).results[0]

    def search_many(
        self, queries: Iterable[str], k: int = DEFAULT_K, **options: Unpack[SearchOptions]
    ) -> list[SearchResult]:
        """Answer several queries in one request."""
        return self._send(self._calls.search({"queries": list(several_queries(queries))}, k, options)).results

    def explain(self, query: str, doc_id: str, **options: Unpack[SearchOptions]) -> ExplainedHit:
        """Tell which tokens of a document give it its score."""
        return self._send(self._calls.explain(query, [doc_id], options)).explanations[0]

    def expand(self, query: str, **options: Unpack[SearchOptions]) -> ExpandAnswer:
        """Tell what feedback adds to a query."""
        return self._send(self._calls.expand(query, options))

    def plane(self, query: str, *, compare: str | None = None, **options: Unpack[SearchOptions]) -> PlaneAnswer:
        """The paper's figure of feedback, as coordinates."""
        return self._send(self._calls.plane(query, compare, options))

    def document(self, doc_id: str) -> Document:
        """A document."""
        return self._send(self._calls.document(doc_id))

    def upsert(self, documents: Iterable[Sequence[Any]], *, wait: bool = True) -> TaskAnswer:
        """Add documents, tuples (doc_id, text) or (doc_id, text, metadata), replacing those with the same ids."""
        return self._written(self._calls.upsert(documents), wait)

    def delete(self, doc_ids: Iterable[str], *, wait: bool = True) -> TaskAnswer:
        """Delete documents, all of them or none."""
        return self._written(self._calls.delete(doc_ids), wait)

    def merge(self, *, retrain: bool = False, wait: bool = True) -> TaskAnswer:
        """Join segments and drop what was deleted."""
        return self._written(self._calls.merge(retrain), wait)

    def wait(self, task: TaskAnswer) -> TaskAnswer:
        """Wait until a write is durable; one that fails is a :class:`ServiceError`."""
        while task.state in ("waiting", "running"):
            time.sleep(POLL_SECONDS)
            task = self._send(self._calls.task(task))
        return _finished(task)

    def _written(self, call: _Call[TaskAnswer], wait: bool) -> TaskAnswer:
        task = self._send(call)
        return self.wait(task) if wait else task

    def _send(self, call: _Call[Answer]) -> Answer:
        for attempt in range(self._settings.retries + 1):
            try:
                response = self._http.request(call.method, call.path, **_arguments(call))
            except httpx.TransportError as error:
                raise _unreachable(self._calls.server, error) from error
            if (pause := self._settings.pause(response, attempt)) is None:
                break
            time.sleep(pause)
        return _read(call, response)


class AsyncClient:
    """An index of a server, for programs with an event loop; see :class:`Client`.

    Parameters
    ----------
    address, key, retries, timeout
        As in :class:`Client`.
    transport
        Of httpx, in place of a connection.
    """

    def __init__(
        self,
        address: str,
        *,
        key: str | None = None,
        retries: int = 5,
        timeout: float = 60.0,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._settings = _Settings(address, key=key, retries=retries, timeout=timeout)
        self._calls = self._settings.calls
        self._http = httpx.AsyncClient(**self._settings.options, transport=transport)

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def info(self) -> IndexAnswer:
        """What the index is made of."""
        return await self._send(self._calls.info())

    async def search(self, query: str, k: int = DEFAULT_K, **options: Unpack[SearchOptions]) -> SearchResult:
        """Find the ``k`` best documents."""
        return (await self._send(self._calls.search({"query": query}, k, options))).results[0]

    async def search_many(
        self, queries: Iterable[str], k: int = DEFAULT_K, **options: Unpack[SearchOptions]
    ) -> list[SearchResult]:
        """Answer several queries in one request."""
        return (await self._send(self._calls.search({"queries": list(several_queries(queries))}, k, options))).results

    async def explain(self, query: str, doc_id: str, **options: Unpack[SearchOptions]) -> ExplainedHit:
        """Tell which tokens of a document give it its score."""
        return (await self._send(self._calls.explain(query, [doc_id], options))).explanations[0]

    async def expand(self, query: str, **options: Unpack[SearchOptions]) -> ExpandAnswer:
        """Tell what feedback adds to a query."""
        return await self._send(self._calls.expand(query, options))

    async def plane(self, query: str, *, compare: str | None = None, **options: Unpack[SearchOptions]) -> PlaneAnswer:
        """The paper's figure of feedback, as coordinates."""
        return await self._send(self._calls.plane(query, compare, options))

    async def document(self, doc_id: str) -> Document:
        """A document."""
        return await self._send(self._calls.document(doc_id))

    async def upsert(self, documents: Iterable[Sequence[Any]], *, wait: bool = True) -> TaskAnswer:
        """Add documents, replacing those with the same ids."""
        return await self._written(self._calls.upsert(documents), wait)

    async def delete(self, doc_ids: Iterable[str], *, wait: bool = True) -> TaskAnswer:
        """Delete documents, all of them or none."""
        return await self._written(self._calls.delete(doc_ids), wait)

    async def merge(self, *, retrain: bool = False, wait: bool = True) -> TaskAnswer:
        """Join segments and drop what was deleted."""
        return await self._written(self._calls.merge(retrain), wait)

    async def wait(self, task: TaskAnswer) -> TaskAnswer:
        """Wait until a write is durable; one that fails is a :class:`ServiceError`."""
        while task.state in ("waiting", "running"):
            await asyncio.sleep(POLL_SECONDS)
            task = await self._send(self._calls.task(task))
        return _finished(task)

    async def _written(self, call: _Call[TaskAnswer], wait: bool) -> TaskAnswer:
        task = await self._send(call)
        return await self.wait(task) if wait else task

    async def _send(self, call: _Call[Answer]) -> Answer:
        for attempt in range(self._settings.retries + 1):
            try:
                response = await self._http.request(call.method, call.path, **_arguments(call))
            except httpx.TransportError as error:
                raise _unreachable(self._calls.server, error) from error
            if (pause := self._settings.pause(response, attempt)) is None:
                break
            await asyncio.sleep(pause)
        return _read(call, response)


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


def _arguments(call: _Call[Any]) -> dict[str, Any]:
    if call.content is not None:
        return {"content": call.content, "headers": {"Content-Type": "application/x-ndjson"}}
    return {"json": call.body} if call.body is not None else {"params": call.parameters}


def _read(call: _Call[Answer], response: httpx.Response) -> Answer:
    """The answer, or the error it tells."""
    try:
        if response.is_success:
            return call.answer.model_validate_json(response.content)
        found = ErrorAnswer.model_validate_json(response.content)
    except ValidationError:
        message = f"not a colbert-prf server: {response.status_code} from {response.request.url}; check the address"
        raise ServiceError(message, status=response.status_code, code="not_a_server") from None
    raise ServiceError(f"{found.message}; {found.hint}", status=response.status_code, code=found.code)


def _finished(task: TaskAnswer) -> TaskAnswer:
    if task.error is not None:
        raise ServiceError(f"{task.error.message}; {task.error.hint}", code=task.error.code)
    return task


def _unreachable(server: str, error: httpx.TransportError) -> ServiceError:
    return ServiceError(f"{server} cannot be reached ({error or type(error).__name__}); is it running?")
