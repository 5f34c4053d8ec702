"""MaxSim of packed document vectors in byte arithmetic, one document vector a lane: the innermost loop of a search.

Eight document vectors, or sixteen where the processor has 512-bit registers for bytes, lie side by side, four
dimensions of each in a lane of 32 bits. One instruction multiplies all of them with a query vector: ``vpdpbusd`` where
there is one, else ``vpmaddubsw`` (see :mod:`.ir`). Residual levels are multiplied as they are stored: a shift and a
mask unpack them in their lanes, and a table look-up turns the symbols of a path through a trellis into levels
(:mod:`colbert_prf.kernels.trellis`). README.md has a worked example.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils

from colbert_prf.kernels.compiled import intrinsic
from colbert_prf.kernels.simd.ir import (
    FLOAT,
    INT32,
    INT64,
    VectorBuilder,
    add_dot_products,
    int64,
    table_look_up,
    vector,
)
from colbert_prf.kernels.trellis import TRELLIS

__all__ = ["CHUNK", "LANES", "best_of_4", "best_of_8", "best_of_10", "best_of_12", "best_of_16"]

LANES = 16
"""Vectors a document must have; the caller copies one of fewer and repeats its last vector."""
CHUNK = 16
"""Bytes of a packed vector that are transposed into lanes together; a row is a multiple of it."""
NIBBLES = 0x0F0F0F0F
"""The lower half of each of four bytes: a level of four bits, or two symbols of a path."""
_QUAD = 4


class _Group:
    """Writes the code for one group of document vectors, a lane each, and some query columns."""

    def __init__(self, code: VectorBuilder, columns: int, scale_bits: int) -> None:
        self.code, self.builder = code, code.builder
        self.columns, self.scale_bits = columns, scale_bits
        self.bits = scale_bits // 2  # of a residual: 2, paths through a trellis, or 4
        self.lanes = 16 if code.has_vnni else 8
        self.ints, self.floats = vector(INT32, self.lanes), vector(FLOAT, self.lanes)

    def load_transposed(self, pointer: Any, starts: list[Any], quad: ir.VectorType) -> list[Any]:
        """Read four numbers at the start of each lane: a vector of all first numbers, one of all second ones, ..."""
        rows = [self.code.load(pointer, start, quad) for start in starts]
        # Rows r, r + 4, r + 8, ... side by side, so that all that follows stays within 128 bits.
        first, second, third, fourth = (self._concatenate(rows[r::_QUAD]) for r in range(_QUAD))
        low, high = (0, 4, 1, 5), (2, 6, 3, 7)
        halves = [(self._shuffle(first, second, order), self._shuffle(third, fourth, order)) for order in (low, high)]
        return [self._shuffle(*half, order) for half in halves for order in ((0, 1, 4, 5), (2, 3, 6, 7))]

    def _shuffle(self, first: Any, second: Any, order: tuple[int, ...]) -> Any:
        """Choose, in each 128 bits, from the four numbers of the first (0 to 3) and of the second (4 to 7)."""
        indices = [
            _QUAD * part + number % _QUAD + self.lanes * (number // _QUAD)
            for part in range(self.lanes // _QUAD)
            for number in order
        ]
        return self.builder.shuffle_vector(first, second, ir.Constant(vector(INT32, self.lanes), indices))

    def _concatenate(self, parts: list[Any]) -> Any:
        while len(parts) > 1:
            count = 2 * parts[0].type.count
            indices = ir.Constant(vector(INT32, count), list(range(count)))
            parts = [self.builder.shuffle_vector(*parts[i : i + 2], indices) for i in range(0, len(parts), 2)]
        return parts[0]

    def levels(self, words: list[Any], shift: Any) -> list[Any]:
        """The levels of one plane, four a lane, of packed residuals, four bytes a lane."""
        nibbles = ir.Constant(self.ints, [NIBBLES] * self.lanes)
        if self.bits == 4:
            return [self.builder.and_(self.builder.lshr(word, shift), nibbles) for word in words]
        rotated = [self.code.call(f"llvm.fshr.v{self.lanes}i32", self.ints, word, word, shift) for word in words]
        return [table_look_up(self.code, self.builder.and_(word, nibbles), TRELLIS) for word in rotated]

    def add_products(self, sums: list[Any], levels: list[Any], values: Any, start: Any, width: Any) -> None:
        """Add to the sum of each query column its products with four levels a lane, four times."""
        builder = self.builder
        quads = [builder.add(start, builder.mul(int64(4 * step), width)) for step in range(_QUAD)]
        for column, total in enumerate(sums):
            fours = [self.code.load(values, builder.add(quad, int64(4 * column)), INT32) for quad in quads]
            terms = [(level, self.code.splat(four, self.ints)) for level, four in zip(levels, fours, strict=True)]
            builder.store(add_dot_products(self.code, builder.load(total), terms), total)

    def multiply_add(self, value: Any, factor: Any, summand: Any) -> Any:
        """``value * factor + summand``, rounded once where the processor can."""
        return self.builder.fadd(self.builder.fmul(value, factor, flags=["contract"]), summand, flags=["contract"])

    def maximum(self, first: Any, second: Any) -> Any:
        """The larger of each lane; a comparison and a selection would become a masked store, slow on AMD."""
        return self._call_fast(f"llvm.maxnum.v{self.lanes}f32", self.floats, first, second)

    def maximum_of_lanes(self, value: Any) -> Any:
        """The largest of all lanes."""
        return self._call_fast(f"llvm.vector.reduce.fmax.v{self.lanes}f32", FLOAT, value)

    def _call_fast(self, name: str, result: ir.Type, *values: Any) -> Any:
        call = self.code.call(name, result, *values)
        call.fastmath.update(("nnan", "nsz"))
        return call


def _products(group: _Group, packed: Any, row: Any, stride: Any, values: Any, width: Any, column: Any) -> list[Any]:
    """The products of a group of document vectors with each query column, as stack variables."""
    code, builder = group.code, group.builder
    sums = code.accumulators(1, group.columns, group.ints, 0)[0]
    starts = [builder.mul(builder.add(row, int64(lane)), stride) for lane in range(group.lanes)]
    with cgutils.for_range_slice(builder, int64(0), stride, int64(CHUNK), INT64, inc=True) as (byte, _):
        words = group.load_transposed(packed, [builder.add(start, byte) for start in starts], vector(INT32, _QUAD))
        first = builder.add(builder.mul(byte, width), builder.mul(column, int64(4)))
        with cgutils.for_range(builder, int64(8 // group.bits)) as plane:
            shift = code.splat(builder.trunc(builder.mul(plane.index, int64(group.bits)), INT32), group.ints)
            start = builder.add(first, builder.mul(plane.index, builder.mul(stride, width)))
            group.add_products(sums, group.levels(words, shift), values, start, width)
    return sums


def _update_best(
    group: _Group,
    sums: list[Any],
    query: list[Any],
    width: Any,
    column: Any,
    store: list[Any],
    row: Any,
    best: list[Any],
) -> None:
    """Turn the products of a group of document vectors into scores, and raise ``best`` to them."""
    code, builder = group.code, group.builder
    _, factors, constants, table, ranges = query
    codes, _, scales, _ = store
    both = builder.zext(code.load(scales, row, vector(ir.IntType(2 * group.scale_bits), group.lanes)), group.ints)
    mask, shift = (ir.Constant(group.ints, [n] * group.lanes) for n in ((1 << group.scale_bits) - 1, group.scale_bits))
    scale, gain = (builder.uitofp(part, group.floats) for part in (builder.and_(both, mask), builder.lshr(both, shift)))
    low, step, gain_low, gain_step = (code.splat(code.load(ranges, int64(i), FLOAT), group.floats) for i in range(4))
    scale, gain = group.multiply_add(scale, step, low), group.multiply_add(gain, gain_step, gain_low)
    rows = [builder.mul(code.element(codes, builder.add(row, int64(lane))), width) for lane in range(group.lanes)]
    for first in range(0, group.columns, _QUAD):
        starts = [builder.add(start, builder.add(column, int64(first))) for start in rows]
        centroid_scores = group.load_transposed(table, starts, vector(FLOAT, _QUAD))
        for j in range(first, min(first + _QUAD, group.columns)):
            index = builder.add(column, int64(j))
            factor, constant = (
                code.splat(code.load(array, index, FLOAT), group.floats) for array in (factors, constants)
            )
            product = builder.sitofp(builder.load(sums[j]), group.floats)
            residual = group.multiply_add(product, factor, constant)
            score = builder.fmul(group.multiply_add(residual, scale, centroid_scores[j - first]), gain)
            builder.store(group.maximum(score, builder.load(best[j])), best[j])


def _prefetch(group: _Group, store: list[Any], row: Any, stride: Any) -> None:
    """Prefetch a group of vectors: few at a time, for a processor stalls on too many at once."""
    code, builder = group.code, group.builder
    codes, packed, scales, _ = store
    code.prefetch(codes, row)
    code.prefetch(scales, row)
    for lane in range(group.lanes):
        code.prefetch(packed, builder.mul(builder.add(row, int64(lane)), stride))


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
        integer, scale_bits = types.int64, store.types[2].dtype.bitwidth // 2
        signature = types.void(query, integer, store, integer, integer, integer, integer, integer, best)

        def generate(context: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> Any:
            code = VectorBuilder(context, builder, signature, values)
            query, column, store, stride, width, first, count, following, best = code
            group = _Group(code, columns, scale_bits)
            highest = code.accumulators(1, columns, group.floats, float("-inf"))[0]
            last = builder.sub(count, int64(group.lanes))
            with cgutils.for_range_slice(builder, int64(0), count, int64(group.lanes), INT64, inc=True) as (start, _):
                # The last group overlaps the one before rather than reading past the end.
                row = builder.add(first, builder.select(builder.icmp_signed("<", start, last), start, last))
                _prefetch(group, store, builder.add(following, start), stride)
                sums = _products(group, store[1], row, stride, query[0], width, column)
                _update_best(group, sums, query, width, column, store, row, highest)
            for j, variable in enumerate(highest):
                code.store(group.maximum_of_lanes(builder.load(variable)), best, builder.add(column, int64(j)))
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

``query`` is a :class:`~colbert_prf.kernels.packed.ByteQuery`: ``values`` (planes, stride / 4, width, 4) int8,
``factors`` and ``constants`` (width,) float32, ``table`` (num_centroids, width) float32, and ``ranges`` (2, 2), the
lowest scale and the step from one to the next, and the same of gains. ``store`` is a
:class:`~colbert_prf.kernels.packed.PackedVectors`: ``codes`` (num_vectors,), unsigned integers, ``packed``
(num_vectors, stride) uint8, ``scales`` (num_vectors,), whose lower half of bits is a scale and whose upper half is a
gain, and ``offsets``, not used here. Where scales are uint8, not uint16, residuals are paths through a trellis: four
bytes of ``packed`` are rotated by ``2 * p`` bits, not shifted, and ``TRELLIS[nibble]`` is the level. ``width`` is a
multiple of 16. As many vectors from ``following`` on are prefetched meanwhile.
"""
