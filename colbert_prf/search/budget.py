"""How many documents a search looks at, and what it computes with."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter

from colbert_prf.kernels.workers import ALONE, Workers
from colbert_prf.types import Expansion

__all__ = ["Budget", "Execution", "default_keep", "default_probes", "default_rescore"]

PROBE_EVERYTHING = 10_000_000
"""Up to this many vectors every document gets an approximate score: that takes a nanosecond a vector."""


@dataclass(frozen=True)
class Budget:
    """How many documents a search looks at: more find more, and take longer.

    Parameters
    ----------
    probes
        Centroids per query vector whose documents are candidates; None for all documents.
    rescore
        Documents scored exactly, at least.
    widen
        Whether to score more documents exactly: those with rare tokens of the query, and those whose approximate score
        leaves open whether they are among the best ten; see :mod:`colbert_prf.search.shortlist`.
    """

    probes: int | None
    rescore: int
    widen: bool = False


@dataclass(frozen=True)
class Execution:
    """What a search computes with, and how long its stages take; neither changes the result.

    Parameters
    ----------
    workers
        The threads.
    timings
        Seconds per stage, in the order the stages began.
    """

    workers: Workers = field(default_factory=lambda: ALONE)
    timings: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Add the seconds a block takes to those of a stage."""
        self.timings.setdefault(name, 0.0)
        started = perf_counter()
        try:
            yield
        finally:
            self.timings[name] += perf_counter() - started


def default_rescore(k: int) -> int:
    """Documents to score exactly at least for ``k`` results; an ordinary question needs few more.

    >>> [default_rescore(k) for k in (1, 10, 100, 1000)]
    [200, 200, 500, 2300]
    """
    return max(200, min(5 * k, 2 * k + 300))


def default_probes(k: int, num_vectors: int) -> int | None:
    """Centroids to probe per query vector; None, all documents, for an index of up to ten million vectors.

    >>> default_probes(1000, 3_000_000), default_probes(10, 30_000_000), default_probes(1000, 30_000_000)
    (None, 2, 16)
    """
    if num_vectors <= PROBE_EVERYTHING:
        return None
    return 2 if k <= 10 else 4 if k <= 100 else 16


def default_keep(k: int, expansion: Expansion) -> int:
    """Documents a second pass scores exactly with the expanded query for ``k`` results.

    It chooses them by scores of which only the part of the added vectors is approximate: the more of the query's weight
    these have, the more documents. With so many it finds the best 1,000 as well as the first pass does, see
    ``docs/notes/feedback.md``.

    >>> import numpy as np
    >>> from colbert_prf.types import EncodedQuery, ExpansionVector
    >>> query = EncodedQuery(np.array([7, 9], np.int32), np.eye(2, dtype=np.float32), np.array([10, 1], np.float32))
    >>> default_keep(1000, Expansion(query, (ExpansionVector(9, ((9, 1.0),), 5.1, 1.0),)))
    1090
    """
    return k + max(90, round(2.5 * expansion.share**2 * k))
