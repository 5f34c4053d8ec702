"""kill -9 at any point leaves the old generation or the new one, and the change can be made again."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")]

ROUNDS = Path(__file__).with_name("crash_rounds.py")


def run(*arguments: object) -> None:
    # OpenMP does not survive a fork once it has threads.
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, ROUNDS, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=600)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("action", ["create", "add", "delete", "merge", "retrain"])
def test_killed_before_any_of_its_file_operations(tmp_path, action):
    run("steps", tmp_path, action, 1, 8)


def test_killed_at_random_moments(tmp_path):
    run("moments", tmp_path, 1, 25)
