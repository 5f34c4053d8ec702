"""Errors as answers: ``{code, message, hint}``, never a traceback, never a path."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import FastAPI, HTTPException, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException as AnyHTTPException
from starlette.responses import Response

from colbert_prf.errors import (
    ClusterError,
    ColbertPrfError,
    DatasetError,
    IndexLockedError,
    InputError,
    MissingExtraError,
    StorageError,
)
from colbert_prf.server.schemas import ErrorAnswer

__all__ = ["ApiError", "api_error_of", "error_response", "install_error_handlers", "responses"]

SEE_DOCS = "GET /docs describes every request"
_OF_STATUS = {
    400: ("malformed_json", "send one JSON object in UTF-8"),
    404: ("not_found", "GET /docs lists the addresses"),
    405: ("method_not_allowed", "GET /docs lists the methods of each address"),
}


class ApiError(HTTPException):
    """A request that is refused.

    Parameters
    ----------
    status
        Of HTTP.
    code, message, hint
        See :class:`~colbert_prf.server.schemas.ErrorAnswer`.
    retry_after
        Seconds after which the same request may do.
    """

    def __init__(self, status: int, code: str, message: str, hint: str, *, retry_after: int | None = None) -> None:
        self.status = status
        self.answer = ErrorAnswer(code=code, message=_printable(message), hint=_printable(hint))
        self.retry_after = retry_after
        super().__init__(status, message)


def api_error_of(error: ColbertPrfError, folder: str | os.PathLike[str] = "") -> ApiError:
    """What a request gets when the library refuses it, with nothing of the folder of the index in it.

    >>> api_error_of(InputError("k must be at least 1, found 0; give more")).answer.hint
    'give more'
    """
    message, _, advice = _without_path(error, os.fspath(folder)).partition("; ")
    if isinstance(error, IndexLockedError):
        return ApiError(409, "index_locked", message, advice or "try again later", retry_after=1)
    if isinstance(error, DatasetError):
        return ApiError(400, "malformed_lines", message, advice or "send one JSON object a line")
    if isinstance(error, InputError):
        return ApiError(422, "invalid_input", message, advice or SEE_DOCS)
    if isinstance(error, MissingExtraError):
        return ApiError(422, "not_installed", message, advice or "install it where the server runs")
    if isinstance(error, ClusterError):
        return ApiError(503, "shard_unavailable", message, advice or "try again later", retry_after=5)
    if isinstance(error, StorageError):
        return ApiError(409, "index_unusable", message, advice or "see the log of the server")
    return ApiError(422, "unusable_model", message, advice or "see the log of the server")


def error_response(error: ApiError) -> Response:
    """An error as an answer."""
    headers = {} if error.retry_after is None else {"Retry-After": str(error.retry_after)}
    if error.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    return Response(error.answer.model_dump_json(), error.status, headers, media_type="application/json")


def responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The errors of an address, for its schema."""
    return {status: {"model": ErrorAnswer, "description": _DESCRIPTIONS[status]} for status in statuses}


_DESCRIPTIONS = {
    400: "Not JSON, or not UTF-8",
    401: "A key is needed, or it is wrong",
    403: "Writes are disabled, or need the write key",
    404: "No such index, document or task",
    409: "Another process is changing the index, or its files cannot be used",
    413: "The body is too large",
    415: "The body is not declared as JSON",
    422: "Something in the request cannot be used",
    429: "Too many writes wait",
    503: "Too many searches wait, a shard does not answer, or the server is starting or stopping",
}


def install_error_handlers(app: FastAPI) -> None:
    """Make every error of an app an :class:`ErrorAnswer`."""

    async def refused(_: Request, error: Exception) -> Response:
        assert isinstance(error, ApiError)
        return error_response(error)

    async def ours(_: Request, error: Exception) -> Response:
        assert isinstance(error, ColbertPrfError)
        return error_response(api_error_of(error))

    async def http(_: Request, error: Exception) -> Response:
        assert isinstance(error, AnyHTTPException)
        code, hint = _OF_STATUS.get(error.status_code, ("refused", SEE_DOCS))
        response = error_response(ApiError(error.status_code, code, str(error.detail).lower(), hint))
        response.headers.update(error.headers or {})
        return response

    async def invalid(_: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        return error_response(_invalid(error.errors()))

    async def unexpected(_: Request, error: Exception) -> Response:
        message = "the server made a mistake; its log says more under this request's X-Request-ID"
        return error_response(ApiError(500, "internal_error", message, "report it with the id"))

    app.add_exception_handler(ApiError, refused)
    app.add_exception_handler(ColbertPrfError, ours)
    app.add_exception_handler(AnyHTTPException, http)
    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(Exception, unexpected)


def _invalid(errors: Sequence[Mapping[str, Any]]) -> ApiError:
    """The first of the mistakes a request has, and how many there are."""
    first = errors[0]
    place = ".".join(str(part) for part in first["loc"] if part != "body") or "the body"
    if first["type"] == "json_invalid":
        reason = first.get("ctx", {}).get("error", "")
        return ApiError(400, "malformed_json", f"the body is not JSON: {reason}", "send one JSON object in UTF-8")
    if first["type"] == "missing" and first["loc"] == ("body",):
        return ApiError(422, "invalid_request", "the body is missing", "send a JSON object")
    if first["loc"] == ("body",) and isinstance(first.get("input"), bytes):
        message = "the body is not declared as JSON"
        return ApiError(415, "not_json", message, "send it with Content-Type: application/json")
    found = _shown(first.get("input"))
    more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    message = f"{place}: {first['msg'][:1].lower()}{first['msg'][1:]}, found {found}{more}"
    return ApiError(422, "invalid_request", message, SEE_DOCS)


def _shown(value: object, characters: int = 60) -> str:
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        text = type(value).__name__
    return text if len(text) <= characters else text[:characters] + "…"


def _without_path(error: ColbertPrfError, folder: str) -> str:
    path = getattr(error, "path", None)
    message = " ".join(str(error).split())
    if path:
        message = message.removeprefix(str(path)).lstrip(":, ")
    return message.replace(folder, "the index") if folder else message


def _printable(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")
