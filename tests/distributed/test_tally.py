"""What workers report, the driver is told."""

from __future__ import annotations

from colbert_prf.distributed import tally
from colbert_prf.distributed.tally import followed, tallied


def test_reports_reach_the_driver(ray_cluster):
    advances: list[int] = []
    with followed(ray_cluster, advances.append) as counter:
        ray_cluster.get([counter.add.remote(3), counter.add.remote(4)])
    assert sum(advances) == 7


def test_items_are_reported_when_it_is_time(monkeypatch):
    seconds = iter([0.0, 0.4, 1.2, 1.2, 1.5])
    monkeypatch.setattr(tally, "monotonic", lambda: next(seconds))
    reports: list[int] = []
    assert list(tallied("abc", reports.append)) == ["a", "b", "c"]
    assert reports == [2, 1]  # 1.2 seconds after the first, and at the end
