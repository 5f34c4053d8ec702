"""A room imports only from the rooms below it: the order of DESIGN, read off the sources."""

from __future__ import annotations

import ast
from pathlib import Path

import colbert_prf

PACKAGE = Path(colbert_prf.__file__).parent
ROOMS = [
    "version",
    "deprecated",
    "errors",
    "types",
    "progress",
    "kernels",
    "encoder",
    "storage",
    "index",
    "feedback",
    "search",
    "plots",
    "datasets",
    "baselines",
    "evaluation",
    "experiments",
    "training",
    "pyterrier",
    "demo",
    "distributed",
    "server",
    "client",
    "cli",
    "__main__",
]
"""Lowest first."""

ARRAYS_AND_THREADS = {
    "__future__",
    "collections",
    "concurrent",
    "functools",
    "hashlib",
    "importlib",
    "llvmlite",
    "numba",
    "numpy",
    "pathlib",
    "threading",
    "typing",
}
FILES = sorted(file for file in PACKAGE.rglob("*.py") if file != PACKAGE / "__init__.py")


def room_of(file: Path) -> str:
    return file.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported_modules(file: Path) -> set[str]:
    modules = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: relative import"
            modules.add(node.module or "")
        elif isinstance(node, ast.Import):
            modules.update(alias.name for alias in node.names)
    return modules


def imported_packages(file: Path) -> set[str]:
    return {module.split(".")[0] for module in imported_modules(file)}


def test_a_room_imports_only_from_lower_rooms():
    for file in FILES:
        own = ROOMS.index(room_of(file))
        for module in imported_modules(file):
            if module.split(".")[0] == "colbert_prf":
                assert module != "colbert_prf", f"{file} imports the package itself"
                other = module.split(".")[1]
                assert ROOMS.index(other) <= own, f"{file}: {room_of(file)} must not import from {other}"


def test_every_room_is_in_the_order():
    assert {room_of(file) for file in FILES} == set(ROOMS)


def test_llvm_stays_in_one_folder():
    users = {file.relative_to(PACKAGE).parent.as_posix() for file in FILES if "llvmlite" in imported_packages(file)}
    assert users == {"kernels/simd"}


def test_kernels_know_arrays_only():
    kernels = [file for file in FILES if room_of(file) == "kernels"]
    assert kernels
    for file in kernels:
        outside = {module for module in imported_modules(file) if not module.startswith("colbert_prf.kernels")}
        assert {module.split(".")[0] for module in outside} <= ARRAYS_AND_THREADS, file
