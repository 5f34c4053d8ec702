"""A server's index as if it were here: the method names of :class:`~colbert_prf.Searcher`, over HTTP.

Needs the extra ``[server]``. Answers are the models of :mod:`colbert_prf.server.schemas`.
"""

from __future__ import annotations

from colbert_prf.errors import MissingExtraError

try:
    from colbert_prf.client.asynchronous import AsyncClient
    from colbert_prf.client.blocking import Client
    from colbert_prf.client.calls import SearchOptions
except ImportError as error:
    raise MissingExtraError("The client", extra="server") from error

__all__ = ["AsyncClient", "Client", "SearchOptions"]
