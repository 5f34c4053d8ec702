"""Numba behind typed decorators: machine code kept on disk, the interpreter lock released, no threads of its own.

Kernels take a range and leave threads to :mod:`colbert_prf.kernels.workers`: numba's own threading layer aborts the
process when two Python threads enter it at once. Annotations are for people and mypy; numba compiles for the types it
is given.

Numba keeps the machine code of a kernel until the file of that kernel changes, and does not see that a kernel it calls,
in another file, has changed. Here the machine code of all kernels is compiled again when the source of any changes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias, TypeVar, cast

import numba
import numba.extending
import numpy as np

__all__ = ["Array", "compiled", "intrinsic"]

Function = TypeVar("Function", bound=Callable[..., Any])

Array: TypeAlias = "np.ndarray[Any, Any]"
"""An array whose shape and dtype the docstring of the public function says."""


def compiled(*, fastmath: bool | set[str] = False) -> Callable[[Function], Function]:
    """Compile a function with numba on its first call, and keep the result where numba keeps it.

    Parameters
    ----------
    fastmath
        Liberties with floating point, where they are harmless: all of them, or LLVM's names of some.
    """

    def compile_later(function: Function) -> Function:
        kernel: Any = numba.njit(cache=True, nogil=True, error_model="numpy", fastmath=fastmath)(function)
        kept = kernel._cache._cache_file
        kept._source_stamp = (kept._source_stamp, _digest_of_sources())
        return cast("Function", kernel)

    return compile_later


@cache
def _digest_of_sources() -> str:
    """A name for the sources of all kernels as they are."""
    folder, digest = Path(__file__).parent, hashlib.sha256()
    for file in sorted(folder.rglob("*.py")):
        digest.update(f"{file.relative_to(folder)}\n".encode() + file.read_bytes())
    return digest.hexdigest()


def intrinsic(function: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a function that writes LLVM IR for the kernels that call it, which do not pass its first argument."""
    return cast("Callable[..., Any]", numba.extending.intrinsic(function))
