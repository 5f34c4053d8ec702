"""A client for programs with an event loop."""

from __future__ import annotations

import asyncio
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

__all__ = ["AsyncClient"]


class AsyncClient:
    """An index of a server, for programs with an event loop; see :class:`~colbert_prf.client.Client`.

    Parameters
    ----------
    address, key, retries, timeout
        As in :class:`~colbert_prf.client.Client`.
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
        self._settings = Settings(address, key=key, retries=retries, timeout=timeout)
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
        return finished(task)

    async def _written(self, call: Call[TaskAnswer], wait: bool) -> TaskAnswer:
        task = await self._send(call)
        return await self.wait(task) if wait else task

    async def _send(self, call: Call[Answer]) -> Answer:
        for attempt in range(self._settings.retries + 1):
            try:
                response = await self._http.request(call.method, call.path, **arguments(call))
            except httpx.TransportError as error:
                raise unreachable(self._calls.server, error) from error
            if (pause := self._settings.pause(response, attempt)) is None:
                break
            await asyncio.sleep(pause)
        return read(call, response)
