from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

from colbert_prf.kernels import compiled

CALLED = """
from copied_kernels.compiled import compiled

@compiled()
def step(x):
    return x + {number}
"""
CALLER = """
from copied_kernels.called import step
from copied_kernels.compiled import compiled

@compiled()
def two_steps(x):
    return step(step(x))
"""


@pytest.fixture
def kernels(tmp_path, monkeypatch) -> Path:
    """A package of two kernels in two files, of which one calls the other."""
    folder = tmp_path / "copied_kernels"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "compiled.py").write_text(Path(compiled.__file__).read_text(encoding="utf-8"), encoding="utf-8")
    (folder / "called.py").write_text(CALLED.format(number=1))
    (folder / "caller.py").write_text(CALLER)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    return folder


def two_steps():
    """The kernel, as a new process imports it."""
    for name in [name for name in sys.modules if name.startswith("copied_kernels")]:
        del sys.modules[name]
    importlib.invalidate_caches()
    return importlib.import_module("copied_kernels.caller").two_steps


def test_machine_code_is_kept_until_any_kernel_changes(kernels):
    assert two_steps()(0) == 2
    again = two_steps()
    assert again(0) == 2
    assert sum(again.stats.cache_hits.values()) == 1
    (kernels / "called.py").write_text(CALLED.format(number=5))
    changed = two_steps()
    assert changed(0) == 10
    assert not changed.stats.cache_hits


def test_where_nothing_can_be_written_kernels_still_run(kernels, tmp_path, monkeypatch):
    """A file where the folder of machine code would be; the user's own folder is taken instead."""
    (kernels / "__pycache__").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert two_steps()(0) == 2
    assert sum(len(list(tmp_path.rglob(pattern))) for pattern in ("*.nbi", "*.nbc")) >= 2
