"""A client that waits for its answers."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import Any

import httpx
from typing_extensions import Unpack

from colbert_prf.client.calls import Answer, Call, SearchOptions, arguments
from colbert_prf.client.exchange import POLL_SECONDS, Settings, finished, read, unreachable
from colbert_prf.search.retriever import DEFAULT_K, several_queries
from colbert_prf.server.schemas import (
    Document,
    ExpandAnswer,
    ExplainedHit,
    IndexAnswer,
    PlaneAnswer,
    SearchResult,
    TaskAnswer,
)

__all__ = ["Client"]


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
        self._settings = Settings(address, key=key, retries=retries, timeout=timeout)
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
        return finished(task)

    def _written(self, call: Call[TaskAnswer], wait: bool) -> TaskAnswer:
        task = self._send(call)
        return self.wait(task) if wait else task

    def _send(self, call: Call[Answer]) -> Answer:
        for attempt in range(self._settings.retries + 1):
            try:
                response = self._http.request(call.method, call.path, **arguments(call))
            except httpx.TransportError as error:
                raise unreachable(self._calls.server, error) from error
            if (pause := self._settings.pause(response, attempt)) is None:
                break
            time.sleep(pause)
        return read(call, response)
