"""The Ray cluster that work is handed to: reached in bounded time, and refused unless all of it is alike.

Ray runs whatever its ports are sent, and it listens on all interfaces. A local cluster takes orders only from those who
have Ray's token, which is Ray's default; a cluster of many machines needs the same setting and a closed network.
"""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from colbert_prf.encoder.base import available_cores
from colbert_prf.errors import ClusterError, InputError, MissingExtraError, require_positive
from colbert_prf.version import __version__

__all__ = ["LOCAL_OBJECT_STORE_BYTES", "WorkerCheck", "connected", "require_ray", "shared_folder"]

CONNECT_SECONDS = 10.0
"""The longest wait for the address of a cluster; Ray itself would wait for minutes."""
DEFAULT_PORT = 6379
"""The port of a cluster whose address has none, as in ``ray start``."""
LOCAL_OBJECT_STORE_BYTES = 256 << 20
"""The memory of a local cluster for texts between reading and encoding."""
START_ADVICE = "start it with `ray start --head --port=6379`, and check the address, the port and the firewall"
TOKEN_ADVICE = "a cluster that asks for a token answers only those who have it and RAY_AUTH_MODE=token"


def require_ray(purpose: str) -> Any:
    """Import Ray, with its usage reports off.

    Raises
    ------
    MissingExtraError
        If Ray is not installed.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
    except ImportError as error:
        raise MissingExtraError(purpose, extra="ray") from error
    return ray


@contextmanager
def connected(address: str | None = None, *, cpus: int | None = None) -> Iterator[Any]:
    """Connect to a Ray cluster for as long as the block runs, and yield Ray.

    A process that is connected already stays so: the block uses its cluster, whatever the address, and leaves it as it
    is.

    Parameters
    ----------
    address
        ``HOST:PORT`` of a cluster that this machine is part of, or ``auto`` for the one that runs on this machine. A
        local cluster, which ends with the block, if left out.
    cpus
        The CPUs of a local cluster; those of the machine if left out.

    Raises
    ------
    ClusterError
        If nothing answers at the address within ten seconds, or what answers is no Ray cluster.
    MissingExtraError
        If Ray is not installed.
    """
    ray = require_ray("Working on a Ray cluster")
    if ray.is_initialized():
        yield ray
        return
    require_positive(cpus=cpus)
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    if address is None:
        options = {
            "address": "local",
            "num_cpus": cpus or available_cores(),
            "include_dashboard": False,
            "object_store_memory": LOCAL_OBJECT_STORE_BYTES,
            **quiet,
        }
    else:
        options = {"address": _reachable(address), **quiet}
    try:
        ray.init(**options)
    except (ConnectionError, RuntimeError, TimeoutError, ValueError, ray.exceptions.RayError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        advice = f"{START_ADVICE}; {TOKEN_ADVICE}" if address else "look at its logs, /tmp/ray/session_latest/logs"
        raise ClusterError(f"Ray cannot connect to {address or 'a local cluster'}: {reason}; {advice}") from error
    try:
        yield ray
    finally:
        ray.shutdown()


def _reachable(address: str) -> str:
    """Return an address at which something listens, with its port."""
    if address == "auto":
        return address
    if "://" in address:
        raise InputError(
            f"a Ray address is HOST:PORT, found {address!r:.80}; run the command on a machine of the cluster, or send "
            "it there with `ray job submit`"
        )
    host, _, port = address.partition(":")
    if not host or not (port or str(DEFAULT_PORT)).isdigit():
        raise InputError(f"a Ray address is HOST:PORT, such as 10.0.0.1:{DEFAULT_PORT}, found {address!r:.80}")
    try:
        socket.create_connection((host, int(port or DEFAULT_PORT)), timeout=CONNECT_SECONDS).close()
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ClusterError(f"no Ray cluster answers at {address} ({reason}); {START_ADVICE}") from error
    return f"{host}:{port or DEFAULT_PORT}"


@dataclass(frozen=True)
class WorkerCheck:
    """What every worker compares itself with before it works; make one with :func:`shared_folder`.

    Parameters
    ----------
    version
        The version of this package on the driver.
    token
        The path of a file in the shared folder.
    content
        What the file holds.
    """

    version: str
    token: str
    content: str

    def run(self) -> None:
        """Refuse a worker that differs from the driver; call this on the worker.

        Raises
        ------
        ClusterError
            If the worker has another version of this package, or does not see the driver's folder.
        """
        host = socket.gethostname()
        if self.version != __version__:
            raise ClusterError(
                f"the worker {host} has colbert-prf {__version__}, the driver {self.version}; install one version on "
                "all machines"
            )
        token = Path(self.token)
        content = None
        with suppress(OSError):
            content = token.read_text(encoding="utf-8")
        if content != self.content:
            found = "does not see" if content is None else "sees another file at"
            raise ClusterError(
                f"the worker {host} {found} {token}, which the driver has just written; give a folder on storage that "
                "all machines mount under one path"
            )


@contextmanager
def shared_folder(folder: Path) -> Iterator[WorkerCheck]:
    """Write a token into a folder, and yield the check by which a worker tells whether it sees the same folder.

    Parameters
    ----------
    folder
        A folder that exists and may be written to. The token is removed when the block ends.
    """
    token = folder.resolve() / f"driver-{uuid4().hex}.token"
    content = uuid4().hex
    token.write_text(content, encoding="utf-8")
    try:
        yield WorkerCheck(__version__, str(token), content)
    finally:
        token.unlink(missing_ok=True)
