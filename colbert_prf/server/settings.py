"""How a server is run: keys, limits, threads."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from colbert_prf.encoder.base import available_cores
from colbert_prf.errors import InputError
from colbert_prf.server.schemas import Limits

__all__ = ["READ_KEY", "WRITE_KEY", "ServerSettings", "keys_from"]

READ_KEY, WRITE_KEY = "COLBERT_PRF_READ_KEY", "COLBERT_PRF_WRITE_KEY"
"""Environment variables."""


def _default_limits() -> Limits:
    return Limits(
        k=1000,
        queries=64,
        query_characters=10_000,
        explanations=200,
        body_bytes=1 << 20,
        upload_bytes=1 << 30,
    )


@dataclass(frozen=True, kw_only=True)
class ServerSettings:
    """Settings of a server.

    Parameters
    ----------
    read_key
        What a request must show to read; without one anybody may.
    write_key
        What a request must show to write, and may show to read; without one nobody may write.
    workers
        Searches that run at once, each on one core.
    waiting
        Searches that may wait for a worker; the next one is refused with 503.
    waiting_writes
        Writes that may wait; the next one is refused with 429.
    patience
        Seconds a write waits for another process that is changing the index.
    reload_seconds
        How often the folders are looked at for a new generation.
    log_queries
        Whether the access log has the texts of queries.
    limits
        What a request may ask for.
    """

    read_key: str | None = None
    write_key: str | None = None
    workers: int = field(default_factory=available_cores)
    waiting: int = 16
    waiting_writes: int = 16
    patience: float = 10.0
    reload_seconds: float = 1.0
    log_queries: bool = False
    limits: Limits = field(default_factory=_default_limits)

    def __post_init__(self) -> None:
        for name, smallest in (("workers", 1), ("waiting", 0), ("waiting_writes", 0)):
            if getattr(self, name) < smallest:
                raise InputError(f"{name} must be at least {smallest}, found {getattr(self, name)}")
        if not self.reload_seconds > 0:
            raise InputError(f"reload_seconds must be more than 0, found {self.reload_seconds}")


def keys_from(environment: Mapping[str, str] = os.environ) -> dict[str, Any]:
    """The keys of an environment; an empty variable counts as none.

    >>> keys_from({"COLBERT_PRF_READ_KEY": "secret"})
    {'read_key': 'secret', 'write_key': None}
    """
    return {"read_key": environment.get(READ_KEY) or None, "write_key": environment.get(WRITE_KEY) or None}
