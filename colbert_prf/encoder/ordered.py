"""A map over a stream in several threads, in order, which holds only a few items at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

__all__ = ["ordered_map"]

Item = TypeVar("Item")
Result = TypeVar("Result")

PENDING_PER_THREAD = 8


def ordered_map(function: Callable[[Item], Result], items: Iterable[Item], *, threads: int) -> Iterator[Result]:
    """Apply a function to each item in several threads, and yield the results in the order of the items.

    Parameters
    ----------
    function
        It should release the interpreter lock for most of its work.
    items
        Read as needed: at most ``threads * PENDING_PER_THREAD`` are in work.
    threads
        With 1, everything runs in the calling thread.

    Examples
    --------
    >>> list(ordered_map(abs, [-3, 2, -1], threads=2))
    [3, 2, 1]
    """
    if threads == 1:
        yield from map(function, items)
        return
    pool = ThreadPoolExecutor(threads)
    try:
        pending: deque[Future[Result]] = deque()
        for item in items:
            pending.append(pool.submit(function, item))
            if len(pending) >= threads * PENDING_PER_THREAD:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
    finally:
        # A caller that stops early, or Ctrl-C, must not wait for work nobody wants.
        pool.shutdown(wait=True, cancel_futures=True)
