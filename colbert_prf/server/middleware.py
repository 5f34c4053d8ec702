"""Around every request: its id, its size, its line in the log, its place in the metrics."""

from __future__ import annotations

import json
import logging
import re
import uuid
from datetime import datetime, timezone
from time import perf_counter
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from colbert_prf.server.errors import ApiError, error_response
from colbert_prf.server.metrics import Metrics
from colbert_prf.server.settings import ServerSettings
from colbert_prf.server.work_queue import WorkQueue

__all__ = ["ACCESS_LOG", "Requests"]

ACCESS_LOG = logging.getLogger("colbert_prf.server.access")
LOG = logging.getLogger("colbert_prf.server")
_REQUEST_ID = re.compile(rb"[\w.:+/=-]{1,128}", re.ASCII)
_SEARCH = re.compile(r"/v1/indexes/[^/]+/(search|explain|expand|plane)")
_HEADERS = ((b"x-content-type-options", b"nosniff"), (b"referrer-policy", b"no-referrer"))


class Requests:
    """An ASGI app around another.

    Parameters
    ----------
    app
        What answers.
    settings
        The limits of bodies.
    metrics
        Where requests are counted.
    queue
        Of the searches: if it is full a search is refused before its body is read.
    """

    def __init__(self, app: ASGIApp, *, settings: ServerSettings, metrics: Metrics, queue: WorkQueue) -> None:
        self._app = app
        self._settings = settings
        self._metrics = metrics
        self._queue = queue

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, request_id, status, num_bytes = perf_counter(), _request_id(scope), 0, 0
        scope["request_id"] = request_id.decode("ascii")

        async def send_noted(message: Message) -> None:
            nonlocal status, num_bytes
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", ()), (b"x-request-id", request_id), *_HEADERS]
            elif message["type"] == "http.response.body":
                num_bytes += len(message.get("body", b""))
            await send(message)

        try:
            await self._answer(scope, receive, send_noted)
        except Exception:
            LOG.exception("request %s failed", scope["request_id"])
            if not status:  # Starlette answers before it raises again; this is for what fails outside of it
                raise
        finally:
            seconds = perf_counter() - started
            route = getattr(scope.get("route"), "path", "other")
            self._metrics.count(scope["method"], route, status, seconds)
            if ACCESS_LOG.isEnabledFor(logging.INFO):
                ACCESS_LOG.info(_line(scope, status, num_bytes, seconds))

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        limits = self._settings.limits
        uploads = scope["method"] == "PUT" and scope["path"].endswith("/documents")
        limit = limits.upload_bytes if uploads else limits.body_bytes
        too_large = ApiError(413, "too_large", f"a body may have {limit:,} bytes", "send less in each request")
        declared = dict(scope["headers"]).get(b"content-length", b"0")
        if not declared.isdigit() or int(declared) > limit:
            await error_response(too_large)(scope, receive, send)
            return
        if scope["method"] == "POST" and _SEARCH.fullmatch(scope["path"]):
            try:
                self._queue.check_room()
            except ApiError as full:
                await error_response(full)(scope, receive, send)
                return
        received = 0

        async def receive_counted() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > limit:
                raise too_large
            return message

        await self._app(scope, receive_counted, send)


def _request_id(scope: Scope) -> bytes:
    """The id the client gave, if it is harmless, or a new one."""
    given = dict(scope["headers"]).get(b"x-request-id", b"")
    return given if _REQUEST_ID.fullmatch(given) else uuid.uuid4().hex.encode()


def _line(scope: Scope, status: int, num_bytes: int, seconds: float) -> str:
    line: dict[str, Any] = {
        "time": datetime.now(timezone.utc).isoformat(timespec="milliseconds"),
        "request_id": scope["request_id"],
        "client": (scope.get("client") or ("",))[0],
        "method": scope["method"],
        "path": scope["path"],
        "status": status,
        "bytes": num_bytes,
        "milliseconds": round(1000 * seconds, 3),
    }
    return json.dumps(line | scope.get("logged", {}))
