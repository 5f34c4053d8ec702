"""Who may read and who may write."""

from __future__ import annotations

import hmac
from typing import Annotated

from fastapi import Request, Security
from fastapi.security import APIKeyHeader, HTTPAuthorizationCredentials, HTTPBearer

from colbert_prf.server.errors import ApiError
from colbert_prf.server.settings import WRITE_KEY, ServerSettings

__all__ = ["may_read", "may_write"]

_BEARER = HTTPBearer(auto_error=False, description="The read or the write key.")
_HEADER = APIKeyHeader(name="X-API-Key", auto_error=False, description="The read or the write key.")
_SEND = "send it as Authorization: Bearer KEY or X-API-Key: KEY"

Bearer = Annotated[HTTPAuthorizationCredentials | None, Security(_BEARER)]
Header = Annotated[str | None, Security(_HEADER)]


async def may_read(request: Request, bearer: Bearer, header: Header) -> None:
    """Refuse a request without the read or the write key, if there is a read key."""
    settings = _settings(request)
    if settings.read_key is None:
        return
    given = _given(bearer, header)
    if not (_same(given, settings.read_key) | _same(given, settings.write_key)):
        raise _wrong("read" if given is None else "", given)


async def may_write(request: Request, bearer: Bearer, header: Header) -> None:
    """Refuse a request without the write key."""
    settings = _settings(request)
    if settings.write_key is None:
        hint = f"start the server with {WRITE_KEY} in its environment"
        raise ApiError(403, "writes_disabled", "this server takes no writes", hint)
    given = _given(bearer, header)
    if _same(given, settings.write_key):
        return
    if settings.read_key is not None and _same(given, settings.read_key):
        raise ApiError(403, "write_key_needed", "the read key does not allow writes", f"use the write key: {_SEND}")
    raise _wrong("write" if given is None else "", given)


def _wrong(wanted: str, given: str | None) -> ApiError:
    if given is None:
        return ApiError(401, "key_needed", f"a key is needed to {wanted}", _SEND)
    return ApiError(401, "wrong_key", "the key is wrong", _SEND)


def _given(bearer: HTTPAuthorizationCredentials | None, header: str | None) -> str | None:
    return bearer.credentials if bearer is not None else header


def _same(given: str | None, key: str | None) -> bool:
    """Compare in constant time."""
    return hmac.compare_digest((given or "").encode(), (key or "").encode()) and given is not None and key is not None


def _settings(request: Request) -> ServerSettings:
    settings = request.app.state.service.settings
    assert isinstance(settings, ServerSettings)
    return settings
