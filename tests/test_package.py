"""What a user gets: the public names, a light import, a small install."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

import colbert_prf

HEAVY = [
    "faiss",
    "numba",
    "torch",
    "transformers",
    "sentence_transformers",
    "matplotlib",
    "scipy",
    "ir_measures",
    "pyterrier",
    "pandas",
    "fastapi",
    "httpx",
    "pydantic",
    "mcp",
]


def test_all_is_what_is_visible():
    modules = {name for name, value in vars(colbert_prf).items() if type(value).__name__ == "module"}
    visible = {name for name in vars(colbert_prf) if not name.startswith("_")} - modules
    assert visible | {"__version__"} == set(colbert_prf.__all__)
    assert sorted(colbert_prf.__all__) == colbert_prf.__all__
    assert len(colbert_prf.__all__) <= 24


def test_the_package_runs_as_a_command():
    done = subprocess.run(
        [sys.executable, "-m", "colbert_prf", "--version"], capture_output=True, text=True, check=True
    )
    assert colbert_prf.__version__ in done.stdout


@pytest.mark.parametrize("statement", ["import colbert_prf", "import colbert_prf.cli"])
def test_importing_loads_nothing_heavy(statement):
    code = f"import sys; {statement}; print([name for name in {HEAVY} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_kernels_are_named_without_being_loaded():
    code = """
import sys
from colbert_prf.kernels import compiled
print(compiled, "numba" in sys.modules)
compiled.intrinsic
from colbert_prf.kernels import compiled
print("numba" in sys.modules, type(compiled).__name__)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["<colbert_prf.kernels.compiled, imported when it is used> False", "True module"]


def test_kernels_that_are_not_there_are_no_modules():
    with pytest.raises(ImportError, match="cannot import name 'nowhere'"):
        from colbert_prf.kernels import nowhere  # noqa: F401
    with pytest.raises(AttributeError, match="nowhere"):
        importlib.import_module("colbert_prf.kernels").topk.nowhere  # noqa: B018


def core_distributions() -> dict[str, metadata.Distribution]:
    """The package and, transitively, everything it needs without extras."""
    found: dict[str, metadata.Distribution] = {}
    waiting = ["colbert-prf"]
    while waiting:
        name = re.sub(r"[-_.]+", "-", waiting.pop()).lower()
        if name in found:
            continue
        try:
            found[name] = metadata.distribution(name)
        except metadata.PackageNotFoundError:  # behind a marker for another platform
            continue
        needed = [requirement for requirement in found[name].requires or [] if "extra ==" not in requirement]
        waiting += [re.match(r"[\w.-]+", requirement)[0] for requirement in needed]
    return found


def test_the_core_install_is_small_and_has_no_torch():
    core = core_distributions()
    assert {"faiss-cpu", "numpy", "onnxruntime", "tokenizers"} <= core.keys()
    assert not core.keys() & {"torch", "transformers", "sentence-transformers", "matplotlib", "pandas"}
    sizes = {
        name: sum(path.stat().st_size for file in distribution.files or [] if (path := Path(file.locate())).is_file())
        for name, distribution in core.items()
    }
    sizes["colbert-prf"] = sum(
        # What numba compiled is not part of an install.
        path.stat().st_size
        for path in Path(colbert_prf.__file__).parent.rglob("*.*")
        if "__pycache__" not in path.parts
    )
    assert sum(sizes.values()) < 700e6, sizes


def test_the_package_is_typed_and_has_one_version():
    assert Path(colbert_prf.__file__).with_name("py.typed").is_file()
    assert colbert_prf.__version__ == metadata.version("colbert-prf")
