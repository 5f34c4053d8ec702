"""Arrays in, arrays out: the arithmetic of late interaction, each kernel beside its plain NumPy definition.

A module of kernels loads numba, and that takes half a second. ``from colbert_prf.kernels import exact`` does not load
it: the name stands for the module, which is imported when something of it is used. So other rooms name their kernels at
the top of a file, and importing the package stays fast. ``from colbert_prf.kernels.packed import maxsim_of_packed``
loads it at once; kernels import each other that way.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

_MODULES = frozenset(file.stem for file in Path(__file__).parent.glob("[!_]*.py"))


class _Later:
    """Stands for a module, and imports it when something of it is used."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        object.__setattr__(self, "_name", name)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # whoever looks at the object itself, as doctest does
            raise AttributeError(name)
        return getattr(importlib.import_module(self._name), name)

    def __setattr__(self, name: str, value: object) -> None:
        setattr(importlib.import_module(self._name), name, value)

    def __repr__(self) -> str:
        return f"<{self._name}, imported when it is used>"


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return _Later(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
