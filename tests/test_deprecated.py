"""Old names work and warn; everything they point to is there."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module

import pytest

import colbert_prf
from colbert_prf import ColbertPRF, MemoryIndex, Searcher
from colbert_prf.deprecated import MODULES, NAMES


@pytest.mark.parametrize("name", NAMES)
def test_old_names_of_the_root_warn_and_are_what_they_were(name):
    expected = getattr(import_module(NAMES[name]), name)
    if name == "EndToEnd":
        assert colbert_prf.EndToEnd is expected
        return
    with pytest.warns(DeprecationWarning, match=f"from {NAMES[name]} import {name}") as warned:
        assert getattr(colbert_prf, name) is expected
    assert warned[0].filename == __file__


def test_a_name_that_never_was_is_none():
    with pytest.raises(AttributeError, match="'colbert_prf' has no attribute 'Bm25'"):
        colbert_prf.Bm25  # noqa: B018
    with pytest.raises(ImportError, match="cannot import name 'Bm25'"):
        from colbert_prf import Bm25  # noqa: F401


@pytest.fixture
def forgotten():
    """The old modules as a new process has them."""
    before = dict(sys.modules)
    yield
    for name in [name for name in sys.modules if name not in before]:
        del sys.modules[name]


@pytest.mark.parametrize("old", [*MODULES, "lexical.bm25", "rerank.pair_scorer", "single_vector.index"])
def test_old_modules_warn_and_are_the_new_ones(old, forgotten):
    first, _, rest = old.partition(".")
    new = MODULES.get(old) or f"{MODULES[first]}.{rest}"
    module = import_module(f"colbert_prf.{new}")
    with pytest.warns(DeprecationWarning, match="has moved to") as warned:
        assert import_module(f"colbert_prf.{old}") is module
    assert f"colbert_prf.{old} has moved to colbert_prf.{new}" in [str(warning.message) for warning in warned]
    assert module.__name__ == module.__spec__.name == f"colbert_prf.{new}"


def test_a_statement_that_imports_an_old_module_is_named(forgotten):
    with pytest.warns(DeprecationWarning, match="moved") as warned:
        from colbert_prf.paper import PaperEngine  # noqa: F401
    assert warned[0].filename == __file__


def test_an_unknown_module_is_still_unknown():
    with pytest.raises(ModuleNotFoundError, match=r"colbert_prf\.lexicon"):
        import_module("colbert_prf.lexicon")


def test_end_to_end_is_a_searcher_with_defaults():
    searcher = Searcher(MemoryIndex.create([("a", "Goldfish grow."), ("b", "Bank rates fell.")]))
    with pytest.warns(DeprecationWarning, match="a Searcher is a Retriever") as warned:
        system = colbert_prf.EndToEnd(searcher, feedback=ColbertPRF(), threads=1)
    assert warned[0].filename == __file__
    assert isinstance(system, Searcher)
    assert (system.options.k, system.options.feedback, system.options.threads) == (1000, ColbertPRF(), 1)


def test_new_names_do_not_warn():
    code = "import colbert_prf, colbert_prf.baselines, colbert_prf.cli, colbert_prf.experiments.kinds"
    subprocess.run([sys.executable, "-W", "error::DeprecationWarning:colbert_prf", "-c", code], check=True)
