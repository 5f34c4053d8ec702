"""Workers share the processors of a cluster, and machines that cannot work are refused."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from colbert_prf.distributed.crew import Crew, threads_of
from colbert_prf.errors import ClusterError, InputError, MissingExtraError


def cluster_of(*cpus: float, dead: int = 0) -> SimpleNamespace:
    nodes = [{"Alive": number >= dead, "Resources": {"CPU": count}} for number, count in enumerate(cpus)]
    return SimpleNamespace(nodes=lambda: nodes)


@pytest.mark.parametrize(
    ("cluster", "num_workers", "expected"),
    [
        (cluster_of(8, 8), None, ((8, 8), 16)),
        (cluster_of(0, 8, 8), None, ((8, 8), 16)),  # a head that does not work
        (cluster_of(4, 8, dead=1), None, ((8,), 8)),
        (cluster_of(8, 8), 3, ((8, 8), 3)),
    ],
)
def test_a_crew_has_the_machines_that_are_there(cluster, num_workers, expected):
    crew = Crew.of(cluster, num_workers)
    assert (crew.machines, crew.num_workers) == expected


@given(st.lists(st.integers(1, 9), min_size=1, max_size=5), st.integers(1, 45))
def test_workers_and_their_threads_fit_into_the_machines(machines, num_workers):
    num_workers = min(num_workers, sum(machines))
    threads = threads_of(num_workers, machines)
    assert sum(cpus // threads for cpus in machines) >= num_workers


def test_too_many_workers_and_a_cluster_without_processors_are_refused():
    with pytest.raises(InputError, match="workers must be at most 16, the CPUs of the cluster, found 17"):
        Crew.of(cluster_of(8, 8), 17)
    with pytest.raises(ClusterError, match="the cluster has no CPU for a worker; add a machine"):
        Crew.of(cluster_of(0))


def test_ray_without_its_data_library_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray.data", None)
    with pytest.raises(MissingExtraError, match=r"Indexing on a Ray cluster needs .*colbert-prf\[ray\]"):
        Crew.of(cluster_of(8)).check(None)


class Unknown:
    """What a machine with another version, or none, cannot read."""

    def __reduce__(self):
        return __import__, ("no_such_module_here",)


def test_a_machine_that_cannot_run_the_package_is_refused(ray_cluster):
    with pytest.raises(ClusterError, match=r"cannot run colbert-prf: .*no_such_module_here.*; install the version"):
        Crew.of(ray_cluster).check(Unknown())
