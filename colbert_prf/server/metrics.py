"""What Prometheus reads: requests, latencies by stage, the queue, errors, sizes of indexes."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from colbert_prf.server.indexes import Indexes
from colbert_prf.server.schemas import Timing
from colbert_prf.server.tasks import Tasks
from colbert_prf.server.work_queue import WorkQueue

__all__ = ["Metrics"]

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Metrics:
    """The counters of one app, in a registry of their own.

    Parameters
    ----------
    indexes, queue, tasks
        What is looked at when the metrics are read.
    """

    def __init__(self, indexes: Indexes, queue: WorkQueue, tasks: Tasks) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self.registry.register(_State(indexes, queue, tasks))
        labels = ("method", "route", "status")
        self._requests = Counter("colbert_prf_requests", "Requests answered.", labels, registry=self.registry)
        self._seconds = Histogram(
            "colbert_prf_request_seconds", "Time of a request.", ("route",), buckets=SECONDS, registry=self.registry
        )
        self._stages = Histogram(
            "colbert_prf_stage_seconds", "Time of a stage.", ("stage",), buckets=SECONDS, registry=self.registry
        )

    def count(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request."""
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def observe(self, timings: Iterable[Timing]) -> None:
        """Count the stages of a search, by group."""
        for timing in timings:
            self._stages.labels(timing.group).observe(timing.milliseconds / 1000)

    def text(self) -> bytes:
        """Everything, as Prometheus reads it."""
        return generate_latest(self.registry)


class _State(Collector):
    """What is known without counting."""

    def __init__(self, indexes: Indexes, queue: WorkQueue, tasks: Tasks) -> None:
        self._indexes = indexes
        self._queue = queue
        self._tasks = tasks

    def collect(self) -> Iterable[Metric]:
        """Look at everything."""
        queue = self._queue
        yield GaugeMetricFamily("colbert_prf_searches_waiting", "Searches that wait.", value=queue.num_waiting)
        yield GaugeMetricFamily("colbert_prf_searches_running", "Searches.", value=queue.pending - queue.num_waiting)
        yield CounterMetricFamily("colbert_prf_searches_refused", "Refused with 503.", value=queue.num_refused)
        yield GaugeMetricFamily("colbert_prf_writes_pending", "Writes run or wait.", value=self._tasks.num_pending)
        tasks = CounterMetricFamily("colbert_prf_writes", "Writes that ended.", labels=("action", "state"))
        for key, count in list(self._tasks.ended.items()):
            tasks.add_metric(key, count)
        yield tasks
        names = ("documents", "vectors", "segments", "generation", "bytes")
        gauges = {
            n: GaugeMetricFamily(f"colbert_prf_index_{n}", f"Of an index: {n}.", labels=("index",)) for n in names
        }
        for name, served in self._indexes.items():
            if served.is_open:
                info = served.current.index.info()
                values = (info.num_documents, info.num_vectors, info.num_segments, info.generation)
                for gauge, value in zip(names, (*values, sum(info.num_bytes.values())), strict=True):
                    gauges[gauge].add_metric([name], value)
        yield from gauges.values()
