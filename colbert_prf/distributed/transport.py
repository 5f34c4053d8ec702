"""How questions reach the shards: within this process, or as actors of a Ray cluster."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple, Protocol

from colbert_prf.distributed.cluster import connected
from colbert_prf.distributed.division import check_division
from colbert_prf.distributed.shard import Shard
from colbert_prf.errors import ClusterError, InputError, require_positive
from colbert_prf.index.manifest import Manifest
from colbert_prf.storage.layout import IndexLayout

__all__ = ["LocalTransport", "Lost", "RayTransport", "Transport", "start_shards"]

START_SECONDS = 120.0
"""The longest wait for the processes of all shards; a busy machine imports the package for half a minute."""
MOST_RETRIES = 3
"""How often Ray asks a shard again that died over a question, after starting it again."""


class Lost(NamedTuple):
    """In place of an answer: why there is none."""

    reason: str


class Transport(Protocol):
    """Carries questions to shards, and their answers back."""

    @property
    def num_shards(self) -> int:
        """How many shards there are."""

    def send(self, shard: int, method: str, *arguments: Any) -> Any:
        """Have a method of a :class:`Shard` called, and return at once what :meth:`collect` takes."""

    def collect(self, sent: Sequence[Any], timeout: float) -> list[Any]:
        """Wait for the answers, seconds at most; :class:`Lost` in place of one that does not come."""

    def close(self) -> None:
        """End what this transport has started."""


class LocalTransport(Transport):
    """Shards within this process: what a shard computes, without a cluster.

    Parameters
    ----------
    folder
        The index.
    num_shards
        How many.
    threads
        Of each shard.
    """

    def __init__(self, folder: Path, num_shards: int, threads: int = 1) -> None:
        self.shards = [Shard(str(folder.resolve()), threads) for _ in range(num_shards)]

    @property
    def num_shards(self) -> int:
        """How many shards there are."""
        return len(self.shards)

    def send(self, shard: int, method: str, *arguments: Any) -> Any:
        """Call the method."""
        return getattr(self.shards[shard], method)(*arguments)

    def collect(self, sent: Sequence[Any], timeout: float) -> list[Any]:
        """The answers, which are there already."""
        return list(sent)

    def close(self) -> None:
        """Nothing was started."""


class RayTransport(Transport):
    """Each shard is an actor, which Ray starts again where it has died; its questions are asked again.

    Where the process is not connected to Ray, the first transport connects it, and disconnects it when it is closed:
    for several transports put a :func:`~colbert_prf.distributed.cluster.connected` block around them.

    Parameters
    ----------
    folder
        The index, on storage that all machines see under this path.
    num_shards
        How many; as many as there is room for, and ``most`` at most, if left out.
    most
        How many there are segments for.
    address
        As in :func:`~colbert_prf.distributed.cluster.connected`.
    cpus
        CPUs that Ray sets aside for a shard.
    threads
        Threads of one answer.
    at_once
        Questions a shard works on at once.

    Raises
    ------
    ClusterError
        If the cluster cannot be reached, has too few CPUs, or starts a shard too late.
    """

    def __init__(
        self,
        folder: Path,
        num_shards: int | None = None,
        *,
        most: int,
        address: str | None = None,
        cpus: float = 1,
        threads: int = 1,
        at_once: int = 8,
    ) -> None:
        if isinstance(cpus, bool) or not isinstance(cpus, int | float) or not cpus >= 0:
            raise InputError(f"cpus must be a number of at least 0, found {cpus!r:.80}")
        require_positive(threads=threads, at_once=at_once)
        self._closing = ExitStack()
        try:
            self._ray = self._closing.enter_context(connected(address))
            num_shards = self._room(num_shards, most, cpus)
            actor = self._ray.remote(Shard).options(
                num_cpus=cpus,
                max_restarts=-1,
                max_task_retries=MOST_RETRIES,
                max_concurrency=at_once,
                scheduling_strategy="SPREAD",
            )
            self.actors: list[Any] = []
            self._closing.callback(self._end)
            self.actors += [actor.remote(str(folder.resolve()), threads) for _ in range(num_shards)]
            self._wait_for_start()
        except BaseException:
            self._closing.close()
            raise

    @property
    def num_shards(self) -> int:
        """How many shards there are."""
        return len(self.actors)

    def send(self, shard: int, method: str, *arguments: Any) -> Any:
        """Call a method of an actor."""
        if not self._ray.is_initialized():  # or Ray would look for some other cluster by itself
            return Lost("the connection to Ray is closed")
        try:
            return getattr(self.actors[shard], method).remote(*arguments)
        except self._ray.exceptions.RayError as error:
            return Lost(_first_line(error))

    def collect(self, sent: Sequence[Any], timeout: float) -> list[Any]:
        """Wait for all, and only if that fails look at each."""
        deadline = monotonic() + timeout
        if not any(isinstance(each, Lost) for each in sent):
            try:
                answers: list[Any] = self._ray.get(list(sent), timeout=timeout)
                return answers
            except self._ray.exceptions.RayError:
                pass
        return [self._answer(each, max(0.0, deadline - monotonic())) for each in sent]

    def close(self) -> None:
        """End the actors, and the local cluster if this transport started it."""
        self._closing.close()

    def _answer(self, sent: Any, timeout: float) -> Any:
        if isinstance(sent, Lost):
            return sent
        exceptions = self._ray.exceptions
        try:
            return self._ray.get(sent, timeout=timeout)
        except exceptions.GetTimeoutError:
            return Lost("it did not answer in time")
        except exceptions.RayTaskError:
            raise  # a mistake of ours, with the traceback of the shard
        except exceptions.RayError as error:
            return Lost(_first_line(error))

    def _room(self, num_shards: int | None, most: int, cpus: float) -> int:
        """How many shards; those that Ray would never start are refused instead of waited for."""
        there = self._ray.cluster_resources().get("CPU", 0.0)
        if num_shards is None:
            num_shards = max(1, min(most, int(there / cpus) if cpus else most))
        if num_shards * cpus > there:
            raise ClusterError(
                f"{num_shards} shards of {cpus:g} CPUs need {num_shards * cpus:g}, the cluster has {there:g}; give "
                "fewer shards, smaller cpus, or add machines"
            )
        return num_shards

    def _wait_for_start(self) -> None:
        ready = [actor.__ray_ready__.remote() for actor in self.actors]
        started, waiting = self._ray.wait(ready, num_returns=len(ready), timeout=START_SECONDS)
        if waiting:
            free = self._ray.available_resources().get("CPU", 0.0)
            raise ClusterError(
                f"{len(waiting)} of {len(ready)} shards did not start within {START_SECONDS:g} seconds; {free:g} CPUs "
                "are free: end other work of the cluster, or give smaller cpus"
            )
        try:
            self._ray.get(started)
        except self._ray.exceptions.RayError as error:
            raise ClusterError(
                f"a shard cannot start: {_first_line(error)}; install colbert-prf in one version on all machines"
            ) from error

    def _end(self) -> None:
        for actor in self.actors if self._ray.is_initialized() else []:
            self._ray.kill(actor)


def start_shards(
    folder: Path, shards: int | None = None, *, address: str | None = None, cpus: float = 1, in_flight: int = 8
) -> RayTransport:
    """Start actors for the shards of an index; the parameters are those of :class:`.searcher.DistributedSearcher`."""
    manifest = Manifest.read(IndexLayout.at(folder).manifest)
    if shards is not None:
        check_division(manifest, shards)
    most, threads = len(manifest.segments), max(1, int(cpus))
    return RayTransport(folder, shards, most=most, address=address, cpus=cpus, threads=threads, at_once=in_flight)


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".:")
