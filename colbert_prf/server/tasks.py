"""Writes: accepted at once, done one after the other by one thread."""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timezone
from typing import Any, Literal

from filelock import FileLock, Timeout

from colbert_prf.errors import ColbertPrfError, IndexLockedError
from colbert_prf.index import Index
from colbert_prf.server.errors import ApiError, api_error_of
from colbert_prf.server.indexes import ServedIndex
from colbert_prf.server.schemas import ErrorAnswer, TaskAnswer

__all__ = ["Task", "Tasks"]

LOG = logging.getLogger("colbert_prf.server")
Action = Literal["upsert", "delete", "merge"]
Change = Callable[[Index, "Task"], None]
KEPT = 1000
"""Tasks that can be asked for after their end."""
PAUSE = 0.05
"""Seconds between two tries to get the lock of an index."""


class Task:
    """A write and how far it is.

    Parameters
    ----------
    served
        The index.
    action
        What is done.
    total
        Documents to be done.
    """

    def __init__(self, served: ServedIndex, action: Action, total: int) -> None:
        now = datetime.now(timezone.utc)
        self._lock = threading.Lock()
        self._answer = TaskAnswer(
            task=uuid.uuid4().hex, index=served.name, action=action, state="waiting", done=0, total=total, created=now
        )

    @property
    def answer(self) -> TaskAnswer:
        """How it stands."""
        with self._lock:
            return self._answer

    @property
    def task_id(self) -> str:
        """Its id."""
        return self._answer.task

    def update(self, **fields: Any) -> None:
        """Change how it stands."""
        with self._lock:
            self._answer = self._answer.model_copy(update=fields)

    def counted(self, documents: Iterable[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
        """Pass documents on, counting them."""
        self.update(done=0)
        for number, document in enumerate(documents, start=1):
            yield document
            self.update(done=number)


class Tasks:
    """The writes of a server.

    Parameters
    ----------
    waiting
        Writes that may wait; the next one is refused.
    patience
        Seconds a write waits for another process that is changing the index.
    """

    def __init__(self, waiting: int, patience: float) -> None:
        self._waiting = waiting
        self._patience = patience
        self._tasks: OrderedDict[str, Task] = OrderedDict()
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="colbert-prf-write")
        self._lock = threading.Lock()
        self.num_pending = 0
        self.ended: dict[tuple[Action, str], int] = {}

    def __getitem__(self, task_id: str) -> Task:
        with self._lock:
            if task_id in self._tasks:
                return self._tasks[task_id]
        raise ApiError(
            404,
            "unknown_task",
            f"there is no task {task_id!r}",
            "tasks are forgotten when the server ends; write again",
        )

    def check_room(self) -> None:
        """Refuse a write with 429 if as many wait as may."""
        if self.num_pending > self._waiting:
            message = f"{self.num_pending} writes run or wait, which is all the server takes"
            raise ApiError(429, "too_many_writes", message, "try again after Retry-After seconds", retry_after=2)

    def submit(
        self,
        served: ServedIndex,
        action: Action,
        total: int,
        change: Change,
        *,
        after: Callable[[], None] = lambda: None,
    ) -> Task:
        """Accept a write.

        Parameters
        ----------
        served
            The index.
        action, total
            See :class:`Task`.
        change
            Changes the index, all or nothing.
        after
            Called in the end, whatever happened.

        Raises
        ------
        ApiError
            429 if too many wait, 409 if another process is changing the index.
        """
        with self._lock:
            self.check_room()
            if not self.num_pending:
                _refuse_locked(served)
            task = Task(served, action, total)
            self._tasks[task.task_id] = task
            while len(self._tasks) > KEPT:
                self._tasks.popitem(last=False)
            self.num_pending += 1
        self._pool.submit(self._run, served, task, change, after)
        return task

    def close(self) -> None:
        """Finish what was accepted."""
        self._pool.shutdown(wait=True)

    def _run(self, served: ServedIndex, task: Task, change: Change, after: Callable[[], None]) -> None:
        task.update(state="running", started=datetime.now(timezone.utc))
        error: ErrorAnswer | None = None
        try:
            self._change(served, task, change)
            served.refresh()
        except ColbertPrfError as refused:
            error = api_error_of(refused, served.path).answer
        except ApiError as refused:
            error = refused.answer
        except Exception:  # the thread must live on, and the log has the traceback
            LOG.exception("task %s failed", task.task_id)
            error = ErrorAnswer(code="internal_error", message="the write failed", hint="see the log of the server")
        finally:
            after()
        ended = datetime.now(timezone.utc)
        if error is not None:
            task.update(state="failed", ended=ended, error=error)
        else:
            done = task.answer.total
            task.update(state="finished", ended=ended, done=done, generation=served.current.number)
        with self._lock:
            self.num_pending -= 1
            key = task.answer.action, task.answer.state
            self.ended[key] = self.ended.get(key, 0) + 1

    def _change(self, served: ServedIndex, task: Task, change: Change) -> None:
        """Change the index, waiting for another process that does."""
        deadline = time.monotonic() + self._patience
        while True:
            try:
                return change(served.writer(), task)
            except IndexLockedError:  # noqa: PERF203 - the loop is the point
                if time.monotonic() > deadline:
                    raise
                time.sleep(PAUSE)


def _refuse_locked(served: ServedIndex) -> None:
    lock = FileLock(served.layout.lock, timeout=0)
    try:
        lock.acquire()
    except Timeout:
        message = f"another process is changing the index {served.name!r}"
        raise ApiError(409, "index_locked", message, "try again later", retry_after=1) from None
    except OSError as error:
        message = f"the index {served.name!r} cannot be written to ({error.strerror})"
        raise ApiError(409, "index_unusable", message, "give the server the right to write to its folder") from None
    lock.release()
