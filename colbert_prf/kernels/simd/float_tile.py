"""Inner products of four vectors with 16 or 32 others, in float32: a tile of a matrix product.

BLAS multiplies large matrices as fast. It is not used where a search waits: its threads are its own, wait whole time
slices on a busy machine, and a product may change in its last bits with the number of threads or of columns. Each
product here is one chain of additions over the dimensions, in their order, whatever else is multiplied.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils

from colbert_prf.kernels.compiled import intrinsic
from colbert_prf.kernels.simd.ir import FLOAT, INT64, VectorBuilder, int64, vector
from colbert_prf.kernels.simd.layout import ROWS

__all__ = ["float_tile", "float_tile_32"]


def _float_tile(columns: int) -> Any:
    @intrinsic
    def float_tile(
        _context: Any,
        vectors: Any,
        row: Any,
        dim: Any,
        queries: Any,
        start: Any,
        stride: Any,
        out: Any,
        target: Any,
        out_stride: Any,
    ) -> Any:
        integer = types.int64
        signature = types.void(vectors, integer, integer, queries, integer, integer, out, integer, integer)

        def generate(context: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> Any:
            code = VectorBuilder(context, builder, signature, values)
            vectors, row, dim, queries, start, stride, out, target, out_stride = code
            lanes = 16 if "+avx512f" in code.features else 8
            registers = min(2, columns // lanes)  # of queries at once; each has a sum with every row
            floats, starts = vector(FLOAT, lanes), [builder.mul(builder.add(row, int64(r)), dim) for r in range(ROWS)]
            for column in range(0, columns, registers * lanes):
                offsets = [int64(column + lanes * i) for i in range(registers)]
                sums = code.accumulators(ROWS, registers, floats, 0.0)
                with cgutils.for_range_slice(builder, int64(0), dim, int64(1), INT64, inc=True) as (d, _):
                    base = builder.add(start, builder.mul(d, stride))
                    query = [code.load(queries, builder.add(base, offset), floats) for offset in offsets]
                    for r in range(ROWS):
                        value = code.splat(code.load(vectors, builder.add(starts[r], d), FLOAT), floats)
                        for i in range(registers):
                            product = builder.fmul(value, query[i], flags=["contract"])
                            total = builder.fadd(product, builder.load(sums[r][i]), flags=["contract"])
                            builder.store(total, sums[r][i])
                for r in range(ROWS):
                    position = builder.add(target, builder.mul(int64(r), out_stride))
                    for total, offset in zip(sums[r], offsets, strict=True):
                        code.store(builder.load(total), out, builder.add(position, offset))
            return context.get_dummy_value()

        return signature, generate

    return float_tile


float_tile = _float_tile(16)
"""Multiply four vectors with sixteen queries.

Arguments are (vectors, row, dim, queries, start, stride, out, target, out_stride), float32 code and flat indices. For
r in 0..3 and j in 0..15::

    products = (vectors[(row + r) * dim + d] * queries[start + d * stride + j] for d in range(dim))
    out[target + r * out_stride + j] = sum(products)
"""
float_tile_32 = _float_tile(32)
"""The same for 32 queries."""
