"""search.py from end to end on a few passages; nothing here looks at a time."""

from __future__ import annotations

import doctest
import json
import sys

import latency
import pytest
import quality
import tables


@pytest.mark.parametrize("module", [latency, quality, tables], ids=lambda module: module.__name__)
def test_examples_of_the_modules(module):
    found = doctest.testmod(module)
    assert found.attempted
    assert not found.failed


@pytest.fixture(scope="module")
def searched(data, tmp_path_factory, run_script):
    """A first run, with two engines of ours and brute force."""
    arguments = [data, "--cache", tmp_path_factory.mktemp("cache"), "--passages", "60", "--repeats", "1"]
    done = run_script("search.py", *arguments, "--systems", "ours-2", "ours-16", "brute-force", "--json")
    assert done.returncode == 0, done.stderr
    return arguments, json.loads(done.stdout)[0]


def test_search_measures_every_system(searched):
    _, found = searched
    assert found["passages"] == 60
    assert list(found["systems"]) == ["ours-2", "ours-16", "brute-force"]
    for result in found["systems"].values():
        assert len(result["latency"]) == 6
        assert 0 <= result["recall"]["10"] <= 1
        assert result["recall"]["1000"] == 1  # there are sixty passages
        assert {name: part["topics"] for name, part in result["quality"].items()} == {"dl19": 2, "dl20": 2, "all": 4}
    assert found["systems"]["brute-force"]["recall"]["10"] == 1
    assert found["systems"]["brute-force"]["bytes_per_vector"] == 384
    assert found["systems"]["ours-16"]["recall"]["10"] > 0.9
    assert found["systems"]["ours-16"]["quality"]["all"]["map"] > 0.2


@pytest.mark.slow
def test_search_resumes_and_says_what_it_left_out(searched, run_script):
    arguments, first = searched
    done = run_script("search.py", *arguments, "--systems", "ours-2", "ours-1", "fast-plaid-2", "--resume", "--json")
    assert done.returncode == 0, done.stderr
    (found,) = json.loads(done.stdout)
    assert found["systems"]["ours-2"] == first["systems"]["ours-2"]
    assert list(found["systems"]) == ["ours-2", "ours-1"]
    assert found["skipped"] == {"fast-plaid-2": "no --peers"}


@pytest.mark.slow
def test_search_prints_tables_of_what_is_there(searched, run_script):
    arguments, first = searched
    done = run_script("search.py", *arguments, "--table", "--systems", "brute-force", "ours-2", "ours-8")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert "60 passages" in done.stdout
    assert sum(line.startswith("| NumPy brute force |") for line in lines) == 2
    assert sum(line.startswith("| colbert-prf, 2 bits |") for line in lines) == 2
    assert "8 bits" not in done.stdout
    assert f"Run of {first['systems']['ours-2']['run']}: all rows." in lines
    assert max(map(len, lines)) < 140


@pytest.mark.slow
def test_a_peer_that_cannot_run_is_left_out(searched, run_script):
    arguments, _ = searched
    done = run_script("search.py", *arguments, "--systems", "xtr-warp-4", "--peers", sys.executable, "--json")
    assert done.returncode == 0, done.stderr
    (found,) = json.loads(done.stdout)
    assert not found["systems"]
    assert "ended with code 1" in found["skipped"]["xtr-warp-4"]
