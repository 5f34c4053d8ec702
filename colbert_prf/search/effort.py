"""How hard a search tries, what it computes with, and how long its stages take."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter

from colbert_prf.kernels.parallel import Workers

__all__ = ["Effort"]


@dataclass(frozen=True)
class Effort:
    """How hard one search tries, and with what.

    Parameters
    ----------
    probes
        Centroids per query vector whose documents are candidates; None for all documents.
    rescore
        Documents scored exactly.
    widen
        Whether to score more documents exactly: those with rare tokens of the query, and those whose approximate score
        leaves open whether they are among the best ten; see :mod:`colbert_prf.search.shortlist`.
    threads, executor
        What to compute with; they do not change the result.
    timings
        Seconds per stage, in the order the stages began.
    """

    probes: int | None
    rescore: int
    threads: int = 1
    executor: Executor | None = None
    timings: dict[str, float] = field(default_factory=dict)
    widen: bool = False

    @property
    def workers(self) -> Workers:
        """What the kernels take."""
        return {"threads": self.threads, "executor": self.executor}

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Add the seconds a block takes to those of a stage."""
        self.timings.setdefault(name, 0.0)
        started = perf_counter()
        try:
            yield
        finally:
            self.timings[name] += perf_counter() - started
