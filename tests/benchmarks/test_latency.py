from __future__ import annotations

import latency
import numpy as np
import pytest


def test_the_summary_is_over_queries_of_the_median_over_repeats():
    seconds = np.array([[0.001, 0.010, 0.1], [0.002, 0.020, 0.2], [0.9, 0.030, 0.3]])
    found = latency.summary(seconds)
    assert found["median"] == pytest.approx(20)
    assert found["p95"] == pytest.approx(20 + 0.9 * (200 - 20))


def test_every_pass_has_all_queries_after_a_warm_up(monkeypatch):
    monkeypatch.setattr(latency, "WARM_UP", 1)
    calls = []
    found = latency.measure(lambda query, k: calls.append((query, k)), [1, 2], 2, 10)
    assert calls == [(1, 10), (1, 10), (2, 10), (1, 10), (2, 10)]
    assert found.keys() == {"median", "p95", "cores"}


def test_after_a_long_pass_there_is_no_further_one(monkeypatch):
    monkeypatch.setattr(latency, "WARM_UP", 0)
    monkeypatch.setattr(latency, "LONG", 0.0)
    calls = []
    latency.measure(calls.append, [1, 2], 5)
    assert calls == [1, 2]
