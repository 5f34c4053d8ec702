"""Operations that numba's auto-vectoriser does not find, written once in portable LLVM IR.

LLVM lowers the IR to the best instructions of the machine (AVX2: ``vpmaxub``, ``vfmadd``; NEON on ARM). Sums of byte
products name theirs where there are any: LLVM does not find them everywhere, and missed them where there is AVX-512.
Nothing here knows what an index is. The callers state each operation in NumPy and test against that statement.
All arrays are C-contiguous and addressed by the flat index of an element; there is no bounds check, so callers keep the
documented slack. Widths (numbers of query columns) are multiples of :data:`COLUMNS`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils

from colbert_prf.kernels.compiled import intrinsic

COLUMNS = 16
"""Query columns handled together; query arrays are padded to a multiple of it."""
ROWS = 4
"""Document vectors handled together by a tile; buffers have ``ROWS - 1`` spare rows, whose content does not matter."""
STEP = 16
"""The dimension of vectors is a multiple of it; those of a model that has others are filled up with zeros."""
AHEAD = 8
"""Rows between the one that is computed and the one that is asked for, where rows lie anywhere; see `prefetch`."""

INT8, INT16, INT32, INT64, FLOAT = ir.IntType(8), ir.IntType(16), ir.IntType(32), ir.IntType(64), ir.FloatType()


def check_dim(dim: int) -> None:
    """Refuse vectors that are not filled up to whole steps: a kernel would read past their end."""
    if dim % STEP:
        raise ValueError(f"the dimension of the vectors must be a multiple of {STEP}, found {dim}")


def vector(element: ir.Type, count: int) -> ir.VectorType:
    """The LLVM type of ``count`` elements side by side."""
    return ir.VectorType(element, count)


def int64(value: int) -> ir.Constant:
    """A constant index."""
    return ir.Constant(INT64, value)


class Arrays:
    """The arguments of an intrinsic while its code is written: pointers of arrays, lists for tuples, integers."""

    def __init__(self, context: Any, builder: ir.IRBuilder, signature: Any, values: Sequence[Any]) -> None:
        self.builder = builder
        self.features = frozenset(context.codegen().magic_tuple()[2].split(","))

        def argument(kind: Any, value: Any) -> Any:
            if isinstance(kind, types.BaseTuple):
                parts: Any = kind
                return [argument(part, builder.extract_value(value, i)) for i, part in enumerate(parts)]
            return context.make_array(kind)(context, builder, value).data if isinstance(kind, types.Array) else value

        self._arguments = [argument(kind, value) for kind, value in zip(signature.args, values, strict=True)]

    def __iter__(self) -> Any:
        return iter(self._arguments)

    @property
    def multiplies_fours(self) -> bool:
        """Whether the processor multiplies and adds four bytes a lane in one instruction."""
        return {"+avx512vnni", "+avx512vl"} <= self.features

    def call(self, name: str, result: ir.Type, *values: Any) -> Any:
        """Call an operation of LLVM's own."""
        kind = ir.FunctionType(result, [value.type for value in values])
        function: Any = cgutils.get_or_insert_function
        return self.builder.call(function(self.builder.module, kind, name), values)

    def load(self, pointer: Any, index: Any, kind: ir.Type) -> Any:
        """Read a value or vector of type ``kind`` at the element ``index`` of an array, whatever its alignment."""
        place = self.builder.bitcast(self.builder.gep(pointer, [index]), kind.as_pointer())
        value = self.builder.load(place)
        value.align = 1
        return value

    def store(self, value: Any, pointer: Any, index: Any) -> None:
        """Write a value or vector at the element ``index`` of an array, whatever its alignment."""
        place = self.builder.bitcast(self.builder.gep(pointer, [index]), value.type.as_pointer())
        self.builder.store(value, place).align = 1

    def ask_for(self, pointer: Any, index: Any) -> None:
        """Have the cache line of the element ``index`` of an array fetched, which may lie outside of it."""
        place = self.builder.bitcast(self.builder.gep(pointer, [index]), INT8.as_pointer())
        # To read, to be kept, data.
        hints = [ir.Constant(INT32, hint) for hint in (0, 3, 1)]
        self.call("llvm.prefetch.p0i8", ir.VoidType(), place, *hints)

    def element(self, pointer: Any, index: Any) -> Any:
        """Read one unsigned integer as int64."""
        value = self.builder.load(self.builder.gep(pointer, [index]))
        return value if value.type == INT64 else self.builder.zext(value, INT64)

    def splat(self, value: Any, kind: ir.VectorType) -> Any:
        """Repeat a scalar in every lane."""
        undefined = ir.Constant(kind, ir.Undefined)
        first = self.builder.insert_element(undefined, value, ir.Constant(INT32, 0))
        return self.builder.shuffle_vector(first, undefined, ir.Constant(vector(INT32, kind.count), [0] * kind.count))

    def every_second(self, value: Any, start: int) -> Any:
        """Take every second lane, from lane ``start`` on."""
        count = value.type.count
        lanes = ir.Constant(vector(INT32, count // 2), list(range(start, count, 2)))
        return self.builder.shuffle_vector(value, ir.Constant(value.type, ir.Undefined), lanes)

    def accumulators(self, rows: int, columns: int, kind: ir.VectorType, zero: float) -> list[list[Any]]:
        """Zeroed stack variables, which LLVM promotes to registers."""
        allocate: Any = cgutils.alloca_once
        variables = [[allocate(self.builder, kind) for _ in range(columns)] for _ in range(rows)]
        for variable in (variable for row in variables for variable in row):
            self.builder.store(ir.Constant(kind, [zero] * kind.count), variable)
        return variables


def add_dot_products(arrays: Arrays, total: Any, terms: Sequence[tuple[Any, Any]]) -> Any:
    """Add to each lane of ``total`` the products of four bytes of codes and four of values, of each of some terms.

    All are vectors of int32: ``total`` has numbers, and each term has in every lane four codes, unsigned, and four
    values, signed. Where the processor has no instruction for four products at once (``Arrays.multiplies_fours``) the
    sums of two products, over all terms, must fit into int16.
    """
    builder, lanes = arrays.builder, total.type.count
    if arrays.multiplies_fours:
        for codes, values in terms:
            name = f"llvm.x86.avx512.vpdpbusd.{32 * lanes}"
            total = arrays.call(name, total.type, total, codes, values)
        return total
    bytes_, sums = vector(INT8, 4 * lanes), None
    for codes, values in terms:
        twos = _sum_of_twos(arrays, builder.bitcast(codes, bytes_), builder.bitcast(values, bytes_))
        sums = twos if sums is None else builder.add(sums, twos)
    return builder.add(total, _sum_of_neighbours(arrays, sums))


def _sum_of_twos(arrays: Arrays, codes: Any, values: Any) -> Any:
    """int16 lanes ``codes[2i] * values[2i] + codes[2i + 1] * values[2i + 1]``."""
    builder, shorts = arrays.builder, vector(INT16, codes.type.count // 2)
    if "+avx2" in arrays.features and codes.type.count == 32:
        return arrays.call("llvm.x86.avx2.pmadd.ub.sw", shorts, codes, values)
    products = [
        builder.mul(
            builder.zext(arrays.every_second(codes, k), shorts), builder.sext(arrays.every_second(values, k), shorts)
        )
        for k in range(2)
    ]
    return builder.add(*products)


def _sum_of_neighbours(arrays: Arrays, shorts: Any) -> Any:
    """int32 lanes ``shorts[2i] + shorts[2i + 1]``."""
    count = shorts.type.count
    if "+avx2" in arrays.features and count == 16:
        ones = ir.Constant(shorts.type, [1] * count)
        return arrays.call("llvm.x86.avx2.pmadd.wd", vector(INT32, 8), shorts, ones)
    wide = arrays.builder.sext(shorts, vector(INT32, count))
    return arrays.builder.add(arrays.every_second(wide, 0), arrays.every_second(wide, 1))


def look_up(arrays: Arrays, codes: Any, table: Sequence[int]) -> Any:
    """``table[code]`` of each byte of a vector of int32; codes are below 16, and the table has 16 bytes."""
    builder, bytes_ = arrays.builder, vector(INT8, 4 * codes.type.count)
    indices, values = builder.bitcast(codes, bytes_), ir.Constant(bytes_, [*table] * (bytes_.count // 16))
    shuffles = {32: ("+avx2", "llvm.x86.avx2.pshuf.b"), 64: ("+avx512bw", "llvm.x86.avx512.pshuf.b.512")}
    feature, name = shuffles[bytes_.count]
    if feature in arrays.features:
        return builder.bitcast(arrays.call(name, bytes_, values, indices), codes.type)
    # Anywhere else: of each pair of entries the one the lowest bit chooses, of these by the next bit, and so on.
    chosen = [ir.Constant(bytes_, [value] * bytes_.count) for value in table]
    for bit in range(4):
        isolated = builder.and_(indices, ir.Constant(bytes_, [1 << bit] * bytes_.count))
        is_set = builder.icmp_unsigned("!=", isolated, ir.Constant(bytes_, [0] * bytes_.count))
        chosen = [builder.select(is_set, chosen[i + 1], chosen[i]) for i in range(0, len(chosen), 2)]
    return builder.bitcast(chosen[0], codes.type)


def _maximum_of_rows(width: int) -> Any:
    @intrinsic
    def maximum_of_rows(
        _context: Any, table: Any, stride: Any, column: Any, codes: Any, start: Any, stop: Any, out: Any
    ) -> Any:
        signature = types.void(table, types.int64, types.int64, codes, types.int64, types.int64, out)

        def generate(context: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> Any:
            arrays = Arrays(context, builder, signature, values)
            table, stride, column, codes, start, stop, out = arrays
            bytes_ = vector(INT8, width)
            best = arrays.accumulators(1, 1, bytes_, 0)[0][0]

            def larger(first: Any, second: Any) -> Any:
                return builder.select(builder.icmp_unsigned(">", first, second), first, second)

            def row(position: Any) -> Any:
                place = builder.add(builder.mul(arrays.element(codes, position), stride), column)
                return arrays.load(table, place, bytes_)

            whole = builder.add(start, builder.and_(builder.sub(stop, start), int64(-4)))
            with cgutils.for_range_slice(builder, start, whole, int64(4), INT64, inc=True) as (position, _):
                four = [row(builder.add(position, int64(i))) for i in range(4)]
                value = larger(larger(four[0], four[1]), larger(four[2], four[3]))
                builder.store(larger(value, builder.load(best)), best)
            with cgutils.for_range_slice(builder, whole, stop, int64(1), INT64, inc=True) as (position, _):
                builder.store(larger(row(position), builder.load(best)), best)
            arrays.store(builder.load(best), out, column)
            return context.get_dummy_value()

        return signature, generate

    return maximum_of_rows


maximum_of_rows_16 = _maximum_of_rows(16)
"""``out[column:column + 16] = max(table[c, column:column + 16] for c in codes[start:stop])``; uint8, 0 if empty."""
maximum_of_rows_32 = _maximum_of_rows(32)
"""The same for 32 columns."""


@intrinsic
def unpack_bytes(
    _context: Any, packed: Any, start: Any, count: Any, shift: Any, mask: Any, out: Any, target: Any
) -> Any:
    """``out[target:target + count] = (packed[start:start + count] >> shift) & mask``; count is a multiple of 8."""
    integer = types.int64
    signature = types.void(packed, integer, integer, integer, integer, out, integer)

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> Any:
        arrays = Arrays(context, builder, signature, values)
        packed, start, count, shift, mask, out, target = arrays

        def copy(begin: Any, end: Any, lanes: int) -> None:
            kind = vector(INT8, lanes)
            shifts = arrays.splat(builder.trunc(shift, INT8), kind)
            masks = arrays.splat(builder.trunc(mask, INT8), kind)
            with cgutils.for_range_slice(builder, begin, end, int64(lanes), INT64, inc=True) as (position, _):
                value = arrays.load(packed, builder.add(start, position), kind)
                arrays.store(builder.and_(builder.lshr(value, shifts), masks), out, builder.add(target, position))

        whole = builder.and_(count, int64(-16))
        copy(int64(0), whole, 16)
        copy(whole, count, 8)
        return context.get_dummy_value()

    return signature, generate


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
    """Inner products of four vectors and sixteen queries, float32.

    For r in 0..3 and j in 0..15, with flat indices::

        products = (vectors[(row + r) * dim + d] * queries[start + d * stride + j] for d in range(dim))
        out[target + r * out_stride + j] = sum(products)
    """
    integer = types.int64
    signature = types.void(vectors, integer, integer, queries, integer, integer, out, integer, integer)

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> Any:
        arrays = Arrays(context, builder, signature, values)
        vectors, row, dim, queries, start, stride, out, target, out_stride = arrays
        floats = vector(FLOAT, 8)
        sums = arrays.accumulators(ROWS, 2, floats, 0.0)
        starts = [builder.mul(builder.add(row, int64(r)), dim) for r in range(ROWS)]
        with cgutils.for_range_slice(builder, int64(0), dim, int64(1), INT64, inc=True) as (d, _):
            base = builder.add(start, builder.mul(d, stride))
            query = [arrays.load(queries, builder.add(base, int64(8 * half)), floats) for half in range(2)]
            for r in range(ROWS):
                value = arrays.splat(arrays.load(vectors, builder.add(starts[r], d), FLOAT), floats)
                for half in range(2):
                    product = builder.fmul(value, query[half], flags=["contract"])
                    total = builder.fadd(product, builder.load(sums[r][half]), flags=["contract"])
                    builder.store(total, sums[r][half])
        for r in range(ROWS):
            place = builder.add(target, builder.mul(int64(r), out_stride))
            for half in range(2):
                arrays.store(builder.load(sums[r][half]), out, builder.add(place, int64(8 * half)))
        return context.get_dummy_value()

    return signature, generate


@intrinsic
def prefetch(_context: Any, array: Any, index: Any) -> Any:
    """Ask for the cache line of the element ``index`` of an array, which may lie outside of it; nothing is read."""
    signature = types.void(array, types.int64)

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> Any:
        arrays = Arrays(context, builder, signature, values)
        arrays.ask_for(*arrays)
        return context.get_dummy_value()

    return signature, generate


@intrinsic
def take(_context: Any, taken: Any, count: Any) -> Any:
    """Take the next ``count`` items: add to ``taken[0]``, int64, and give what it was, whatever other threads do."""
    signature = types.int64(taken, types.int64)

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> Any:
        taken, count = Arrays(context, builder, signature, values)
        return builder.atomic_rmw("add", taken, count, "acq_rel")

    return signature, generate
