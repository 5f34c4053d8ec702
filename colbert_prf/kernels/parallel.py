"""Run a kernel over ranges of documents on several threads.

Kernels are compiled with ``nogil`` and take ``(start, stop)``, or take items themselves from a counter; no
``prange``, because numba's default threading layer ('workqueue') aborts the process when two Python threads enter it at
once. Each range writes its own part of the result, so the result does not depend on the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from typing import Any, TypedDict

__all__ = ["ALONE", "WorkQueue", "Workers", "run"]


class Workers(TypedDict):
    """What every kernel that works on ranges takes; it does not change the result."""

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
        A function of a half-open range that releases the GIL.
    num_items : int
        Length of the whole range.
    threads : int
        Number of ranges at work at once; the calling thread takes part.
    executor : concurrent.futures.Executor, optional
        Where the other ``threads - 1`` workers run; without it, everything runs here.
    shortest : int
        Items of a thread that are worth waking it.
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
    todo = iter(range(num_ranges))  # next() on a range iterator is atomic under the GIL

    def work() -> None:
        for part in todo:
            kernel(bounds[part], bounds[part + 1])

    others = [executor.submit(work) for _ in range(threads - 1)]
    work()
    _wait_for(others)


class WorkQueue:
    """Work under way on other threads, in which the calling thread takes part when it wants the result.

    Each thread calls every kernel in turn; a kernel takes items from a counter of its own (:func:`~.simd.take`) until
    none is left. No thread comes back to the interpreter between two items, so none waits for one that keeps it busy.

    Parameters
    ----------
    kernels : sequence of callables
        Without arguments; each releases the GIL.
    threads : int
        The calling thread is one of them.
    executor : concurrent.futures.Executor, optional
        Where the other ``threads - 1`` begin at once; without it, everything waits for :meth:`finish`.

    Examples
    --------
    >>> queue = WorkQueue([lambda: print("at work")])
    >>> print("meanwhile")
    meanwhile
    >>> queue.finish()
    at work
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
        """Work until all is done."""
        try:
            self._work()
        finally:
            _wait_for(self._others)


def _wait_for(others: Sequence[Future[Any]]) -> None:
    for other in others:
        # A worker that has not begun has nothing left to do; waiting for it could deadlock a pool inside a pool.
        if not other.cancel():
            other.result()
