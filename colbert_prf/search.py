"""From a query to a ranking."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np
import numpy.typing as npt

from colbert_prf.encoder import Encoder
from colbert_prf.encoder.base import available_cores
from colbert_prf.engine import Effort, Found, default_probes, default_rescore, find
from colbert_prf.errors import InputError
from colbert_prf.explain import explain_hit
from colbert_prf.index import Index, MemoryIndex
from colbert_prf.types import EncodedQuery, Explanation, Hit, Ranking

__all__ = ["Searcher"]

Predicate = Callable[[Mapping[str, Any]], bool]


class Searcher:
    """Answers queries over an index; a search never changes the next one, and many threads may search at once.

    Parameters
    ----------
    index
        What to search: an index on disk, or one in memory, which is scored exactly.
    threads
        Threads per search unless the search says otherwise; as many as there are cores if left out.

    Examples
    --------
    >>> index = MemoryIndex.create([("a", "Goldfish grow all their life."), ("b", "Bank rates fell.")])
    >>> Searcher(index).search("do fish grow", k=1).doc_ids
    ['a']
    """

    def __init__(self, index: Index | MemoryIndex, *, threads: int | None = None) -> None:
        self.index = index
        self.threads = _positive("threads", threads) or available_cores()
        self._pool = ThreadPoolExecutor(max(1, available_cores()), thread_name_prefix="colbert-prf")

    def search(
        self,
        query: str | EncodedQuery,
        k: int = 10,
        *,
        probes: int | None = None,
        rescore: int | None = None,
        threads: int | None = None,
        allowed: Iterable[str] | None = None,
        where: Predicate | None = None,
    ) -> Ranking:
        """Find the ``k`` best documents.

        Parameters
        ----------
        query
            A text, encoded with the index's own model; or an encoded query with any weights.
        k
            How many; fewer come back only if fewer exist.
        probes
            Centroids per query vector whose documents are looked at; by default all documents of an index of up to ten
            million vectors, then 2, 4 or 16 for k up to 10, 100 or more.
        rescore
            Documents scored exactly; by default 200, 500 or 3,200 for k of 10, 100 or 1,000.
        threads
            For this search.
        allowed
            Ids of the documents that may be found.
        where
            A test of a document's metadata: only documents that pass may be found. It is called for every document, so
            prefer ``allowed`` where the same filter serves many queries.

        Raises
        ------
        InputError
            If a number is not positive, an id of ``allowed`` is unknown, or the query's vectors are of another dim.
        """
        k, timings = _positive("k", k) or 1, dict[str, float]()
        started = perf_counter()
        if isinstance(query, str):
            query = self.encoder.encode_query(query)
            timings["encode"] = perf_counter() - started
        if query.dim != self.index.dim:
            raise InputError(f"the query has vectors of dim {query.dim}, the index of dim {self.index.dim}")
        probes, rescore = _positive("probes", probes), _positive("rescore", rescore)
        effort = Effort(
            probes=probes or default_probes(k, self.index.num_vectors),
            rescore=rescore or default_rescore(k),
            threads=_positive("threads", threads) or self.threads,
            executor=self._pool,
            timings=timings,
        )
        return self._ranking(query, k, effort, allowed, where)

    def explain(self, query: str | EncodedQuery, doc_id: str) -> Explanation:
        """Tell which token of a document each query vector matched, and what that gave to its score."""
        return explain_hit(self.index, self.encoder.encode_query(query) if isinstance(query, str) else query, doc_id)

    def _ranking(
        self, query: EncodedQuery, k: int, effort: Effort, allowed: Iterable[str] | None, where: Predicate | None
    ) -> Ranking:
        # One generation for the whole search, whatever writers do meanwhile.
        source = self.index if isinstance(self.index, MemoryIndex) else self.index.snapshot
        mask = None
        if allowed is not None or where is not None:
            with effort.stage("filter"):
                mask = _mask(source, allowed, where)
        if isinstance(source, MemoryIndex):
            with effort.stage("score"):
                found = _best(source.score(query), k, mask)
        else:
            found = find(source, query, k, effort, allowed=mask)
        with effort.stage("hits"):
            doc_ids, positions = source.doc_ids_of(found.positions), found.positions.tolist()
            hits = tuple(
                Hit(doc_id, score, partial(source.text, position))
                for doc_id, score, position in zip(doc_ids, found.scores.tolist(), positions, strict=True)
            )
        return Ranking(query, hits, effort.timings)

    @property
    def encoder(self) -> Encoder:
        """The model of the index, which encodes queries given as texts."""
        if (encoder := self.index.encoder) is None:
            raise InputError("the index has no encoder; give an EncodedQuery, or an encoder when creating the index")
        return encoder


def _positive(name: str, value: int | None) -> int | None:
    if value is not None and value < 1:
        raise InputError(f"{name} must be at least 1, found {value}")
    return value


def _best(scores: npt.NDArray[np.float32], k: int, mask: npt.NDArray[np.bool_] | None) -> Found:
    """The k best finite scores, best first, equal scores by position."""
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    order = np.argsort(-scores, kind="stable")[:k]
    order = order[np.isfinite(scores[order])]
    return Found(order, scores[order])


def _mask(source: Any, allowed: Iterable[str] | None, where: Predicate | None) -> npt.NDArray[np.bool_]:
    """Whether each position may be found."""
    mask = np.zeros(source.num_positions, dtype=np.bool_)
    mask[source.positions(allowed) if allowed is not None else slice(None)] = True
    if where is not None:
        for position in np.flatnonzero(mask).tolist():
            mask[position] = where(source.metadata(position))
    return mask
