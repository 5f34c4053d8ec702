"""Searchers for a server: one for each generation of an index, over the same shards."""

from __future__ import annotations

from pathlib import Path

from colbert_prf.distributed.searcher import DistributedSearcher
from colbert_prf.distributed.transport import Transport, start_shards
from colbert_prf.encoder import Encoder

__all__ = ["ShardedGenerations"]


class ShardedGenerations:
    """Opens an index folder in shards of the cluster that this process is connected to, and later generations in them.

    Parameters
    ----------
    shards, partial, in_flight
        As in :class:`DistributedSearcher`.
    transport
        Reaches shards that are there; Ray starts them at the first call if left out.
    """

    def __init__(
        self,
        *,
        shards: int | None = None,
        partial: bool = False,
        in_flight: int = 8,
        transport: Transport | None = None,
    ) -> None:
        self._shards, self._partial, self._in_flight = shards, partial, in_flight
        self._transport, self._owns = transport, transport is None

    def __call__(self, path: Path, encoder: Encoder | None) -> DistributedSearcher:
        """Open the newest generation; ``encoder`` is the model of the index."""
        if self._transport is None:
            self._transport = start_shards(path, self._shards, in_flight=self._in_flight)
        return DistributedSearcher(path, transport=self._transport, partial=self._partial, encoder=encoder, threads=1)

    def close(self) -> None:
        """End the shards, unless they were given."""
        if self._owns and self._transport is not None:
            self._transport.close()
            self._transport = None
