"""Run a kernel over ranges of documents on several threads.

Kernels are compiled with ``nogil`` and take ``(start, stop)``, or a counter from which they take ranges themselves; no
``prange``, because numba's default threading layer ('workqueue') aborts the process when two Python threads enter it at
once. Each range writes its own part of the result, so the result does not depend on the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future, wait
from typing import Any, TypedDict

import numpy as np
from numpy.typing import NDArray

__all__ = ["ALONE", "Workers", "run", "share"]


class Workers(TypedDict):
    """What every kernel that works on ranges takes; it does not change the result."""

    threads: int
    executor: Executor | None


NEVER = 1 << 62
"""Of threads to begin: more than there are."""
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


def share(
    kernel: Callable[[NDArray[np.int64], int], object],
    *,
    threads: int = 1,
    executor: Executor | None = None,
    first: int = 0,
    beside: Callable[[], object] | None = None,
) -> None:
    """Call ``kernel(shared, until)`` on each thread; each takes work from what is left of it until there is none.

    No thread comes back to the interpreter before all is done, so none waits for another that keeps it busy.

    Parameters
    ----------
    kernel : callable
        A function that releases the GIL, of how many items were taken, how many threads have begun, how many items of
        the parts with first items are done, and how many first items there are, ``shared`` (4,). It leaves early once
        ``until`` threads have begun and the first items are taken; see :func:`~.simd.first_part`, ``next_part`` and
        ``leave``.
    threads : int
        The calling thread is one of them.
    executor : concurrent.futures.Executor, optional
        Where the other ``threads - 1`` run; without it, everything runs here.
    first : int
        Items that are to be done before anything is done beside.
    beside : callable, optional
        What the calling thread does once the others have begun, before it takes part to the end.

    Examples
    --------
    >>> share(lambda shared, until: print("at work"), beside=lambda: print("beside"))
    at work
    beside
    at work
    """
    shared = np.array([0, 0, 0, first])
    others = [executor.submit(kernel, shared, NEVER) for _ in range(threads - 1)] if executor is not None else []
    try:
        if beside is not None:
            # To begin the others need the interpreter, which this thread gives up while it works.
            kernel(shared, len(others) + 1)
            while shared[2] < first:  # a thread was interrupted in the midst of them
                wait(others, timeout=1e-4)
            beside()
        kernel(shared, NEVER)
    finally:
        _wait_for(others)


def _wait_for(others: Sequence[Future[Any]]) -> None:
    for other in others:
        # A worker that has not begun has nothing left to do; waiting for it could deadlock a pool inside a pool.
        if not other.cancel():
            other.result()
