"""Sixteen sketches, side by side, compared with one vector in byte arithmetic: the innermost loop of F_t.

The residual codes of sixteen vectors are interleaved, four dimensions of each in a lane of 32 bits; see
:mod:`colbert_prf.kernels.sketches`.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils

from colbert_prf.kernels.compiled import intrinsic
from colbert_prf.kernels.residuals import GAIN_LOW, GAIN_STEP
from colbert_prf.kernels.simd import FLOAT, INT8, INT32, INT64, Arrays, add_dot_products, int64, look_up, vector
from colbert_prf.kernels.trellis import TOP, TRELLIS

__all__ = ["compare_sixteen_pairs", "compare_sixteen_paths"]

_SIXTEEN = 16


class _Comparison:
    """The IR that compares as many sketches as there are lanes in a register: all sixteen, or half of them."""

    def __init__(self, arrays: Arrays, bits: int, *, trellis: bool) -> None:
        self.arrays, self.builder, self.bits, self.trellis = arrays, arrays.builder, bits, trellis
        self.count = _SIXTEEN if arrays.multiplies_fours else _SIXTEEN // 2
        self.ints, self.floats = vector(INT32, self.count), vector(FLOAT, self.count)

    def products(self, packed: Any, start: Any, chunks: Any, values: Any) -> Any:
        """The products of packed vectors and one vector of bytes, int32."""
        arrays, builder, planes = self.arrays, self.builder, 8 // self.bits
        # Where products are added as they are made, a sum for each plane, so that none waits for the one before.
        totals = arrays.accumulators(1, planes if arrays.multiplies_fours else 1, self.ints, 0)[0]
        with cgutils.for_range_slice(builder, int64(0), chunks, int64(1), INT64, inc=True) as (chunk, _):
            row = arrays.load(packed, builder.add(start, builder.mul(chunk, int64(4 * _SIXTEEN))), self.ints)
            place = builder.mul(chunk, int64(4 * planes))
            terms = []
            for plane in range(planes):
                four = arrays.load(values, builder.add(place, int64(4 * plane)), INT32)
                terms.append((self.codes(row, plane), arrays.splat(four, self.ints)))
            for number, total in enumerate(totals):
                own = terms[number :: len(totals)]
                builder.store(add_dot_products(arrays, builder.load(total), own), total)
        return reduce(builder.add, [builder.load(total) for total in totals])

    def codes(self, row: Any, plane: int) -> Any:
        """The codes of one plane, four a lane."""
        builder = self.builder
        shift, masks = (
            ir.Constant(self.ints, [number] * self.count)
            for number in (plane * self.bits, (TOP if self.trellis else (1 << self.bits) - 1) * 0x01010101)
        )
        if not self.trellis:
            return builder.and_(builder.lshr(row, shift), masks)
        turned = self.arrays.call(f"llvm.fshr.v{self.count}i32", self.ints, row, row, shift)
        return look_up(self.arrays, builder.and_(turned, masks), TRELLIS)

    def bytes_as_floats(self, column: Any, place: Any) -> Any:
        """As many bytes of a column."""
        return self.builder.uitofp(self.arrays.load(column, place, vector(INT8, self.count)), self.floats)

    def constant(self, value: np.float32) -> ir.Constant:
        """A number in every lane."""
        return ir.Constant(self.floats, [float(value)] * self.count)


def _compare_sixteen(bits: int, *, trellis: bool = False) -> Any:
    @intrinsic
    def compare_sixteen(
        _context: Any,
        sketches: Any,
        block: Any,
        chunks: Any,
        values: Any,
        factor: Any,
        constant: Any,
        score: Any,
        least: Any,
        near: Any,
    ) -> Any:
        number, real = types.int64, types.float32
        signature = types.boolean(sketches, number, number, values, real, real, real, real, near)

        def generate(context: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> Any:
            arrays = Arrays(context, builder, signature, values)
            sketches, block, chunks, values, factor, constant, score, least, near = arrays
            _, _, packed, scales, gains = sketches
            own = _Comparison(arrays, bits, trellis=trellis)
            enough = None
            for lane in range(0, _SIXTEEN, own.count):
                start = builder.add(builder.mul(block, builder.mul(chunks, int64(4 * _SIXTEEN))), int64(4 * lane))
                total = builder.sitofp(own.products(packed, start, chunks, values), own.floats)
                place = builder.add(builder.mul(block, int64(_SIXTEEN)), int64(lane))
                residual = builder.fmul(arrays.splat(factor, own.floats), total)
                residual = builder.fadd(residual, arrays.splat(constant, own.floats))
                residual = builder.fmul(own.bytes_as_floats(scales, place), residual)
                gain = builder.fmul(own.constant(GAIN_STEP), own.bytes_as_floats(gains, place))
                gain = builder.fadd(own.constant(GAIN_LOW), gain)
                similarity = builder.fmul(gain, builder.fadd(arrays.splat(score, own.floats), residual))
                arrays.store(similarity, near, int64(lane))
                here = builder.fcmp_ordered(">=", similarity, arrays.splat(least, own.floats))
                enough = here if enough is None else builder.or_(enough, here)
            return arrays.call(f"llvm.vector.reduce.or.v{own.count}i1", ir.IntType(1), enough)

        return signature, generate

    return compare_sixteen


compare_sixteen_pairs = _compare_sixteen(2)
"""The similarities of one vector and sixteen sketches of two bits, into ``near`` (16,): is any at least ``least``?

Arguments are (sketches, block, chunks, values, factor, constant, score, least, near); ``sketches`` is
:class:`~.sketches.Sketches`, in which sixteen times ``block`` is the first of the sixteen. A chunk is 64 bytes, four of
each vector, and each of its four planes of bits has four dimensions of each::

    code = (packed[block, chunk, v, d] >> 2 * plane) & 3
    total[v] = sum over chunk, plane and d of values[16 * chunk + 4 * plane + d] * code
    near[v] = (GAIN_LOW + GAIN_STEP * gains[v]) * (score + scales[v] * (factor * total[v] + constant))
"""
compare_sixteen_paths = _compare_sixteen(2, trellis=True)
"""The same for paths (:mod:`.trellis`), of which a chunk has one of each vector: ``TRELLIS[code]`` is multiplied."""
