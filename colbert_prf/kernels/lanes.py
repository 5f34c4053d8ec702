"""Scores of packed document vectors in byte arithmetic, one document vector a lane: the innermost loop of a search.

Eight document vectors, or sixteen where the processor has 512-bit registers for bytes, lie side by side, four
dimensions of each in a lane of 32 bits. A query vector meets all of them in one instruction: ``vpdpbusd`` where there
is one, else ``vpmaddubsw`` (see :mod:`.simd`). So any number of query vectors costs what it is worth, and residual
levels are multiplied as they are stored: a shift and a mask unpack them in their lanes, and a shuffle makes levels of
the symbols of a path through a trellis (:mod:`.trellis`).
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils

from colbert_prf.kernels.compiled import intrinsic
from colbert_prf.kernels.simd import (
    FLOAT,
    INT32,
    INT64,
    Arrays,
    add_dot_products,
    int64,
    look_up,
    vector,
)
from colbert_prf.kernels.trellis import TRELLIS

__all__ = ["CHUNK", "LANES", "LOWEST", "best_of_4", "best_of_8", "best_of_10", "best_of_12", "best_of_16"]

LANES = 16
"""Vectors a document must have; one of fewer is copied, and its last vector repeated."""
CHUNK = 16
"""Bytes of a packed vector that are turned into lanes together: a row is a multiple of it."""
LOWEST = -3e38
"""Less than any score."""
TRELLIS_HALF = 4
"""Bits of a scale where residuals are paths through a trellis."""
MASK = 0x0F0F0F0F
"""A level, or two symbols, in each of four bytes."""
_QUAD = 4


class _Lanes:
    """The IR of one group of document vectors against some query columns."""

    def __init__(self, arrays: Arrays, columns: int, half: int) -> None:
        self.half, self.trellis = half, half == TRELLIS_HALF
        self.bits = 2 if self.trellis else 4
        self.count = 16 if arrays.multiplies_fours else 8
        self.arrays, self.builder, self.columns = arrays, arrays.builder, columns
        self.ints, self.floats = vector(INT32, self.count), vector(FLOAT, self.count)

    def turned(self, pointer: Any, starts: list[Any], quad: ir.VectorType) -> list[Any]:
        """Read four numbers from each of the starts: a vector of all first numbers, one of all second ones ..."""
        rows = [self.arrays.load(pointer, start, quad) for start in starts]
        # Rows r, r + 4, r + 8, ... side by side, so that all that follows stays within 128 bits.
        first, second, third, fourth = (self._side_by_side(rows[r::_QUAD]) for r in range(_QUAD))
        low, high = (0, 4, 1, 5), (2, 6, 3, 7)
        halves = [(self._mixed(first, second, lanes), self._mixed(third, fourth, lanes)) for lanes in (low, high)]
        return [self._mixed(*half, lanes) for half in halves for lanes in ((0, 1, 4, 5), (2, 3, 6, 7))]

    def _mixed(self, first: Any, second: Any, lanes: tuple[int, ...]) -> Any:
        """Choose, in each 128 bits, from the four numbers of the first (0 to 3) and of the second (4 to 7)."""
        places = [
            _QUAD * part + lane % _QUAD + self.count * (lane // _QUAD)
            for part in range(self.count // _QUAD)
            for lane in lanes
        ]
        return self.builder.shuffle_vector(first, second, ir.Constant(vector(INT32, self.count), places))

    def _side_by_side(self, parts: list[Any]) -> Any:
        while len(parts) > 1:
            lanes = ir.Constant(vector(INT32, 2 * parts[0].type.count), list(range(2 * parts[0].type.count)))
            parts = [self.builder.shuffle_vector(*parts[i : i + 2], lanes) for i in range(0, len(parts), 2)]
        return parts[0]

    def add_products(self, sums: list[Any], codes: list[Any], queries: Any, place: Any, width: Any) -> None:
        """Add the products of four codes a lane, four times, and ``columns`` query vectors to their sums."""
        builder = self.builder
        quads = [builder.add(place, builder.mul(int64(4 * step), width)) for step in range(_QUAD)]
        for column, variable in enumerate(sums):
            fours = [self.arrays.load(queries, builder.add(quad, int64(4 * column)), INT32) for quad in quads]
            values = [self.arrays.splat(four, self.ints) for four in fours]
            terms = list(zip(codes, values, strict=True))
            builder.store(add_dot_products(self.arrays, builder.load(variable), terms), variable)

    def levels(self, codes: list[Any], shift: Any) -> list[Any]:
        """The levels of one plane, four a lane."""
        masks = ir.Constant(self.ints, [MASK] * self.count)
        if not self.trellis:
            return [self.builder.and_(self.builder.lshr(code, shift), masks) for code in codes]
        turned = [self.arrays.call(f"llvm.fshr.v{self.count}i32", self.ints, code, code, shift) for code in codes]
        return [look_up(self.arrays, self.builder.and_(code, masks), TRELLIS) for code in turned]

    def multiplied(self, value: Any, factor: Any, summand: Any) -> Any:
        """``value * factor + summand``, rounded once where the processor can."""
        return self.builder.fadd(self.builder.fmul(value, factor, flags=["contract"]), summand, flags=["contract"])

    def larger(self, first: Any, second: Any) -> Any:
        """The larger of each lane; a comparison and a selection would become a masked store, slow on AMD."""
        return self._fast_call(f"llvm.maxnum.v{self.count}f32", self.floats, first, second)

    def largest(self, value: Any) -> Any:
        """The largest of all lanes."""
        return self._fast_call(f"llvm.vector.reduce.fmax.v{self.count}f32", FLOAT, value)

    def _fast_call(self, name: str, result: ir.Type, *values: Any) -> Any:
        call = self.arrays.call(name, result, *values)
        call.fastmath.update(("nnan", "nsz"))
        return call


def _products(
    lanes: _Lanes, packed: Any, row: Any, stride: Any, query: list[Any], width: Any, column: Any
) -> list[Any]:
    """The products of a group of document vectors with each query column, as stack variables."""
    arrays, builder, values = lanes.arrays, lanes.builder, query[0]
    sums = arrays.accumulators(1, lanes.columns, lanes.ints, 0)[0]
    starts = [builder.mul(builder.add(row, int64(lane)), stride) for lane in range(lanes.count)]
    with cgutils.for_range_slice(builder, int64(0), stride, int64(CHUNK), INT64, inc=True) as (byte, _):
        codes = lanes.turned(packed, [builder.add(start, byte) for start in starts], vector(INT32, _QUAD))
        place = builder.add(builder.mul(byte, width), builder.mul(column, int64(4)))
        with cgutils.for_range(builder, int64(8 // lanes.bits)) as plane:
            shift = arrays.splat(builder.trunc(builder.mul(plane.index, int64(lanes.bits)), INT32), lanes.ints)
            start = builder.add(place, builder.mul(plane.index, builder.mul(stride, width)))
            lanes.add_products(sums, lanes.levels(codes, shift), values, start, width)
    return sums


def _raise(
    lanes: _Lanes,
    sums: list[Any],
    query: list[Any],
    width: Any,
    column: Any,
    store: list[Any],
    row: Any,
    best: list[Any],
) -> None:
    """Turn the products of a group of document vectors into scores, and raise ``best`` to them."""
    arrays, builder = lanes.arrays, lanes.builder
    _, factors, constants, table, ranges = query
    codes, _, scales, _ = store
    both = builder.zext(arrays.load(scales, row, vector(ir.IntType(2 * lanes.half), lanes.count)), lanes.ints)
    lower, shift = (ir.Constant(lanes.ints, [n] * lanes.count) for n in ((1 << lanes.half) - 1, lanes.half))
    numbers = [builder.uitofp(half, lanes.floats) for half in (builder.and_(both, lower), builder.lshr(both, shift))]
    low, step, gain_low, gain_step = (
        arrays.splat(arrays.load(ranges, int64(i), FLOAT), lanes.floats) for i in range(4)
    )
    scale, gain = lanes.multiplied(numbers[0], step, low), lanes.multiplied(numbers[1], gain_step, gain_low)
    rows = [builder.mul(arrays.element(codes, builder.add(row, int64(lane))), width) for lane in range(lanes.count)]
    for start in range(0, lanes.columns, _QUAD):
        places = [builder.add(place, builder.add(column, int64(start))) for place in rows]
        four = lanes.turned(table, places, vector(FLOAT, _QUAD))
        for j in range(start, min(start + _QUAD, lanes.columns)):
            place = builder.add(column, int64(j))
            factor, constant = (
                arrays.splat(arrays.load(of, place, FLOAT), lanes.floats) for of in (factors, constants)
            )
            product = builder.sitofp(builder.load(sums[j]), lanes.floats)
            residual = lanes.multiplied(product, factor, constant)
            score = builder.fmul(lanes.multiplied(residual, scale, four[j - start]), gain)
            builder.store(lanes.larger(score, builder.load(best[j])), best[j])


def _ask_for(lanes: _Lanes, store: list[Any], row: Any, stride: Any) -> None:
    """Have a group of vectors fetched: few at a time, for a processor waits where it is asked for too many at once."""
    arrays, builder = lanes.arrays, lanes.builder
    codes, packed, scales, _ = store
    arrays.ask_for(codes, row)
    arrays.ask_for(scales, row)
    for lane in range(lanes.count):
        arrays.ask_for(packed, builder.mul(builder.add(row, int64(lane)), stride))


def _best_of(columns: int) -> Any:
    @intrinsic
    def best_of(
        _context: Any,
        query: Any,
        column: Any,
        store: Any,
        stride: Any,
        width: Any,
        first: Any,
        count: Any,
        following: Any,
        best: Any,
    ) -> Any:
        number, half = types.int64, store.types[2].dtype.bitwidth // 2
        signature = types.void(query, number, store, number, number, number, number, number, best)

        def generate(context: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> Any:
            arrays = Arrays(context, builder, signature, values)
            query, column, store, stride, width, first, count, following, best = arrays
            lanes = _Lanes(arrays, columns, half)
            highest = arrays.accumulators(1, columns, lanes.floats, LOWEST)[0]
            last = builder.sub(count, int64(lanes.count))
            with cgutils.for_range_slice(builder, int64(0), count, int64(lanes.count), INT64, inc=True) as (group, _):
                # The last group overlaps the one before rather than reading past the end.
                row = builder.add(first, builder.select(builder.icmp_signed("<", group, last), group, last))
                _ask_for(lanes, store, builder.add(following, group), stride)
                sums = _products(lanes, store[1], row, stride, query, width, column)
                _raise(lanes, sums, query, width, column, store, row, highest)
            for j, variable in enumerate(highest):
                arrays.store(lanes.largest(builder.load(variable)), best, builder.add(column, int64(j)))
            return context.get_dummy_value()

        return signature, generate

    return best_of


best_of_4, best_of_8, best_of_10, best_of_12, best_of_16 = map(_best_of, (4, 8, 10, 12, 16))
"""The best score of a document for each of 4, 8, 10, 12 or 16 query columns from ``column`` on, into ``best`` (width,).

Arguments are (query, column, store, stride, width, first, count, following, best). With the vectors t from ``first`` to
``first + count``, of which there are at least :data:`LANES`::

    level[d] of plane p = (packed[t, d] >> 4 * p) & 15
    dot = Σ_p Σ_d level[d] * values[p, d // 4, j, d % 4]
    score = table[codes[t], j] + scale of t * (factors[j] * dot + constants[j])
    best[j] = max over t of score * gain of t

``query`` consists of ``values`` (planes, stride / 4, width, 4) int8, ``factors`` and ``constants`` (width,) float32,
``table`` (num_centroids, width) float32, and ``ranges`` (2, 2), the lowest scale and the step from one to the next, and
the same of gains. ``store`` consists of ``codes`` (num_vectors,), unsigned integers, ``packed`` (num_vectors, stride)
uint8, ``scales`` (num_vectors,), whose lower half of bits is a scale and whose upper half is a gain, and ``offsets``,
not used here. Where scales are uint8, not uint16, residuals are paths through a trellis: four bytes of ``packed`` are
turned round by ``2 * p``, not shifted, and ``TRELLIS[code]`` is the level. ``width`` is a multiple of 16. As many
vectors from ``following`` on are fetched meanwhile.
"""
