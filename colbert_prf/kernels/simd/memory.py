"""Two operations on memory that numba has no words for: a prefetch, and a counter that threads share."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types

from colbert_prf.kernels.compiled import intrinsic
from colbert_prf.kernels.simd.ir import VectorBuilder

__all__ = ["AHEAD", "prefetch", "take"]

AHEAD = 8
"""How many rows ahead a loop over rows that lie anywhere prefetches."""


@intrinsic
def prefetch(_context: Any, array: Any, index: Any) -> Any:
    """Prefetch the cache line of the element ``index`` of an array; it may lie outside, and nothing is read."""
    signature = types.void(array, types.int64)

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> Any:
        code = VectorBuilder(context, builder, signature, values)
        code.prefetch(*code)
        return context.get_dummy_value()

    return signature, generate


@intrinsic
def take(_context: Any, counter: Any, count: Any) -> Any:
    """Take the next ``count`` items: add to ``counter[0]``, int64, atomically, and return what it was before."""
    signature = types.int64(counter, types.int64)

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> Any:
        counter, count = VectorBuilder(context, builder, signature, values)
        return builder.atomic_rmw("add", counter, count, "acq_rel")

    return signature, generate
