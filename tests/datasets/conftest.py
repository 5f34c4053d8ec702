"""The files, the standard input and the ir_datasets that these tests make up."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture
def written(tmp_path: Path) -> Callable[[str, str | bytes], Path]:
    """Write a file and return its path."""

    def write(name: str, content: str | bytes) -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


@pytest.fixture
def standard_input(monkeypatch: pytest.MonkeyPatch) -> Callable[[bytes], None]:
    """Replace standard input by the given bytes."""

    def replace(content: bytes) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))

    return replace


class FakeDataset:
    """Parts of a dataset by the names of ir_datasets: docs, queries, qrels, scoreddocs."""

    def __init__(self, **parts: list[object]) -> None:
        self.parts = parts

    def __getattr__(self, name: str) -> Callable[[], object]:
        if name.startswith("has_"):
            return lambda: name.removeprefix("has_") in self.parts
        return lambda: iter(self.parts[name.removesuffix("_iter")])


class FailingDataset(FakeDataset):
    """A dataset whose download fails."""

    def __getattr__(self, name: str) -> Callable[[], object]:
        def fail() -> Iterator[object]:
            raise ConnectionError("no network")
            yield

        return fail if name.endswith("_iter") else lambda: True


@pytest.fixture
def irds(monkeypatch: pytest.MonkeyPatch) -> dict[str, FakeDataset]:
    """Replace ir_datasets by a module that knows the datasets put into this dict, and one called "failing"."""
    datasets: dict[str, FakeDataset] = {"failing": FailingDataset()}
    module = ModuleType("ir_datasets")
    module.load = datasets.__getitem__
    monkeypatch.setitem(sys.modules, "ir_datasets", module)
    return datasets


@pytest.fixture
def fake_dataset() -> type[FakeDataset]:
    return FakeDataset
