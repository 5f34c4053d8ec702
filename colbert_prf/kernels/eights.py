"""Eight sketches, side by side, compared with one vector in byte arithmetic: the innermost loop of F_t.

The residual codes of eight vectors are interleaved, four dimensions of each in a lane of 32 bits; see
:mod:`colbert_prf.kernels.sketches`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils

from colbert_prf.kernels.compiled import intrinsic
from colbert_prf.kernels.residuals import GAIN_LOW, GAIN_STEP
from colbert_prf.kernels.simd import FLOAT, INT8, INT32, INT64, Arrays, add_dot_products, int64, look_up, vector
from colbert_prf.kernels.walks import TOP, WALK

__all__ = ["compare_eight_bits", "compare_eight_pairs", "compare_eight_walks"]

_INTS, _FLOATS = vector(INT32, 8), vector(FLOAT, 8)


def _products(
    arrays: Arrays, bits: int, walks: bool, packed: Any, start: Any, chunks: Any, values: Any, first: Any
) -> Any:
    """The products of eight packed vectors and one vector of bytes, int32."""
    builder = arrays.builder
    total = arrays.accumulators(1, 1, _INTS, 0)[0][0]
    masks = ir.Constant(_INTS, [(TOP if walks else (1 << bits) - 1) * 0x01010101] * 8)
    with cgutils.for_range_slice(builder, int64(0), chunks, int64(1), INT64, inc=True) as (chunk, _):
        row = arrays.load(packed, builder.add(start, builder.mul(chunk, int64(32))), _INTS)
        place = builder.add(first, builder.mul(chunk, int64(4 * (8 // bits))))
        terms = []
        for plane in range(8 // bits):
            shift = ir.Constant(_INTS, [plane * bits] * 8)
            turned = arrays.call("llvm.fshr.v8i32", _INTS, row, row, shift) if walks else builder.lshr(row, shift)
            codes = builder.and_(turned, masks)
            codes = look_up(arrays, codes, WALK) if walks else codes
            four = arrays.load(values, builder.add(place, int64(4 * plane)), INT32)
            terms.append((codes, arrays.splat(four, _INTS)))
        builder.store(add_dot_products(arrays, builder.load(total), terms), total)
    return builder.load(total)


def _floats(arrays: Arrays, column: Any, place: Any) -> Any:
    """Eight bytes as floats."""
    return arrays.builder.uitofp(arrays.load(column, place, vector(INT8, 8)), _FLOATS)


def _constant(value: np.float32) -> ir.Constant:
    return ir.Constant(_FLOATS, [float(value)] * 8)


def _compare_eight(bits: int, *, walks: bool = False) -> Any:
    @intrinsic
    def compare_eight(
        _context: Any,
        sketches: Any,
        block: Any,
        chunks: Any,
        values: Any,
        first: Any,
        factor: Any,
        constant: Any,
        score: Any,
        least: Any,
        near: Any,
    ) -> Any:
        number, real = types.int64, types.float32
        signature = types.boolean(sketches, number, number, values, number, real, real, real, real, near)

        def generate(context: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> Any:
            arrays = Arrays(context, builder, signature, values)
            sketches, block, chunks, values, first, factor, constant, score, least, near = arrays
            _, _, packed, scales, gains = sketches
            start = builder.mul(block, builder.mul(chunks, int64(32)))
            total = builder.sitofp(_products(arrays, bits, walks, packed, start, chunks, values, first), _FLOATS)
            place = builder.mul(block, int64(8))
            residual = builder.fadd(builder.fmul(arrays.splat(factor, _FLOATS), total), arrays.splat(constant, _FLOATS))
            residual = builder.fmul(_floats(arrays, scales, place), residual)
            gain = builder.fadd(_constant(GAIN_LOW), builder.fmul(_constant(GAIN_STEP), _floats(arrays, gains, place)))
            similarity = builder.fmul(gain, builder.fadd(arrays.splat(score, _FLOATS), residual))
            arrays.store(similarity, near, int64(0))
            enough = builder.fcmp_ordered(">=", similarity, arrays.splat(least, _FLOATS))
            return arrays.call("llvm.vector.reduce.or.v8i1", ir.IntType(1), enough)

        return signature, generate

    return compare_eight


compare_eight_bits = _compare_eight(1)
"""The similarities of one vector and eight sketches of one bit, into ``near`` (8,): whether any is at least ``least``.

Arguments are (sketches, block, chunks, values, first, factor, constant, score, least, near); ``sketches`` is
:class:`~.sketches.Sketches`, in which eight times ``block`` is the first of the eight. A chunk is 32 bytes, four of
each vector, and each of its eight planes of bits has four dimensions of each::

    code = (packed[block, chunk, v, d] >> plane) & 1
    total[v] = sum over chunk, plane and d of values[first + 32 * chunk + 4 * plane + d] * code
    near[v] = (GAIN_LOW + GAIN_STEP * gains[v]) * (score + scales[v] * (factor * total[v] + constant))
"""
compare_eight_pairs = _compare_eight(2)
"""The same for codes of two bits in four planes, ``& 3`` and ``values[first + 16 * chunk + 4 * plane + d]``."""
compare_eight_walks = _compare_eight(2, walks=True)
"""The same for walks (:mod:`.walks`), of which a chunk has one of each vector: ``WALK[code]`` is multiplied."""
