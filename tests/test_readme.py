"""The code of the README and of the guide runs and prints what they say."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

GUIDE = ("indexing", "search", "feedback", "filters", "models")
"""The pages of the guide whose blocks need nothing but the package."""
ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
PAGES = ["README.md", "docs/index.md", *(f"docs/guide/{name}.md" for name in GUIDE)]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BETWEEN = "--- the next block ---"
NUMBER = re.compile(r"\d+\.\d+")
MILLISECONDS = re.compile(r"\d+\.\d+ ms")


def blocks(page: str) -> list[tuple[str, str]]:
    return BLOCK.findall((ROOT / page).read_text(encoding="utf-8"))


def assert_same_output(found: str, expected: str, *, tolerance: float = 0.01) -> None:
    """Equal words, any times, and figures to a hundredth: an int8 model's last digits differ between processors."""
    found, expected = (MILLISECONDS.sub("some ms", text).rstrip() for text in (found, expected))
    assert [line.split() for line in NUMBER.sub("#", found).splitlines()] == [
        line.split() for line in NUMBER.sub("#", expected).splitlines()
    ]
    figures = [float(number) for number in NUMBER.findall(expected)]
    assert [float(number) for number in NUMBER.findall(found)] == pytest.approx(figures, rel=tolerance, abs=tolerance)


def run(command: list[str], folder: Path) -> str:
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def programs(page: str) -> list[list[tuple[str, str]]]:
    """Blocks of Python with what they print: those of the README stand alone, those of a page of the guide go on."""
    found = blocks(page)
    python = [
        (code, output if next_kind == "text" else "")
        for (kind, code), (next_kind, output) in zip(found, [*found[1:], ("", "")], strict=True)
        if kind == "python" and ("pyterrier" not in code or find_spec("pyterrier"))
    ]
    return [[block] for block in python] if page == "README.md" else [python]


@pytest.mark.parametrize("page", PAGES)
def test_a_page_prints_what_it_says(page, tmp_path):
    """All blocks of a page share a folder, so that a later one finds the files of an earlier one."""
    checked = 0
    for program in programs(page):
        code = f"print({BETWEEN!r})\n".join(code for code, _ in program)
        printed = run([sys.executable, "-c", code], tmp_path).split(f"{BETWEEN}\n")
        for (_, expected), found in zip(program, printed, strict=True):
            assert_same_output(found, expected)
            checked += 1
    for block in (block for kind, block in blocks(page) if kind == "console"):
        for command, output in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE):
            binaries = f'export PATH="{Path(sys.executable).parent}:$PATH"; '
            found = run(["bash", "-c", binaries + command], tmp_path)
            assert_same_output(found, output, tolerance=0 if command.startswith("colbert-prf evaluate") else 0.01)
            checked += 1
    assert checked


@pytest.mark.parametrize(
    ("found", "tolerance"), [("p 0.3", 0.01), ("p 0.017", 0), ("q 0.016", 0.01), ("p 0.016 1.0", 0)]
)
def test_another_output_is_noticed(found, tolerance):
    assert_same_output("p 0.016 in 3.1 ms", "p 0.016 in 2.7 ms", tolerance=0)
    with pytest.raises(AssertionError):
        assert_same_output(found, "p 0.016", tolerance=tolerance)


def test_the_map_names_every_room():
    text = README.read_text(encoding="utf-8")
    package = README.parent / "colbert_prf"
    for entry in package.iterdir():
        if entry.name not in {"__init__.py", "__pycache__", "py.typed", "version.py"}:
            assert re.search(rf"^\s+{re.escape(entry.name)}/?\s", text, re.MULTILINE), entry.name


def test_the_front_page_is_short():
    assert len(README.read_text(encoding="utf-8").splitlines()) <= 200
