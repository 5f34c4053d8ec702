"""``colbert-prf serve``: indexes over HTTP, and the page that shows what feedback does."""

from __future__ import annotations

import logging
import re
import signal
import socket
import sys
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from colbert_prf.cli.cluster import LOCAL
from colbert_prf.errors import InputError, MissingExtraError, StorageError
from colbert_prf.storage.layout import IndexLayout

if TYPE_CHECKING:
    from colbert_prf.server.indexes import ServedIndex
    from colbert_prf.server.settings import ServerSettings

__all__ = ["serve", "served_index"]

_NAME = re.compile(r"[\w.-]+")
SWITCH_SECONDS = 0.0005
"""How long a thread may keep the interpreter while another waits: a tenth of Python's own, for short requests."""


@click.command(short_help="Serve indexes over HTTP, with a page.")
@click.argument("indexes", nargs=-1, metavar="[INDEX | NAME=INDEX]...")
@click.option("--demo", is_flag=True, help="Serve the documentation of Python's library, indexing it if needed.")
@click.option("--host", default="127.0.0.1", show_default=True, help="0.0.0.0 for every network of this machine.")
@click.option("--port", default=8000, show_default=True, type=click.IntRange(0, 65535), help="0: any that is free.")
@click.option("--workers", type=click.IntRange(min=1), help="Searches at once. Default: one per core.")
@click.option(
    "--waiting", default=16, show_default=True, type=click.IntRange(min=0), help="Searches that may wait; more get 503."
)
@click.option("--max-k", default=1000, show_default=True, type=click.IntRange(min=1), help="Hits a request may want.")
@click.option("--max-queries", default=64, show_default=True, type=click.IntRange(min=1), help="Queries in a request.")
@click.option(
    "--ray",
    metavar="[HOST:PORT]",
    is_flag=False,
    flag_value=LOCAL,
    help="Search by the shards of a Ray cluster: of the one at this address, of the one on this machine (auto), or of "
    "a local one, which ends with the server.",
)
@click.option("--shards", type=click.IntRange(min=1), help="With --ray: processes that share the segments of an INDEX.")
@click.option("--partial", is_flag=True, help="With --ray: answer without shards that do not answer, and say so.")
@click.option("--log-queries", is_flag=True, help="Write the texts of queries to the access log.")
@click.option("--quiet", is_flag=True, help="No access log.")
def serve(
    indexes: tuple[str, ...],
    demo: bool,
    host: str,
    port: int,
    quiet: bool,
    ray: str | None,
    shards: int | None,
    partial: bool,
    **options: Any,
) -> None:
    """Serve indexes over HTTP: a page at /, an API under /v1, its documentation at /docs.

    Each INDEX is a folder made by `colbert-prf index`, known by the folder's name without .index, or by NAME. A change
    that another process makes is seen within a second. Ends on Ctrl-C or SIGTERM, after what runs.

    COLBERT_PRF_READ_KEY in the environment closes the service to readers without that key; COLBERT_PRF_WRITE_KEY opens
    it to writers with that one. Needs the extra [server].

    \b
    Examples:
      colbert-prf serve --demo
      colbert-prf serve my.index
      colbert-prf serve /shared/my.index --ray 10.0.0.1:6379
      COLBERT_PRF_WRITE_KEY=secret colbert-prf serve news=/data/news.index wiki=/data/wiki.index --port 9000
    """
    try:
        import uvicorn

        from colbert_prf.server.app import create_app
        from colbert_prf.server.indexes import Indexes
    except ImportError as error:
        raise MissingExtraError("Serving an index", extra="server") from error
    if not indexes and not demo:
        raise click.UsageError("give an index, or --demo.")
    if ray is None and (shards is not None or partial):
        raise click.UsageError(f"{'--shards' if shards is not None else '--partial'} needs --ray.")
    cluster = None if ray is None else {"shards": shards, "partial": partial}
    served = [served_index(each, cluster) for each in indexes]
    if demo:
        served.insert(0, _demo())
    app = create_app(Indexes(served), _settings(**options))
    _log_to_standard_error(quiet)
    sys.setswitchinterval(SWITCH_SECONDS)
    # Ray takes the signals for itself when it connects: uvicorn must come after it.
    with nullcontext() if ray is None else _cluster(None if ray == LOCAL else ray):
        listening = _listening(host, port)
        address = f"[{host}]" if ":" in host else host
        click.echo(f"http://{address}:{listening.getsockname()[1]}")
        sys.stdout.flush()
        config = uvicorn.Config(app, log_config=None, access_log=False, timeout_keep_alive=30, server_header=False)
        # uvicorn ends in order and then raises the signal again, for whom this is the end as well.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        uvicorn.Server(config).run(sockets=[listening])


def _cluster(address: str | None) -> AbstractContextManager[Any]:
    """A connection to a Ray cluster, for as long as the server runs."""
    from colbert_prf.distributed.cluster import connected

    return connected(address)


def _settings(*, max_k: int, max_queries: int, **options: Any) -> ServerSettings:
    from colbert_prf.server.settings import ServerSettings, keys_from

    given = {name: value for name, value in options.items() if value is not None}
    settings = ServerSettings(**given, **keys_from())
    return replace(settings, limits=settings.limits.model_copy(update={"k": max_k, "queries": max_queries}))


def served_index(argument: str, cluster: Mapping[str, Any] | None = None) -> ServedIndex:
    """An index as it is given to a server: a folder, or NAME=folder; ``cluster`` tells who searches it."""
    from colbert_prf.server.indexes import ServedIndex

    name, equals, path = argument.partition("=")
    if not equals or Path(argument).exists():
        name, path = Path(argument).resolve().name.removesuffix(".index"), argument
    if not _NAME.fullmatch(name):
        raise InputError(f"an index is named with letters, digits, '_', '.' and '-', found {name!r}; write NAME=INDEX")
    if not IndexLayout.at(path).manifest.is_file():
        raise StorageError("no index folder; make one with `colbert-prf index`", path=path)
    if cluster is None:
        return ServedIndex(name, path)
    from colbert_prf.distributed.serving import ShardedGenerations

    return ServedIndex(name, path, open_searcher=ShardedGenerations(**cluster))


def _demo() -> ServedIndex:
    from colbert_prf.demo import QUESTIONS, demo_index
    from colbert_prf.encoder import Encoder
    from colbert_prf.server.indexes import ServedIndex

    index = demo_index(Encoder.load())
    return ServedIndex("demo", index.snapshot.layout.path, examples=QUESTIONS)


def _listening(host: str, port: int) -> socket.socket:
    """A socket that listens, so that its port is known before the server starts."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        listening = socket.socket(family)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen()
    except OSError as error:
        raise InputError(
            f"cannot listen on {host}:{port} ({error.strerror}); choose another --host or --port"
        ) from None
    return listening


def _log_to_standard_error(quiet: bool) -> None:
    """The access log as it is, one JSON object a line; everything else with its level."""
    plain, named = logging.StreamHandler(), logging.StreamHandler()
    named.setFormatter(logging.Formatter("%(levelname)s %(name)s: %(message)s"))
    access = logging.getLogger("colbert_prf.server.access")
    access.propagate, access.handlers = False, [plain]
    access.setLevel(logging.WARNING if quiet else logging.INFO)
    for name in ("colbert_prf.server", "uvicorn"):
        logger = logging.getLogger(name)
        logger.handlers = [named]
        logger.setLevel(logging.WARNING if name == "uvicorn" else logging.INFO)
