"""The workers of a cluster, and tasks handed to them by Ray Data."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from colbert_prf.distributed.encoding import Job, SliceEncoder, Task
from colbert_prf.distributed.tally import followed
from colbert_prf.errors import ClusterError, ColbertPrfError, InputError, MissingExtraError, require_positive
from colbert_prf.index.manifest import SegmentInfo

__all__ = ["Crew"]

CHECK_SECONDS = 300.0
"""The longest wait for a machine to say whether it is like the driver; it may have to start a process for that."""


@dataclass(frozen=True)
class Crew:
    """The machines of a cluster, and how many workers they have; make one with :meth:`of`.

    Parameters
    ----------
    ray
        Ray, connected.
    machines
        The CPUs of each machine that has any.
    num_workers
        The most processes.
    """

    ray: Any
    machines: tuple[int, ...]
    num_workers: int

    @classmethod
    def of(cls, ray: Any, num_workers: int | None = None) -> Crew:
        """Take the machines of a cluster, with one worker for each CPU if ``num_workers`` is left out.

        Raises
        ------
        InputError
            If there are more workers than CPUs.
        ClusterError
            If the cluster has no CPU.
        """
        require_positive(workers=num_workers)
        cpus = [int(node["Resources"].get("CPU", 0)) for node in ray.nodes() if node["Alive"]]
        machines = tuple(count for count in cpus if count)
        if not machines:
            raise ClusterError("the cluster has no CPU for a worker; add a machine: `ray start --address=HOST:PORT`")
        if num_workers is not None and num_workers > sum(machines):
            raise InputError(f"workers must be at most {sum(machines)}, the CPUs of the cluster, found {num_workers}")
        return cls(ray, machines, num_workers or sum(machines))

    def check(self, job: Job) -> None:
        """Refuse a machine that is unlike the driver, before the corpus is read.

        Raises
        ------
        ClusterError
            It names the machine.
        """
        _ray_data()
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        probe = self.ray.remote(num_cpus=0)(_fault)
        nodes = [node["NodeID"] for node in self.ray.nodes() if node["Alive"] and node["Resources"].get("CPU")]
        pinned = [NodeAffinitySchedulingStrategy(node, soft=False) for node in nodes]
        answers = [probe.options(scheduling_strategy=strategy).remote(job) for strategy in pinned]
        try:
            faults = self.ray.get(answers, timeout=CHECK_SECONDS)
        except self.ray.exceptions.RayError as error:
            raise ClusterError(
                f"a machine of the cluster cannot run colbert-prf: {_reason(error)}; install the version of the driver "
                "on all machines, in the environment that runs `ray start`"
            ) from error
        for fault in faults:
            if fault is not None:
                raise fault

    def run(
        self, job: Job, tasks: Iterable[Task], advance: Callable[[int], object]
    ) -> Iterator[tuple[int, SegmentInfo]]:
        """Do tasks, and yield the number and the segment of each when it is done, in any order.

        ``advance`` is told about every second how many more documents the workers have taken, in another thread.

        Raises
        ------
        ColbertPrfError
            The first that a worker met.
        ClusterError
            If workers died, again and again.
        """
        data = _ray_data()
        items = [{"task": task} for task in tasks]
        if not items:
            return
        num_workers = min(self.num_workers, len(items))  # and where tasks are few, more threads for each
        threads = threads_of(num_workers, self.machines)
        with _quiet(data), followed(self.ray, advance) as tally:
            dataset = data.from_items(items, override_num_blocks=len(items)).map_batches(
                SliceEncoder,
                fn_constructor_args=(replace(job, threads=threads, tally=tally),),
                batch_size=1,
                # A worker with one task at a time: the next is worth more in the hands of one that is free.
                compute=data.ActorPoolStrategy(size=num_workers, max_tasks_in_flight_per_actor=1),
                num_cpus=threads,
            )
            try:
                for row in dataset.iter_rows():
                    outcome = row["outcome"]
                    if isinstance(outcome.result, ColbertPrfError):
                        raise outcome.result
                    yield outcome.number, outcome.result
            except self.ray.exceptions.RayError as error:
                raise ClusterError(
                    f"workers of the cluster failed: {_reason(error)}; look at their memory, at Ray's logs (`ray "
                    "logs`), and continue with --resume"
                ) from error


def threads_of(num_workers: int, machines: Sequence[int]) -> int:
    """Choose the threads of each of some workers, so that every machine has room for its share of the workers.

    Examples
    --------
    >>> [threads_of(count, [8, 8]) for count in (16, 9, 3, 1)]
    [1, 1, 4, 8]
    """
    return max(1, min(machines) // -(-num_workers // len(machines)))


def _ray_data() -> Any:
    try:
        import ray.data
    except ImportError as error:
        raise MissingExtraError("Indexing on a Ray cluster", extra="ray") from error
    return ray.data


def _fault(job: Job) -> ColbertPrfError | None:
    """Say why the machine on which this runs cannot work on a job; None if it can."""
    return SliceEncoder(job).fault


@contextmanager
def _quiet(data: Any) -> Iterator[None]:
    """Keep Ray Data's bars and notes off the terminal, which shows those of this package."""
    context, logger = data.DataContext.get_current(), logging.getLogger("ray.data")
    before = context.enable_progress_bars, logger.level
    context.enable_progress_bars = False
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        context.enable_progress_bars = before[0]
        logger.setLevel(before[1])


def _reason(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[-1].strip()
