"""Scores of four packed document vectors and 16 or 8 query vectors in byte arithmetic: the innermost loop of a search.

``vpmaddubsw`` multiplies 32 unsigned bytes (residual codes of a document vector) by 32 signed bytes (a query) at
once, four times what float32 does. LLVM finds that instruction in the portable IR below (a saturating sum of two
widened products).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils

from colbert_prf.kernels.compiled import intrinsic
from colbert_prf.kernels.residuals import GAIN_LOW, GAIN_STEP
from colbert_prf.kernels.simd import (
    BLOCK,
    FLOAT,
    INT8,
    INT16,
    INT32,
    INT64,
    ROWS,
    Arrays,
    int64,
    sum_of_byte_products,
    sum_of_neighbours,
    vector,
)

_BYTES, _SHORTS, _WIDE, _SUMS, _FLOATS = (
    vector(INT8, 32),
    vector(INT16, 16),
    vector(INT32, 16),
    vector(INT32, 8),
    vector(FLOAT, 8),
)


def _short_sums(
    arrays: Arrays, eights: int, length: int, buffer: Any, codes: list[Any], queries: Any, place: Any, width: Any
) -> list[list[Any]]:
    """For each of the rows int16 vectors, two lanes a column: the products of ``length`` dimensions."""
    builder = arrays.builder
    shorts: list[list[Any]] = [[None] * eights for _ in range(ROWS)]
    for step in range(0, length, 4):
        here = builder.add(place, builder.mul(int64(step), width))
        query = [arrays.load(queries, builder.add(here, int64(32 * eight)), _BYTES) for eight in range(eights)]
        for r in range(ROWS):
            four_codes = arrays.load(buffer, builder.add(codes[r], int64(step)), INT32)
            value = builder.bitcast(arrays.splat(four_codes, _SUMS), _BYTES)
            for eight in range(eights):
                term = sum_of_byte_products(arrays, value, query[eight])
                shorts[r][eight] = term if step == 0 else builder.add(shorts[r][eight], term)
    return shorts


def _dot_products(
    arrays: Arrays,
    eights: int,
    buffer: Any,
    row: Any,
    dim: Any,
    planes: Any,
    queries: Any,
    ones: Any,
    width: Any,
    column: Any,
) -> list[list[Any]]:
    """For each of the rows int32 vectors of eight columns, as stack variables."""
    builder = arrays.builder
    sums = arrays.accumulators(ROWS, eights, _SUMS, 0)
    one = builder.sext(arrays.load(ones, int64(0), _SHORTS), _WIDE)
    stride = builder.mul(planes, dim)
    with cgutils.for_range(builder, planes) as plane:
        # The highest plane first: what is there so far is worth sixteen times the next one.
        skipped = builder.mul(builder.sub(builder.sub(planes, plane.index), int64(1)), dim)
        starts = [builder.add(builder.mul(builder.add(row, int64(r)), stride), skipped) for r in range(ROWS)]
        for variable in (variable for of_row in sums for variable in of_row):
            builder.store(builder.shl(builder.load(variable), ir.Constant(_SUMS, [4] * 8)), variable)
        whole = builder.and_(dim, int64(-BLOCK))
        for begin, end, length in ((int64(0), whole, BLOCK), (whole, dim, BLOCK // 2)):
            with cgutils.for_range_slice(builder, begin, end, int64(length), INT64, inc=True) as (block, _):
                codes = [builder.add(start, block) for start in starts]
                place = builder.add(builder.mul(block, width), builder.mul(column, int64(4)))
                shorts = _short_sums(arrays, eights, length, buffer, codes, queries, place, width)
                for of_row, short in zip(sums, shorts, strict=True):
                    for variable, value in zip(of_row, short, strict=True):
                        total = builder.add(builder.load(variable), sum_of_neighbours(arrays, value, one))
                        builder.store(total, variable)
    return sums


def _raise_best(
    arrays: Arrays,
    sums: list[Any],
    query: list[Any],
    width: Any,
    column: Any,
    store: list[Any],
    position: Any,
    best: Any,
) -> None:
    """Turn the dot products of one document vector into scores, and raise ``best`` to them."""
    builder = arrays.builder
    _, factors, constants, table, _ = query
    codes, _, scales, _ = store
    byte = builder.mul(position, int64(2))
    scale = arrays.splat(builder.uitofp(arrays.element(scales, byte), FLOAT), _FLOATS)
    steps = builder.uitofp(arrays.element(scales, builder.add(byte, int64(1))), FLOAT)
    gain = builder.fadd(builder.fmul(steps, _constant(GAIN_STEP)), _constant(GAIN_LOW))
    gain = arrays.splat(gain, _FLOATS)
    centroid = builder.mul(arrays.element(codes, position), width)
    for eight, variable in enumerate(sums):
        j = builder.add(column, int64(8 * eight))
        dot = builder.fmul(builder.sitofp(builder.load(variable), _FLOATS), arrays.load(factors, j, _FLOATS))
        residual = builder.fmul(builder.fadd(dot, arrays.load(constants, j, _FLOATS)), scale)
        score = builder.fmul(builder.fadd(residual, arrays.load(table, builder.add(centroid, j), _FLOATS)), gain)
        arrays.store(_larger(builder, score, arrays.load(best, j, _FLOATS)), best, j)


def _larger(builder: ir.IRBuilder, first: Any, second: Any) -> Any:
    """The larger of each lane. A comparison and a selection would become a masked store, which takes AMD 20 cycles."""
    kind = ir.FunctionType(_FLOATS, [_FLOATS, _FLOATS])
    function: Any = cgutils.get_or_insert_function
    maximum = function(builder.module, kind, "llvm.maxnum.v8f32")
    return builder.call(maximum, [first, second], fastmath=["nnan", "nsz"])


def _constant(value: np.float32) -> ir.Constant:
    return ir.Constant(FLOAT, float(value))


def _code_tile(eights: int) -> Any:
    @intrinsic
    def code_tile(
        _context: Any,
        buffer: Any,
        row: Any,
        dim: Any,
        planes: Any,
        query: Any,
        width: Any,
        column: Any,
        store: Any,
        first: Any,
        count: Any,
        best: Any,
    ) -> Any:
        number = types.int64
        signature = types.void(buffer, number, number, number, query, number, number, store, number, number, best)

        def generate(context: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> Any:
            arrays = Arrays(context, builder, signature, values)
            buffer, row, dim, planes, query, width, column, store, first, count, best = arrays
            sums = _dot_products(arrays, eights, buffer, row, dim, planes, query[0], query[4], width, column)
            for r in range(ROWS):
                with builder.if_then(builder.icmp_signed("<", int64(r), count)):
                    _raise_best(arrays, sums[r], query, width, column, store, builder.add(first, int64(r)), best)
            return context.get_dummy_value()

        return signature, generate

    return code_tile


code_tile_16 = _code_tile(2)
"""Raise ``best`` to the scores of up to four document vectors, for the query columns ``column`` to ``column + 15``.

Arguments are (buffer, row, dim, planes, query, width, column, store, first, count, best). For each column j and
r in 0 .. min(4, count) - 1::

    code[d] = sum(16**plane * buffer[row + r, plane, d] for plane in range(planes))
    dot = sum(code[d] * queries[d // 4, j, d % 4] for d in range(dim))
    score = table[codes[first + r], j] + scales[first + r, 0] * (factors[j] * dot + constants[j])
    score = score * (GAIN_LOW + GAIN_STEP * scales[first + r, 1])
    best[j] = max(best[j], score)

``buffer`` (rows, planes, dim) uint8 of at most 15 and ``best`` (width,) float32. ``query`` consists of ``queries``
(dim / 4, width, 4) int8, ``factors`` and ``constants`` (width,) float32, ``table`` (num_centroids, width) float32 and
``ones`` (16,) int16; ``store`` of ``codes``, unsigned integers, ``packed``, which is not used here, ``scales``
(num_vectors, 2) uint8 and ``offsets``, not used either. ``dim`` is a multiple of 16.
"""
code_tile_8 = _code_tile(1)
"""The same for the columns ``column`` to ``column + 7``."""
