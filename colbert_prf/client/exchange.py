"""What both clients share: their settings, when a request is sent again, and how an answer is read."""

from __future__ import annotations

from typing import Any

import httpx
from pydantic import ValidationError

from colbert_prf.client.calls import Answer, Call, Calls
from colbert_prf.errors import ServiceError
from colbert_prf.server.schemas import ErrorAnswer, TaskAnswer

__all__ = ["POLL_SECONDS", "Settings", "finished", "read", "unreachable"]

RETRIED = (429, 503)
LONGEST_PAUSE = 30.0
POLL_SECONDS = 0.05
"""Between two looks at a write that is waited for."""


class Settings:
    """What both clients are made of."""

    def __init__(self, address: str, *, key: str | None = None, retries: int = 5, timeout: float = 60.0) -> None:
        self.calls = Calls(address)
        self.retries = retries
        headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        self.options: dict[str, Any] = {"base_url": self.calls.server, "headers": headers, "timeout": timeout}

    def pause(self, response: httpx.Response, attempt: int) -> float | None:
        """Seconds to wait before the same request is sent again; None if it should not be."""
        if response.status_code not in RETRIED or attempt >= self.retries:
            return None
        wanted = response.headers.get("Retry-After", "")
        return min(float(wanted) if wanted.isdigit() else 0.1 * 2**attempt, LONGEST_PAUSE)


def read(call: Call[Answer], response: httpx.Response) -> Answer:
    """The answer, or the error it tells."""
    try:
        if response.is_success:
            return call.answer.model_validate_json(response.content)
        found = ErrorAnswer.model_validate_json(response.content)
    except ValidationError:
        message = f"not a colbert-prf server: {response.status_code} from {response.request.url}; check the address"
        raise ServiceError(message, status=response.status_code, code="not_a_server") from None
    raise ServiceError(f"{found.message}; {found.hint}", status=response.status_code, code=found.code)


def finished(task: TaskAnswer) -> TaskAnswer:
    """The write, unless it failed."""
    if task.error is not None:
        raise ServiceError(f"{task.error.message}; {task.error.hint}", code=task.error.code)
    return task


def unreachable(server: str, error: httpx.TransportError) -> ServiceError:
    """The error of a server that does not answer."""
    return ServiceError(f"{server} cannot be reached ({error or type(error).__name__}); is it running?")
