"""Products of vectors stored as bytes with a few others: the scores of all centroids for a query.

A component of the query is rounded to 14 bits and written as two digits of 7, so that both fit the byte arithmetic of
:mod:`.simd`; with ``q[d] ≈ unit · (128·high[d] + low[d] - 8192)``, ::

    q · c ≈ unit · (128·Σ_d high[d]·c[d] + Σ_d low[d]·c[d] - 8192·Σ_d c[d])

The sums are exact, so the only error is that of rounding the query, far below that of any residual.
"""

from __future__ import annotations

from concurrent.futures import Executor
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numpy.typing import NDArray

from colbert_prf.kernels.compiled import Array, compiled, intrinsic
from colbert_prf.kernels.interaction import padded
from colbert_prf.kernels.parallel import run
from colbert_prf.kernels.simd import (
    COLUMNS,
    FLOAT,
    INT32,
    INT64,
    ROWS,
    Arrays,
    add_dot_products,
    check_dim,
    int64,
    vector,
)

__all__ = ["multiply_bytes", "multiply_bytes_definition"]

_WORTH_A_THREAD = 2000
"""Tiles that take as long as waking a thread does."""


def _byte_tile(num_digits: int, blocks: int) -> Any:
    @intrinsic
    def byte_tile(
        _context: Any,
        rows: Any,
        row: Any,
        dim: Any,
        sums: Any,
        digits: Any,
        column: Any,
        width: Any,
        units: Any,
        out: Any,
        target: Any,
    ) -> Any:
        integer = types.int64
        signature = types.void(rows, integer, integer, sums, digits, integer, integer, units, out, integer)

        def generate(context: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> Any:
            arrays = Arrays(context, builder, signature, values)
            rows, row, dim, sums, digits, column, width, units, out, target = arrays
            count = 16 if arrays.multiplies_fours else 8
            ints, floats = vector(INT32, count), vector(FLOAT, count)
            numbers = [builder.add(row, int64(r)) for r in range(ROWS)]
            starts = [builder.mul(number, dim) for number in numbers]
            for lane in range(0, COLUMNS, count):
                firsts = [builder.add(column, int64(lane + COLUMNS * block)) for block in range(blocks)]
                totals = arrays.accumulators(ROWS, blocks * num_digits, ints, 0)
                with cgutils.for_range_slice(builder, int64(0), dim, int64(4), INT64, inc=True) as (d, _):
                    places = [builder.add(builder.mul(d, width), builder.mul(first, int64(4))) for first in firsts]
                    high = builder.mul(dim, width)
                    places = [
                        builder.add(place, builder.mul(high, int64(digit)))
                        for place in places
                        for digit in range(num_digits)
                    ]
                    queries = [arrays.load(digits, place, ints) for place in places]
                    for start, own in zip(starts, totals, strict=True):
                        four = arrays.splat(arrays.load(rows, builder.add(start, d), INT32), ints)
                        for query, total in zip(queries, own, strict=True):
                            # One term at a time: two products of seven bits each still fit into 16.
                            builder.store(add_dot_products(arrays, builder.load(total), [(query, four)]), total)
                for block, first in enumerate(firsts):
                    unit = arrays.load(units, first, floats)
                    for r, number in enumerate(numbers):
                        own = totals[r][block * num_digits : (block + 1) * num_digits]
                        middle = ir.Constant(INT32, _middle(num_digits))
                        middle = builder.mul(arrays.load(sums, number, INT32), middle)
                        total = builder.load(own[0])
                        for variable in own[1:]:
                            seven = ir.Constant(ints, [7] * count)
                            total = builder.add(total, builder.shl(builder.load(variable), seven))
                        total = builder.sitofp(builder.sub(total, arrays.splat(middle, ints)), floats)
                        place = builder.add(builder.mul(builder.add(target, int64(r)), width), first)
                        arrays.store(builder.fmul(unit, total), out, place)
            return context.get_dummy_value()

        return signature, generate

    return byte_tile


def _middle(num_digits: int) -> int:
    """Half of what digits of 7 bits can count to."""
    return 1 << (7 * num_digits - 1)


_byte_tile_twice = _byte_tile(2, 1)
"""Inner products of four rows of bytes and sixteen queries, whose components are two digits.

Arguments are (rows, row, dim, sums, digits, column, width, units, out, target): ``rows`` (num_rows, dim) int8 and their
``sums`` (num_rows,) int32; ``digits`` (2, dim / 4, width, 4) uint8, low and high; ``units`` (width,) float32; ``out``
float32 in rows of ``width``. For r in 0..3 and j in ``column`` .. ``column`` + 15::

    total = sum(rows[row + r, d] * (digits[0, d / 4, j, d % 4] + 128 * digits[1, d / 4, j, d % 4]) for d in dims)
    out[target + r, j] = units[j] * (total - 8192 * sums[row + r])
"""


def largest_digits(dim: int, num_digits: int) -> np.float32:
    """The largest number a component is rounded to: no sum of products may exceed 32 bits."""
    return np.float32(min(_middle(num_digits) - 1, ((1 << 31) - 1) // (127 * dim)))


@compiled()
def round_to_digits(queries: Array, top: np.float32, digits: Array, units: Array) -> None:
    """Round queries (num_queries, dim) to digits of 7 bits, of which the largest number is ``top``.

    ``digits`` (num_digits, dim / 4, width, 4) uint8 and ``units`` (width,) float32 stay what they are in other columns.
    """
    middle = 1 << (7 * digits.shape[0] - 1)
    for i in range(queries.shape[0]):
        largest = np.float32(1e-30)
        for value in queries[i]:
            largest = max(largest, abs(value))
        units[i] = largest / top
        for d in range(queries.shape[1]):
            rounded = np.int32(np.rint(queries[i, d] / units[i])) + middle
            for digit in range(digits.shape[0]):
                digits[digit, d // 4, i, d % 4] = (rounded >> (7 * digit)) & 127


@compiled()
def _products(rows: Array, sums: Array, digits: Array, units: Array, start: int, stop: int, out: Array) -> None:
    num_rows, dim = rows.shape
    width = out.shape[1]
    for tile in range(start, stop):
        # The last tile overlaps the one before rather than reading past the end.
        row = min(tile * ROWS, num_rows - ROWS)
        for column in range(0, width, COLUMNS):
            _byte_tile_twice(rows, row, dim, sums, digits, column, width, units, out, row)


def multiply_bytes_definition(rows: NDArray[np.int8], queries: NDArray[np.float32]) -> NDArray[np.float32]:
    """The definition of :func:`multiply_bytes` in NumPy."""
    units = np.maximum(np.abs(queries).max(axis=1), np.float32(1e-30)) / largest_digits(queries.shape[1], 2)
    rounded = np.rint(queries / units[:, None]).astype(np.int64)
    out = np.zeros((len(rows), padded(len(queries))), np.float32)
    out[:, : len(queries)] = units * (rows.astype(np.int64) @ rounded.T).astype(np.float32)
    return out


def multiply_bytes(
    rows: NDArray[np.int8],
    sums: NDArray[np.int32],
    queries: NDArray[np.float32],
    *,
    threads: int = 1,
    executor: Executor | None = None,
) -> NDArray[np.float32]:
    """``rows @ queries.T``, nearly, with the columns padded by zeros to a multiple of 16.

    Parameters
    ----------
    rows : int8 of shape (num_rows, dim), from -127 to 127
        ``dim`` is a multiple of 16.
    sums : int32 of shape (num_rows,)
        Of the components of each row.
    queries : float32 of shape (num_queries, dim)

    Returns
    -------
    float32 of shape (num_rows, width)

    Examples
    --------
    >>> rows = np.arange(-32, 32, dtype=np.int8).reshape(4, 16)
    >>> multiply_bytes(rows, rows.sum(axis=1, dtype=np.int32), np.full((1, 16), 0.5, np.float32))[:, 0].round(1)
    array([-196.,  -68.,   60.,  188.], dtype=float32)
    """
    check_dim(queries.shape[1])
    if len(rows) < ROWS:
        return multiply_bytes_definition(rows, queries)
    width = padded(len(queries))
    digits, units = np.zeros((2, queries.shape[1] // 4, width, 4), np.uint8), np.zeros(width, np.float32)
    round_to_digits(queries, largest_digits(queries.shape[1], 2), digits, units)
    out = np.empty((len(rows), width), np.float32)
    run(
        lambda start, stop: _products(rows, sums, digits, units, start, stop, out),
        -(-len(rows) // ROWS),
        threads=threads,
        executor=executor,
        shortest=_WORTH_A_THREAD,
    )
    return out
