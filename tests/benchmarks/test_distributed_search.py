"""The model of a search over many shards, worked out by hand."""

from __future__ import annotations

from distributed_search import print_model


def test_the_model_by_hand(capsys):
    """A round trip takes 1 ms and 0.1 ms a shard: two to four shards take 2.8 ms, after 5 ms of one shard's work."""
    fan_out = {"1": 1.1, "4": 1.4, "16": 2.6, "64": 7.4, "256": 26.6}
    print_model({"fan-out": fan_out, "rounds": {"search": 2.0}, "ms": {"search": {"in process, 1": 5.0}}})
    printed = capsys.readouterr().out
    assert "an empty round trip: 1.00 ms, and 100 µs for each shard" in printed
    rows = [line.strip("| ").split(" | ") for line in printed.splitlines() if line.startswith("| search | ")][1:]
    assert rows[0][:5] == ["search", "4", "5.0", "2.8", "7.8"]
    # An answer of four is late with 1 - 0.99⁴ = 4 %: one of two in 8 % of the queries, so 20 ms at 99 %, none at 50 %.
    assert rows[0][5:] == ["7.8", "27.8"]
    assert rows[3][:5] == ["search", "256", "5.0", "53.2", "58.2"]
