"""A shard: some segments of an index, open in one process, and what it answers about them.

It runs the same candidates, kernels and scorers over its segments as a searcher on one machine. What depends on the
whole collection comes with the question.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt

from colbert_prf.baselines.lexical.index import FOLDER
from colbert_prf.baselines.lexical.manifest import LexicalManifest
from colbert_prf.baselines.lexical.snapshot import LexicalSnapshot
from colbert_prf.distributed.lexical_shard import OpenLexicalShard
from colbert_prf.distributed.messages import (
    AskedPass,
    AskedQuery,
    Best,
    GenerationKey,
    More,
    NotOpen,
    Refusal,
    writable,
)
from colbert_prf.distributed.recent import Recent
from colbert_prf.errors import ClusterError, ColbertPrfError
from colbert_prf.index.collection import DocumentVectors, NearTokens
from colbert_prf.index.manifest import Manifest
from colbert_prf.index.snapshot import Snapshot
from colbert_prf.kernels import topk
from colbert_prf.kernels.workers import Workers
from colbert_prf.search.budget import Execution
from colbert_prf.search.candidates import StoredCandidates, find_candidates
from colbert_prf.search.filters import Filter, unchecked_mask
from colbert_prf.search.scorer import Mask, Positions, Scores, StoredScorer
from colbert_prf.search.shortlist import heaviest
from colbert_prf.storage.layout import IndexLayout
from colbert_prf.types import EncodedQuery, Vectors
from colbert_prf.version import __version__

__all__ = ["OpenShard", "Shard"]

RECENT_QUERIES = 32
"""Queries whose candidates a shard keeps, four bytes a document each; those of an older one are computed again."""
OPEN_GENERATIONS = 2
"""A search that began in the generation before ends in it."""


class OpenShard:
    """One generation of a shard; positions count from 0 in the shard.

    Parameters
    ----------
    snapshot
        The generation, with the segments of the shard alone.
    workers
        What to compute with.
    """

    def __init__(self, snapshot: Snapshot, workers: Workers) -> None:
        self._snapshot = snapshot
        self._workers = workers
        self._scorers: Recent[StoredScorer] = Recent(2 * RECENT_QUERIES)
        self._candidates: Recent[StoredCandidates] = Recent(RECENT_QUERIES)

    def best(self, asked: AskedPass, count: int, ahead: int) -> Best:
        """The best ``count`` candidates by approximate scores, and those with the rarest tokens.

        The first ``ahead`` of each are scored exactly as well.
        """
        candidates = self._candidates_of(asked)
        found, rare, rarities = candidates.best(count), candidates.with_rare_tokens(), candidates.rarities
        exact = np.full(len(found.positions), np.nan, np.float32)
        exact_rare = np.full(len(rare.positions), np.nan, np.float32)
        for documents, values, rows in (
            (found, exact, topk.best(found.scores, ahead)),
            (rare, exact_rare, heaviest(rarities, rare.scores, ahead)),
        ):
            values[rows] = candidates.scorer.scores(documents.positions[rows])
        bound = float(found.scores.min()) if len(found.scores) >= count else float("-inf")
        return Best(found, exact, rare, rarities, exact_rare, bound)

    def at_least(
        self, asked: AskedPass, score: float, besides: Positions, most: int | None, added: AskedQuery | None
    ) -> More:
        """Candidates of at least an approximate score, except some; with ``added``, those of that query as well."""
        candidates = self._candidates_of(asked)
        if added is None:
            documents = candidates.at_least(score, besides=besides, most=most)
            return More(documents, candidates.scorer.scores(documents.positions))
        scorer = self._scorer_of(added)
        documents = candidates.extended(scorer).at_least(score, besides=besides, most=most)
        return More(documents, scorer.estimates(documents.positions))

    def scores(self, asked: AskedQuery, positions: Positions) -> Scores:
        """Exact scores of some documents."""
        return self._scorer_of(asked).scores(positions)

    def estimates(self, asked: AskedQuery, positions: Positions) -> Scores:
        """Approximate scores of some documents."""
        return self._scorer_of(asked).estimates(positions)

    def vectors_of(self, positions: Positions) -> DocumentVectors:
        """The vectors and tokens of some documents, in any order."""
        return self._snapshot.vectors_of(positions)

    def nearest_tokens(self, vectors: Vectors, count: int) -> NearTokens:
        """F_t(υ, r) in this shard."""
        return self._snapshot.nearest_tokens(vectors, count)

    def similarities(self, position: int, query: EncodedQuery) -> Vectors:
        """A document's vectors times those of a query."""
        return self._snapshot.similarities(position, query)

    def score(self, query: EncodedQuery) -> Scores:
        """Exact scores of all positions on decoded vectors."""
        return self._snapshot.score(query)

    def frequencies(self, name: str) -> npt.NDArray[np.int64]:
        """``collection_frequencies`` or ``centroid_frequencies`` of this shard."""
        frequencies: npt.NDArray[np.int64] = getattr(self._snapshot, name)
        return frequencies

    def field_kinds(self) -> list[dict[str, frozenset[int]]]:
        """The kinds of values that the fields of metadata have, by segment."""
        return [fields.kinds for fields in self._snapshot.fields]

    def _workers_of(self, asked: AskedQuery) -> Workers:
        threads = self._workers["threads"]
        return {**self._workers, "threads": min(threads, asked.threads or threads)}

    def _scorer_of(self, asked: AskedQuery) -> StoredScorer:
        return self._scorers.get(asked.key, lambda: StoredScorer(self._snapshot, asked.query, self._workers_of(asked)))

    def _candidates_of(self, asked: AskedPass) -> StoredCandidates:
        # One query has several first passes where documents are grouped: each wants more of them.
        return self._candidates.get((asked.asked.key, asked.k), lambda: self._found(asked))

    def _found(self, asked: AskedPass) -> StoredCandidates:
        found = find_candidates(
            self._snapshot,
            asked.asked.query,
            asked.k,
            asked.budget,
            Execution(self._workers_of(asked.asked)),
            allowed=self._mask(asked),
            rare=asked.rare,
        )
        self._scorers.get(asked.asked.key, lambda: found.stored)
        return found

    def _mask(self, asked: AskedPass) -> Mask:
        """Which documents the pass may find, as :func:`~colbert_prf.search.allowed.allowed_mask` tells."""
        if asked.allowed is None and asked.where is None:
            return None
        mask = self._snapshot.live.copy()
        if asked.allowed is not None:
            allowed = np.zeros(len(mask), np.bool_)
            allowed[asked.allowed] = True
            mask &= allowed
        if isinstance(asked.where, Filter):
            mask &= unchecked_mask(asked.where, self._snapshot.fields)
        elif asked.where is not None:
            for position in np.flatnonzero(mask).tolist():
                mask[position] = asked.where(self._snapshot.metadata(position))
        return mask


