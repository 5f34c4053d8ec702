"""Searching an index whose segments are divided among the processes of a Ray cluster."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np

from colbert_prf.distributed.asking import OutdatedError
from colbert_prf.distributed.candidates import ShardedCandidates
from colbert_prf.distributed.collection import ShardedCollection
from colbert_prf.distributed.index import ShardedIndex
from colbert_prf.distributed.messages import AskedPass
from colbert_prf.distributed.transport import Transport, start_shards
from colbert_prf.encoder import Encoder
from colbert_prf.encoder.ordered import ordered_map
from colbert_prf.errors import InputError, ShardError, require_positive
from colbert_prf.index import Index
from colbert_prf.index.collection import Collection
from colbert_prf.search.arguments import SearchOptions, checked_ids, positive
from colbert_prf.search.budget import Execution
from colbert_prf.search.filters import Filter
from colbert_prf.search.first_pass import FirstPass, PrunedPass
from colbert_prf.search.grouping import expand_to_passages
from colbert_prf.search.scorer import Positions
from colbert_prf.search.searcher import Searcher
from colbert_prf.search.shortlist import rare_tokens
from colbert_prf.types import EncodedQuery, Explanation, Ranking, Shards

__all__ = ["DistributedSearcher"]

Answer = TypeVar("Answer")

MOST_RELOADS = 3
"""How often a search begins again because its generation was removed while a shard was started again."""


class DistributedSearcher(Searcher):
    """Answers queries over an index folder by asking shards, each a process with some of its segments.

    It answers as :class:`~colbert_prf.Searcher` does over the same folder, to the last bit: shards compute what one
    machine computes for each document, and N, document frequencies and all that feedback learns from are the
    collection's. The preset ``paper`` needs one machine.

    Parameters
    ----------
    index
        The folder, on storage that all machines see under this path.
    shards
        Processes that share the segments; one for each segment, and at most one for each CPU of the cluster, if left
        out.
    address
        ``HOST:PORT`` of a Ray cluster, or ``auto`` for the one of this machine; a local cluster, which ends with the
        searcher, if left out.
    partial
        Whether to answer without shards that do not answer. The ranking is then that of the documents of the others,
        and ``ranking.shards`` tells how many answered. Without, a shard that does not answer is a :class:`ShardError`.
    timeout
        Seconds a shard may take for one answer. Ray starts a shard that died again, which takes some seconds.
    cpus
        CPUs that Ray sets aside for a shard, and threads that one query takes there.
    in_flight
        Queries of :meth:`search_many`, and searches of several threads, that a shard works on at once.
    encoder
        The model of the index, for queries given as texts; opened on first use if left out.
    transport
        Reaches the shards some other way than Ray, such as :class:`~colbert_prf.distributed.transport.LocalTransport`;
        the caller closes it.
    options
        ``query_weights``, ``k``, ``feedback``, ``probes``, ``rescore``, ``exact``, ``where``, ``group``, ``threads``:
        as in :class:`~colbert_prf.Searcher`; ``threads`` are those of a shard.

    Raises
    ------
    ClusterError
        If the cluster cannot be reached or has no room.
    InputError
        If there are fewer segments than shards.
    ShardError
        If a shard does not open the index in time.
    """

    index: ShardedIndex  # type: ignore[assignment]

    def __init__(
        self,
        index: str | os.PathLike[str] | Index,
        *,
        shards: int | None = None,
        address: str | None = None,
        partial: bool = False,
        timeout: float = 30.0,
        cpus: float = 1,
        in_flight: int = 8,
        encoder: Encoder | None = None,
        transport: Transport | None = None,
        **options: Any,
    ) -> None:
        if "preset" in options:
            raise InputError("a distributed search has no presets; search the folder with Searcher(index, preset=...)")
        if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not timeout > 0:
            raise InputError(f"timeout must be a number of seconds above 0, found {timeout!r:.80}")
        require_positive(in_flight=in_flight)
        path = index.path if isinstance(index, Index) else Path(index)
        self._own_transport = transport is None
        if transport is None:
            transport = start_shards(path, shards, address=address, cpus=cpus, in_flight=in_flight)
        elif shards is not None and shards != transport.num_shards:
            raise InputError(f"shards is {shards}, the transport has {transport.num_shards}; leave shards out")
        self.transport, self.partial, self.in_flight = transport, partial, in_flight
        self._lost: frozenset[int] = frozenset()
        try:
            sharded = ShardedIndex(path, transport, timeout=timeout, encoder=encoder)
            super().__init__(cast(Index, sharded), **options)
        except BaseException:
            self._close_transport()
            raise

    @property
    def num_shards(self) -> int:
        """How many shards there are."""
        return self.transport.num_shards

    def reload(self) -> None:
        """Search the newest generation from now on; searches under way end in theirs."""
        self.index.reload()

    def close(self) -> None:
        """End the threads, and the shards unless the caller gave them."""
        super().close()
        if self._owns_pool:
            self._close_transport()

    def search(
        self, query: str | EncodedQuery, k: int | None = None, *, partial: bool | None = None, **options: Any
    ) -> Ranking:
        """Find the ``k`` best documents.

        Parameters
        ----------
        query, k, options
            As in :meth:`colbert_prf.Searcher.search`.
        partial
            As :class:`DistributedSearcher` describes it; as the searcher was told if left out.

        Raises
        ------
        ShardError
            If a shard does not answer, unless ``partial``.
        IndexFormatError
            It names a damaged file of a shard.
        """
        options = _read_once(options)
        return self._answered(lambda searcher: Searcher.search(searcher, query, k, **options), partial)

    def search_many(
        self, queries: Iterable[str | EncodedQuery], k: int | None = None, **options: Any
    ) -> Iterator[Ranking]:
        """Answer queries, several of which are on their way to the shards at once.

        Rankings come in the order of the queries and are those of :meth:`search`.

        Parameters
        ----------
        queries
            Texts or encoded queries, of any number.
        k, options
            As in :meth:`search`, for all queries; ``threads`` are queries at once, ``in_flight`` if left out.
        """
        given = options.pop("threads", None)
        threads = self.in_flight if given is None else positive("threads", given)
        options = _read_once(options)
        return ordered_map(lambda query: self.search(query, k, threads=1, **options), queries, threads=threads)

    def explain(self, query: str | EncodedQuery, doc_id: str, k: int | None = None) -> Explanation:
        """As :meth:`colbert_prf.Searcher.explain`; the shard of the document must answer."""
        return self._while_current(lambda searcher: Searcher.explain(searcher, query, doc_id, k), self)

    def _answered(self, search: Callable[[DistributedSearcher], Ranking], partial: bool | None) -> Ranking:
        """Search, with fewer shards if some do not answer and that is allowed."""
        lost: frozenset[int] = frozenset()
        while True:
            searcher = copy.copy(self)
            searcher._lost = lost
            try:
                ranking = self._while_current(search, searcher)
            except ShardError as error:
                lost = self._lost_by(lost, error, self.partial if partial is None else partial)
                continue
            return replace(ranking, shards=Shards(self.num_shards, self.num_shards - len(lost)))

    def _lost_by(self, lost: frozenset[int], error: ShardError, partial: bool) -> frozenset[int]:
        """The shards to leave out from now on; raises the error where there is nothing left to do without them."""
        if not partial or error.shards <= lost:
            raise error
        if not set(self.index.snapshot.asking.shards) - lost - error.shards:
            raise error
        return lost | error.shards

    def _while_current(self, answer: Callable[[DistributedSearcher], Answer], searcher: DistributedSearcher) -> Answer:
        """Answer from one generation; from the newest if that one is removed meanwhile."""
        for _ in range(MOST_RELOADS):
            try:
                return answer(searcher)
            except OutdatedError:  # noqa: PERF203 - the loop is the point
                self.reload()
        raise ShardError(
            f"{self.index.path} changed {MOST_RELOADS} times during a search; search again when its writers rest"
        )

    def _collection(self) -> Collection:
        return self.index.snapshot.without(self._lost)

    def _beginning(
        self,
        collection: Collection,
        query: EncodedQuery,
        options: SearchOptions,
        allowed: Iterable[str] | None,
        execution: Execution,
    ) -> Callable[[int, int], FirstPass]:
        assert isinstance(collection, ShardedCollection)
        if isinstance(options.where, Filter):
            collection.check_fields(options.where)
        positions = _allowed_positions(collection, allowed)
        scorer = collection.scorer_of(query, options.threads)

        def begin(k: int, early: int) -> FirstPass:
            budget = options.budget(k, collection.manifest.num_vectors, collection.num_positions)
            rare = rare_tokens(query, collection.document_frequencies, collection.num_positions)
            asked = AskedPass(scorer.query, k, budget, rare if budget.widen else None, None, options.where)
            if positions is None:
                passes = dict.fromkeys(collection.asking.shards, asked)
            else:
                passes = {
                    shard: asked._replace(allowed=local) for shard, local in collection.asking.split(positions).items()
                }
            return PrunedPass(ShardedCandidates(collection.asking, passes, scorer), k, budget, execution, early)

        return begin

    def _close_transport(self) -> None:
        if self._own_transport:
            self.transport.close()


def _allowed_positions(collection: ShardedCollection, allowed: Iterable[str] | None) -> Positions | None:
    """The positions that may be found, ascending; None for all."""
    if allowed is None:
        return None
    ids = checked_ids("allowed", allowed)
    ids = ids if collection.passages is None else expand_to_passages(collection, ids)
    return np.unique(collection.positions(ids))


def _read_once(options: dict[str, Any]) -> dict[str, Any]:
    """Options of which none is used up by a search that may have to begin again."""
    for name in ("allowed", "relevant", "non_relevant", "feedback_texts"):
        value = options.get(name)
        if isinstance(value, Iterable) and not isinstance(value, Sequence):
            options = {**options, name: tuple(value)}
    return options
