"""A bounded queue before a few threads: what does not fit is refused at once, so that what fits stays fast."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter
from typing import TypeVar

from colbert_prf.server.errors import ApiError

__all__ = ["WorkQueue"]

Result = TypeVar("Result")


class WorkQueue:
    """Runs functions in threads; the event loop that uses it is the only one that counts.

    Parameters
    ----------
    workers
        Functions that run at once.
    waiting
        Functions that may wait.
    """

    def __init__(self, workers: int, waiting: int) -> None:
        self.workers = workers
        self.waiting = waiting
        self.pending = 0
        self.num_refused = 0
        self._seconds = 0.05
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="colbert-prf-search")

    def check_room(self) -> None:
        """Refuse with 503 if as many functions wait as may."""
        if self.pending >= self.workers + self.waiting:
            self.num_refused += 1
            raise ApiError(
                503,
                "overloaded",
                f"{self.pending} searches run or wait, which is all the server takes",
                "try again after Retry-After seconds",
                retry_after=max(1, round(self._seconds * self.pending / self.workers)),
            )

    async def run(self, function: Callable[[float], Result]) -> Result:
        """Run a function, given the seconds it waited.

        Raises
        ------
        ApiError
            503 if as many wait as may.
        """
        self.check_room()
        self.pending += 1
        asked = perf_counter()

        def timed() -> tuple[Result, float]:
            began = perf_counter()
            return function(began - asked), perf_counter() - began

        try:
            result, seconds = await asyncio.get_running_loop().run_in_executor(self._pool, timed)
        finally:
            self.pending -= 1
        self._seconds += 0.05 * (seconds - self._seconds)
        return result

    @property
    def num_waiting(self) -> int:
        """Functions that wait for a thread."""
        return max(0, self.pending - self.workers)

    def close(self) -> None:
        """Wait for what runs, and end the threads."""
        self._pool.shutdown(wait=True)
