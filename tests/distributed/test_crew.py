"""Workers share the processors of a cluster, and machines that cannot work are refused."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from colbert_prf.distributed.crew import Crew
from colbert_prf.errors import ClusterError, InputError


def cluster_of(*cpus: float, dead: int = 0) -> SimpleNamespace:
    nodes = [{"Alive": number >= dead, "Resources": {"CPU": count}} for number, count in enumerate(cpus)]
    return SimpleNamespace(nodes=lambda: nodes)


@pytest.mark.parametrize(
    ("cluster", "num_workers", "expected"),
    [
        (cluster_of(8, 8), None, (2, 8)),
        (cluster_of(0, 8, 8), None, (2, 8)),  # a head that does not work
        (cluster_of(4, 8, dead=1), None, (1, 8)),
        (cluster_of(8, 8), 3, (3, 4)),  # two of them on one machine
        (cluster_of(8, 8), 16, (16, 1)),
    ],
)
def test_workers_share_the_processors(cluster, num_workers, expected):
    crew = Crew.of(cluster, num_workers)
    assert (crew.num_workers, crew.threads) == expected


def test_too_many_workers_and_a_cluster_without_processors_are_refused():
    with pytest.raises(InputError, match="workers must be at most 16, the CPUs of the cluster, found 17"):
        Crew.of(cluster_of(8, 8), 17)
    with pytest.raises(ClusterError, match="the cluster has no CPU for a worker; add a machine"):
        Crew.of(cluster_of(0))


class Unknown:
    """What a machine with another version, or none, cannot read."""

    def __reduce__(self):
        return __import__, ("no_such_module_here",)


def test_a_machine_that_cannot_run_the_package_is_refused(ray_cluster):
    with pytest.raises(ClusterError, match=r"cannot run colbert-prf: .*no_such_module_here.*; install the version"):
        Crew.of(ray_cluster).check(Unknown())
