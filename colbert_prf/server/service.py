"""What the routes of one app share, and its life: open and warm the indexes, look for new generations, end in order."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from time import perf_counter
from typing import Any, Literal

from pydantic import BaseModel

from colbert_prf.errors import ColbertPrfError
from colbert_prf.server.errors import ApiError, api_error_of
from colbert_prf.server.indexes import Generation, Indexes
from colbert_prf.server.metrics import Metrics
from colbert_prf.server.schemas import Readiness, SearchAnswer
from colbert_prf.server.searching import timings_of
from colbert_prf.server.settings import ServerSettings
from colbert_prf.server.tasks import Tasks
from colbert_prf.server.work_queue import WorkQueue

__all__ = ["Service"]

LOG = logging.getLogger("colbert_prf.server")


class Service:
    """The state of one app.

    Parameters
    ----------
    indexes
        What is served.
    settings
        How.
    """

    def __init__(self, indexes: Indexes, settings: ServerSettings) -> None:
        self.indexes = indexes
        self.settings = settings
        self.queue = WorkQueue(settings.workers, settings.waiting)
        self.tasks = Tasks(settings.waiting_writes, settings.patience)
        self.metrics = Metrics(indexes, self.queue, self.tasks)
        self.status: Literal["ready", "starting", "stopping"] = "starting"
        self._ending = threading.Event()

    async def answer(
        self, name: str, answer: type[BaseModel], compute: Callable[[Generation], Mapping[str, Any]]
    ) -> bytes:
        """Compute an answer in a thread of the queue, from one generation of an index.

        Parameters
        ----------
        name
            Of the index.
        answer
            The model of the answer.
        compute
            Gives its fields other than index, generation and took.

        Returns
        -------
        bytes
            The answer as JSON.
        """
        began = perf_counter()
        served = self.indexes[name]
        generation = served.current

        def run(waited: float) -> bytes:
            try:
                fields = {"index": name, "generation": generation.number, "took": 0.0, **compute(generation)}
            except ColbertPrfError as error:
                raise api_error_of(error, served.path) from error
            result = answer.model_construct(**fields)
            if isinstance(result, SearchAnswer):
                for each in result.results:
                    each.timings = timings_of({}, waited) + each.timings
                    self.metrics.observe(each.timings)
            return (
                answer.model_construct(**{**fields, "took": 1000 * (perf_counter() - began)}).model_dump_json().encode()
            )

        return await self.queue.run(run)

    @property
    def readiness(self) -> Readiness:
        """Whether searches are taken."""
        return Readiness(status=self.status, indexes={name: index.state for name, index in self.indexes.items()})

    def check_running(self) -> None:
        """Refuse writes while the server starts or ends."""
        if self.status != "ready":
            raise ApiError(503, "not_ready", f"the server is {self.status}", "try again", retry_after=1)

    @asynccontextmanager
    async def life(self, _: object) -> AsyncIterator[None]:
        """Open the indexes without making anybody wait for it; in the end finish what runs."""
        watcher = threading.Thread(target=self._watch, name="colbert-prf-watch", daemon=True)
        watcher.start()
        try:
            yield
        finally:
            self.status = "stopping"
            self._ending.set()
            await asyncio.to_thread(self._end, watcher)

    def _end(self, watcher: threading.Thread) -> None:
        self.queue.close()
        self.tasks.close()
        watcher.join()
        for served in self.indexes.values():
            served.close()

    def _watch(self) -> None:
        """Open every index, then look for new generations."""
        while True:
            for served in self.indexes.values():
                if self._ending.is_set():
                    return
                served.try_refresh()
            if self.status == "starting" and all(served.is_open for served in self.indexes.values()):
                self.status = "ready"
                LOG.info("ready: %s", ", ".join(self.indexes))
            if self._ending.wait(self.settings.reload_seconds):
                return
