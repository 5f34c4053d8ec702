"""The README's code runs and prints what the README says."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

README = Path(__file__).parents[1] / "README.md"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"\d+\.\d+")
MILLISECONDS = re.compile(r"\d+\.\d+ ms")
PASSAGES = "passages.tsv"


def blocks() -> list[tuple[str, str]]:
    return BLOCK.findall(README.read_text(encoding="utf-8"))


def assert_same_output(found: str, expected: str) -> None:
    """Equal words; scores to 0.3, for the last digits of int8 differ between processors; times are anything."""
    found, expected = (MILLISECONDS.sub("some ms", text).rstrip() for text in (found, expected))
    assert [line.split() for line in NUMBER.sub("#", found).splitlines()] == [
        line.split() for line in NUMBER.sub("#", expected).splitlines()
    ]
    assert [float(n) for n in NUMBER.findall(found)] == pytest.approx([*map(float, NUMBER.findall(expected))], abs=0.3)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where the blocks run, one after the other, so that a later one finds the files of an earlier one."""
    return tmp_path_factory.mktemp("readme")


def test_python_blocks_print_what_the_readme_says(folder):
    found = blocks()
    checked = 0
    for (kind, code), (next_kind, output) in zip(found, [*found[1:], ("", "")], strict=True):
        if kind == "python" and ("pyterrier" not in code or find_spec("pyterrier")):
            done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=folder, check=False)
            assert done.returncode == 0, done.stderr
            if next_kind == "text":
                assert_same_output(done.stdout, output)
                checked += 1
    assert checked


def test_shell_blocks_print_what_the_readme_says(folder):
    checked = 0
    for kind, block in blocks():
        if kind != "console":
            continue
        for command, output in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE):
            binaries = f'export PATH="{Path(sys.executable).parent}:$PATH"; '
            done = subprocess.run(
                ["bash", "-c", binaries + command], capture_output=True, text=True, cwd=folder, check=False
            )
            assert done.returncode == 0, done.stderr
            assert_same_output(done.stdout, output)
            checked += 1
    assert checked


def test_the_map_names_every_room():
    text = README.read_text(encoding="utf-8")
    package = README.parent / "colbert_prf"
    for entry in package.iterdir():
        if entry.name not in {"__init__.py", "__main__.py", "__pycache__", "deprecated.py", "py.typed", "version.py"}:
            assert re.search(rf"^\s+{re.escape(entry.name)}/?\s", text, re.MULTILINE), entry.name
