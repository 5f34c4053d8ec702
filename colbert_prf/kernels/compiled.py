"""Numba behind typed decorators: machine code kept on disk, the interpreter lock released, no threads of its own.

Kernels take a range and leave threads to :mod:`colbert_prf.kernels.parallel`: numba's own threading layer aborts the
process when two Python threads enter it at once. Annotations are for people and mypy; numba compiles for the types it
is given.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar, cast

import numba
import numba.extending
import numpy as np

__all__ = ["Array", "compiled", "intrinsic"]

Function = TypeVar("Function", bound=Callable[..., Any])

Array: TypeAlias = "np.ndarray[Any, Any]"
"""An array whose shape and dtype the docstring of the public function says."""


def compiled(*, fastmath: bool | set[str] = False) -> Callable[[Function], Function]:
    """Compile a function with numba on its first call, and keep the result beside the source.

    Parameters
    ----------
    fastmath
        Liberties with floating point, where they are harmless: all of them, or LLVM's names of some.
    """
    return cast(
        "Callable[[Function], Function]", numba.njit(cache=True, nogil=True, error_model="numpy", fastmath=fastmath)
    )


def intrinsic(function: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a function that writes LLVM IR for the kernels that call it, which do not pass its first argument."""
    return cast("Callable[..., Any]", numba.extending.intrinsic(function))
