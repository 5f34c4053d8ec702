"""The wheel installs in an empty environment, where the demo runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
from importlib.util import find_spec
from pathlib import Path

import pytest

from colbert_prf.version import __version__

ROOT = Path(__file__).parents[1]
NO_INDEX = ("No matching distribution found", "Could not find a version", "ConnectionError", "Max retries exceeded")


def run(*command: object, skip_offline: bool = False, **options) -> str:
    """Run a command outside the source tree, so that the installed package is the one imported."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [str(word) for word in command]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, **options)
    if done.returncode and skip_offline and any(sign in done.stderr for sign in NO_INDEX):
        pytest.skip("needs a package index, which pip does not reach")
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.skipif(not find_spec("build"), reason="needs build: pip install colbert-prf[dev]")
def test_the_wheel_installs_in_an_empty_environment_and_runs_the_demo(tmp_path):
    run(sys.executable, "-m", "build", "--wheel", "--outdir", tmp_path, ROOT, skip_offline=True, cwd=tmp_path)
    (wheel,) = tmp_path.glob("*.whl")
    assert wheel.name == f"colbert_prf-{__version__}-py3-none-any.whl"
    environment = tmp_path / "environment"
    venv.create(environment, with_pip=True)
    folder = environment / ("Scripts" if os.name == "nt" else "bin")
    # The tested versions, for what a wheel brings must not change from day to day.
    constraints = ("--constraint", ROOT / "constraints.txt")
    run(folder / "python", "-m", "pip", "install", "--quiet", *constraints, wheel, skip_offline=True, cwd=tmp_path)
    assert __version__ in run(folder / "colbert-prf", "--version", cwd=tmp_path)
    asked = ("demo", "sort a dictionary by value", "--cache", tmp_path / "cache", "--json")
    (answer,) = json.loads(run(folder / "colbert-prf", *asked, cwd=tmp_path))
    assert len(answer["hits"]) == 3
    assert "torch" not in run(folder / "python", "-m", "pip", "list", cwd=tmp_path)