class Shard:
    """The process of a shard: opens the generations it is told to, and answers questions about them.

    Parameters
    ----------
    folder
        The index.
    threads
        What one answer may take at most.
    """

    def __init__(self, folder: str, threads: int = 1) -> None:
        self._layout = IndexLayout(Path(folder))
        self._workers: Workers = {"threads": threads, "executor": ThreadPoolExecutor(max(1, threads - 1))}
        self._open: dict[GenerationKey, OpenShard | OpenLexicalShard] = {}
        self._lock = Lock()

    def open(self, key: GenerationKey, part: Manifest | LexicalManifest, version: str) -> Refusal | None:
        """Open a generation, if it is not open: ``part`` names the segments of this shard."""
        try:
            self._check_version(version)
            with self._lock:
                if key not in self._open:
                    opened = self._open[key] = self._opened(part)
                    alike = [other for other, there in self._open.items() if type(there) is type(opened)]
                    for outdated in alike[:-OPEN_GENERATIONS]:
                        del self._open[outdated]
        except ColbertPrfError as error:
            return Refusal(error)
        return None

    def answer(self, key: GenerationKey, method: str, arguments: tuple[Any, ...]) -> Any:
        """What a method of the open generation returns; :class:`Refusal` or :class:`NotOpen` instead of an error."""
        with self._lock:
            opened = self._open.get(key)
        if opened is None:
            return NotOpen()
        try:
            return getattr(opened, method)(*writable(arguments))
        except ColbertPrfError as error:
            return Refusal(error)

    def _opened(self, part: Manifest | LexicalManifest) -> OpenShard | OpenLexicalShard:
        if isinstance(part, LexicalManifest):
            return OpenLexicalShard(LexicalSnapshot(IndexLayout(self._layout.path / FOLDER), part))
        return OpenShard(Snapshot(self._layout, part), self._workers)

    def _check_version(self, version: str) -> None:
        if version != __version__:
            raise ClusterError(
                f"the shard has colbert-prf {__version__}, the searcher {version}; install one version on all machines"
            )
