"""growth.py from end to end on a few passages; nothing here looks at a time."""

from __future__ import annotations

import doctest
import json

import growth
import latency
import pytest
import synthetic


@pytest.mark.parametrize("module", [growth, synthetic], ids=lambda module: module.__name__)
def test_examples_of_the_modules(module):
    found = doctest.testmod(module)
    assert found.attempted
    assert not found.failed


@pytest.mark.slow
def test_growth_builds_each_size_and_removes_it(tmp_path, run_script):
    settings = ["--sizes", "2000", "8000", "--queries", "3", "--repeats", "1", "--workdir", tmp_path]
    done = run_script("growth.py", *settings, "--json")
    assert done.returncode == 0, done.stderr
    small, large = json.loads(done.stdout)
    assert small["passages"] == 25
    assert large["passages"] == 100
    assert large["vectors"] == sum(len(block.vectors) for block in synthetic.Collection().blocks(100))
    assert large["disk_bytes"] > small["disk_bytes"]
    assert large["peak_bytes"] > 10e6
    assert not list(tmp_path.iterdir())


def test_the_growth_table_has_exponents(capsys):
    keys = ["build_seconds", "peak_bytes", "peak_anonymous_bytes", "disk_bytes"]
    keys += [f"latency@{cutoff}" for cutoff in latency.CUTOFFS]
    growth.print_results(
        [
            {"vectors": size, "centroids": 64, "distance": 0.5, **dict.fromkeys(keys, size**power)}
            for size, power in ((100, 1.0), (10_000, 1.0), (1_000_000, 1.0))
        ]
    )
    *_, overall, last, _ = capsys.readouterr().out.splitlines()
    assert [cell.strip() for cell in overall.strip("|").split("|")] == [
        "exponent",
        "",
        "",
        *["1.00"] * 4,
        "",
        *["1.00"] * 3,
    ]
    assert last.startswith("| last step |")
