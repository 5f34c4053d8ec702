"""Run a kernel on several threads: over ranges, or from a work queue.

Kernels release the interpreter lock. They take a range ``(start, stop)``, or take items themselves from a counter. They
do not use ``prange``: numba's default threading layer ('workqueue') aborts the process when two Python threads enter it
at once. Each item writes its own part of the result, so the result does not depend on the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from typing import Any, TypedDict

__all__ = ["ALONE", "WorkQueue", "Workers", "run"]


class Workers(TypedDict):
    """The threads a function may compute with; they do not change its result."""

    threads: int
    executor: Executor | None


ALONE: Workers = {"threads": 1, "executor": None}
"""The calling thread."""


def run(
    kernel: Callable[[int, int], object],
    num_items: int,
    *,
    threads: int = 1,
    executor: Executor | None = None,
    shortest: int = 2,
    ranges: int = 4,
) -> None:
    """Call ``kernel(start, stop)`` on consecutive ranges that cover ``range(num_items)``.

    Parameters
    ----------
    kernel : callable
        A function of a half-open range that releases the interpreter lock.
    num_items : int
        Length of the whole range.
    threads : int
        How many threads work at once; the calling thread is one of them.
    executor : concurrent.futures.Executor, optional
        Where the other ``threads - 1`` run; without it, the calling thread does everything.
    shortest : int
        With fewer items a thread, the calling thread does everything: waking another would take longer.
    ranges : int
        Ranges per thread, taken in turn: with several, one slow core does not hold up the rest.

    Examples
    --------
    >>> seen = []
    >>> run(lambda start, stop: seen.append((start, stop)), 5)
    >>> seen
    [(0, 5)]
    """
    if executor is None or threads <= 1 or num_items < shortest * threads:
        kernel(0, num_items)
        return
    num_ranges = min(ranges * threads, num_items)
    bounds = [num_items * part // num_ranges for part in range(num_ranges + 1)]
    parts = iter(range(num_ranges))  # next() on a range iterator is atomic under the GIL

    def work() -> None:
        for part in parts:
            kernel(bounds[part], bounds[part + 1])

    others = [executor.submit(work) for _ in range(threads - 1)]
    work()
    _wait_for(others)


class WorkQueue:
    """Work that other threads have begun; the calling thread joins in when it wants the result.

    Each thread calls every kernel in turn, and a kernel takes items from a counter of its own
    (:func:`~.simd.memory.take`) until none is left. No thread returns to the interpreter between two items, so none
    waits for another thread that holds the interpreter lock.

    Parameters
    ----------
    kernels : sequence of callables
        Without arguments; each releases the interpreter lock.
    threads : int
        The calling thread is one of them.
    executor : concurrent.futures.Executor, optional
        Where the other ``threads - 1`` begin at once; without it, :meth:`finish` does everything.

    Examples
    --------
    >>> queue = WorkQueue([lambda: print("scoring")])
    >>> print("learning meanwhile")
    learning meanwhile
    >>> queue.finish()
    scoring
    """

    def __init__(
        self, kernels: Sequence[Callable[[], object]], *, threads: int = 1, executor: Executor | None = None
    ) -> None:
        self._kernels = kernels
        self._others = [executor.submit(self._work) for _ in range(threads - 1)] if executor is not None else []

    def _work(self) -> None:
        for kernel in self._kernels:
            kernel()

    def finish(self) -> None:
        """Work until everything is done, and wait for the other threads."""
        try:
            self._work()
        finally:
            _wait_for(self._others)


def _wait_for(futures: Sequence[Future[Any]]) -> None:
    for future in futures:
        # A thread that has not begun has nothing left to do; waiting for it could deadlock a pool inside a pool.
        if not future.cancel():
            future.result()
