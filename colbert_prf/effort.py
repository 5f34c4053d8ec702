"""How hard a search tries, what it computes with, and how long its stages take."""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import dataclass, field
from time import perf_counter

from colbert_prf.kernels.parallel import Workers

__all__ = ["Effort", "Stage"]


@dataclass(frozen=True)
class Effort:
    """How hard one search tries, and with what.

    Parameters
    ----------
    probes
        Centroids per query vector whose documents are candidates; None for all documents.
    rescore
        Documents scored exactly.
    threads, executor
        What to compute with; they do not change the result.
    timings
        Seconds per stage, filled in as the stages end.
    """

    probes: int | None
    rescore: int
    threads: int = 1
    executor: Executor | None = None
    timings: dict[str, float] = field(default_factory=dict)

    @property
    def workers(self) -> Workers:
        """What the kernels take."""
        return {"threads": self.threads, "executor": self.executor}

    def stage(self, name: str, *, within: str | None = None) -> Stage:
        """Measure a stage, as a context; what it takes does not count for the one it is within."""
        return Stage(self.timings, name, within)


class Stage:
    """Adds the seconds a block takes to the timings of a search. A generator would take longer than small stages do."""

    __slots__ = ("name", "started", "timings", "within")

    def __init__(self, timings: dict[str, float], name: str, within: str | None) -> None:
        self.timings = timings
        self.name = name
        self.within = within

    def __enter__(self) -> None:
        self.timings.setdefault(self.name, 0.0)  # stages stand in the order they began in
        self.started = perf_counter()

    def __exit__(self, *_: object) -> None:
        taken = perf_counter() - self.started
        self.timings[self.name] += taken
        if self.within is not None:
            self.timings[self.within] -= taken
