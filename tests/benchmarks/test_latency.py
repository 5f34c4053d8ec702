from __future__ import annotations

import latency
import numpy as np
import pytest


def test_the_summary_is_over_queries_of_the_median_over_repeats():
    seconds = np.array([[0.001, 0.010, 0.1], [0.002, 0.020, 0.2], [0.9, 0.030, 0.3]])
    found = latency.summary(seconds)
    assert found["median"] == pytest.approx(20)
    assert found["p95"] == pytest.approx(20 + 0.9 * (200 - 20))


def test_systems_take_turns_after_a_warm_up(monkeypatch):
    monkeypatch.setattr(latency, "WARM_UP", 1)
    calls = []
    searches = {name: lambda query, k, name=name: calls.append((name, query, k)) for name in "ab"}
    found = latency.measure(searches, [1, 2], 2, 10)
    one_pass = [("a", 1, 10), ("a", 2, 10), ("b", 1, 10), ("b", 2, 10)]
    assert calls == [("a", 1, 10), ("b", 1, 10), *one_pass, *one_pass]
    assert found.keys() == {"a", "b"}
    assert found["a"].keys() == {"median", "p95", "cores"}


def test_a_system_that_has_taken_long_gets_no_further_turn(monkeypatch):
    monkeypatch.setattr(latency, "WARM_UP", 0)
    monkeypatch.setattr(latency, "LONG", 0.0)
    calls = []
    latency.measure({"a": calls.append}, [1, 2], 5)
    assert calls == [1, 2]
