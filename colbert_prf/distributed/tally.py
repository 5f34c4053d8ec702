"""How far the workers are, told to the driver about once a second."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from time import monotonic
from typing import Any, TypeVar

__all__ = ["Tally", "followed", "tallied"]

SECONDS = 1.0
Item = TypeVar("Item")


class Tally:
    """Adds up what workers report; an actor of Ray."""

    def __init__(self) -> None:
        self._total = 0

    def add(self, count: int) -> None:
        """Report a number of documents that are done."""
        self._total += count

    def total(self) -> int:
        """Return the number of documents that were reported."""
        return self._total


def tallied(items: Iterable[Item], report: Callable[[int], object]) -> Iterator[Item]:
    """Yield items, and report about every second how many were taken since the last report.

    Examples
    --------
    >>> reports = []
    >>> list(tallied("abc", reports.append)), reports
    (['a', 'b', 'c'], [3])
    """
    count, reported = 0, monotonic()
    for item in items:
        yield item
        count += 1
        if monotonic() - reported >= SECONDS:
            report(count)
            count, reported = 0, monotonic()
    report(count)


@contextmanager
def followed(ray: Any, advance: Callable[[int], object]) -> Iterator[Any]:
    """Yield a tally for workers, and tell ``advance`` of its changes for as long as the block runs."""
    tally = ray.remote(Tally).options(num_cpus=0).remote()
    is_over = Event()

    def follow() -> None:
        shown = 0
        while not is_over.is_set():
            is_over.wait(SECONDS)
            try:
                total = ray.get(tally.total.remote(), timeout=SECONDS)
            except ray.exceptions.RayError:
                continue  # the driver itself meets what is wrong with the cluster
            advance(total - shown)
            shown = total

    follower = Thread(target=follow, daemon=True)
    follower.start()
    try:
        yield tally
    finally:
        is_over.set()
        follower.join()
