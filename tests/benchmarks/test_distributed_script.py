"""The hours of larger clusters, worked out by hand from round figures."""

from __future__ import annotations

import json

import distributed
import pytest

BUILDS = {
    "one machine": {"seconds": 9.0, "start": 0.0, "passages": 100, "bytes": 100_000},
    "Ray, a worker for each core": {"seconds": 12.0, "start": 2.0, "passages": 100, "bytes": 100_000},
}
DRIVER = {"passages/s": 8_841_823 / 3598, "train seconds": 0.0, "checked bytes/s": 1e12}


@pytest.fixture
def rows(monkeypatch, capsys) -> list[list[str]]:
    monkeypatch.setattr(distributed, "available_cores", lambda: 1)
    distributed.print_model(BUILDS, DRIVER)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "10.0 passages/s a core, 1,000 bytes a passage, machines of 16 cores"
    return [line.strip("| ").split(" | ") for line in lines[4:]]


def test_encoding_takes_whole_rounds_of_segments(rows):
    # 177 segments in 12 rounds of 16 workers, 5,000 seconds each; the driver takes an hour.
    assert rows[0] == ["8,841,823", "1", "1.00", "16.67", "17.67", "8.8"]


def test_where_segments_are_few_workers_have_more_threads(rows):
    # 177 workers on 64 machines: 3 on some, so that each has 5 threads and its segment 1,000 seconds.
    assert rows[3] == ["8,841,823", "64", "1.00", "0.28", "1.28", "0.1"]


@pytest.mark.slow
def test_builds_are_compared_on_a_few_passages(tmp_path, run_script):
    pytest.importorskip("ray")
    corpus, output = tmp_path / "corpus.tsv", tmp_path / "builds.json"
    corpus.write_text("".join(f"d{number}\tpassage {number} of a few\n" for number in range(40)))
    options = ["--passages=40", "--segments=2", "--rounds=1", f"--output={output}"]
    done = run_script("distributed.py", "builds", corpus, *options)
    assert done.returncode == 0, done.stderr
    builds = json.loads(output.read_text())
    assert [build["passages"] for build in builds.values()] == [40] * len(distributed.SYSTEMS)
    assert "| one machine |" in done.stdout
