"""The vocabulary of this folder: LLVM IR for loops over NumPy arrays.

LLVM lowers the IR to the best instructions of the machine (AVX2: ``vpmaxub``, ``vfmadd``; NEON on ARM). Only sums of
byte products and table look-ups name an x86 instruction: LLVM does not find these in portable IR.

All arrays are C-contiguous and addressed by the flat index of an element. Nothing checks bounds: callers keep the slack
that each operation documents. README.md has the whole picture.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils

__all__ = [
    "FLOAT",
    "INT8",
    "INT32",
    "INT64",
    "VectorBuilder",
    "add_dot_products",
    "int64",
    "table_look_up",
    "vector",
]

INT8, INT16, INT32, INT64, FLOAT = ir.IntType(8), ir.IntType(16), ir.IntType(32), ir.IntType(64), ir.FloatType()


def vector(element: ir.Type, count: int) -> ir.VectorType:
    """The LLVM type of ``count`` elements side by side."""
    return ir.VectorType(element, count)


def int64(value: int) -> ir.Constant:
    """A constant index."""
    return ir.Constant(INT64, value)


class VectorBuilder:
    """Writes the code of one intrinsic: llvmlite's ``builder``, and what loops over arrays need beside it.

    Iterating gives the arguments of the intrinsic: the data pointer of an array, a list for a tuple, else the value.
    """

    def __init__(self, context: Any, builder: ir.IRBuilder, signature: Any, values: Sequence[Any]) -> None:
        self.builder = builder
        self.features = frozenset(context.codegen().magic_tuple()[2].split(","))

        def argument(kind: Any, value: Any) -> Any:
            if isinstance(kind, types.BaseTuple):
                parts: Any = kind
                return [argument(part, builder.extract_value(value, i)) for i, part in enumerate(parts)]
            return context.make_array(kind)(context, builder, value).data if isinstance(kind, types.Array) else value

        self._arguments = [argument(kind, value) for kind, value in zip(signature.args, values, strict=True)]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._arguments)

    @property
    def has_vnni(self) -> bool:
        """Whether the processor multiplies and adds four bytes a lane in one instruction."""
        return {"+avx512vnni", "+avx512vl"} <= self.features

    def call(self, name: str, result: ir.Type, *values: Any) -> Any:
        """Call an LLVM intrinsic, such as ``llvm.prefetch.p0i8``."""
        kind = ir.FunctionType(result, [value.type for value in values])
        function: Any = cgutils.get_or_insert_function
        return self.builder.call(function(self.builder.module, kind, name), values)

    def load(self, pointer: Any, index: Any, kind: ir.Type) -> Any:
        """Read a value or vector of type ``kind`` at the element ``index`` of an array, whatever its alignment."""
        address = self.builder.bitcast(self.builder.gep(pointer, [index]), kind.as_pointer())
        value = self.builder.load(address)
        value.align = 1
        return value

    def store(self, value: Any, pointer: Any, index: Any) -> None:
        """Write a value or vector at the element ``index`` of an array, whatever its alignment."""
        address = self.builder.bitcast(self.builder.gep(pointer, [index]), value.type.as_pointer())
        self.builder.store(value, address).align = 1

    def prefetch(self, pointer: Any, index: Any) -> None:
        """Prefetch the cache line of the element ``index`` of an array; it may lie outside of the array."""
        address = self.builder.bitcast(self.builder.gep(pointer, [index]), INT8.as_pointer())
        read, keep, data = (ir.Constant(INT32, hint) for hint in (0, 3, 1))
        self.call("llvm.prefetch.p0i8", ir.VoidType(), address, read, keep, data)

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
        """Every second lane, from lane ``start`` on."""
        count = value.type.count
        lanes = ir.Constant(vector(INT32, count // 2), list(range(start, count, 2)))
        return self.builder.shuffle_vector(value, ir.Constant(value.type, ir.Undefined), lanes)

    def accumulators(self, rows: int, columns: int, kind: ir.VectorType, initial: float) -> list[list[Any]]:
        """Stack variables, which LLVM promotes to registers, with ``initial`` in every lane."""
        allocate: Any = cgutils.alloca_once
        variables = [[allocate(self.builder, kind) for _ in range(columns)] for _ in range(rows)]
        for variable in (variable for row in variables for variable in row):
            self.builder.store(ir.Constant(kind, [initial] * kind.count), variable)
        return variables


def add_dot_products(code: VectorBuilder, total: Any, terms: Sequence[tuple[Any, Any]]) -> Any:
    """Add to each lane of ``total`` the products of four bytes of levels and four of values, of each of some terms.

    All are vectors of int32: ``total`` has numbers, and each term has in every lane four levels, unsigned, and four
    values, signed. Where the processor has no instruction for four products at once (``VectorBuilder.has_vnni``) the
    sums of two products, over all terms, must fit into int16.
    """
    builder, lanes = code.builder, total.type.count
    if code.has_vnni:
        for levels, values in terms:
            name = f"llvm.x86.avx512.vpdpbusd.{32 * lanes}"
            total = code.call(name, total.type, total, levels, values)
        return total
    bytes_, sums = vector(INT8, 4 * lanes), None
    for levels, values in terms:
        pairs = _multiply_and_add_pairs(code, builder.bitcast(levels, bytes_), builder.bitcast(values, bytes_))
        sums = pairs if sums is None else builder.add(sums, pairs)
    return builder.add(total, _add_pairs(code, sums))


def _multiply_and_add_pairs(code: VectorBuilder, levels: Any, values: Any) -> Any:
    """int16 lanes ``levels[2i] * values[2i] + levels[2i + 1] * values[2i + 1]``."""
    builder, shorts = code.builder, vector(INT16, levels.type.count // 2)
    if "+avx2" in code.features and levels.type.count == 32:
        return code.call("llvm.x86.avx2.pmadd.ub.sw", shorts, levels, values)
    products = [
        builder.mul(
            builder.zext(code.every_second(levels, k), shorts), builder.sext(code.every_second(values, k), shorts)
        )
        for k in range(2)
    ]
    return builder.add(*products)


def _add_pairs(code: VectorBuilder, shorts: Any) -> Any:
    """int32 lanes ``shorts[2i] + shorts[2i + 1]``."""
    count = shorts.type.count
    if "+avx2" in code.features and count == 16:
        ones = ir.Constant(shorts.type, [1] * count)
        return code.call("llvm.x86.avx2.pmadd.wd", vector(INT32, 8), shorts, ones)
    wide = code.builder.sext(shorts, vector(INT32, count))
    return code.builder.add(code.every_second(wide, 0), code.every_second(wide, 1))


def table_look_up(code: VectorBuilder, indices: Any, table: Sequence[int]) -> Any:
    """``table[index]`` of each byte of a vector of int32; indices are below 16, and the table has 16 bytes."""
    builder, bytes_ = code.builder, vector(INT8, 4 * indices.type.count)
    kind, indices = indices.type, builder.bitcast(indices, bytes_)
    shuffles = {32: ("+avx2", "llvm.x86.avx2.pshuf.b"), 64: ("+avx512bw", "llvm.x86.avx512.pshuf.b.512")}
    feature, name = shuffles[bytes_.count]
    if feature in code.features:
        entries = ir.Constant(bytes_, [*table] * (bytes_.count // 16))
        return builder.bitcast(code.call(name, bytes_, entries, indices), kind)
    # Anywhere else: of each pair of entries the one that the lowest bit chooses, of these by the next bit, and so on.
    chosen = [ir.Constant(bytes_, [value] * bytes_.count) for value in table]
    for bit in range(4):
        isolated = builder.and_(indices, ir.Constant(bytes_, [1 << bit] * bytes_.count))
        is_set = builder.icmp_unsigned("!=", isolated, ir.Constant(bytes_, [0] * bytes_.count))
        chosen = [builder.select(is_set, chosen[i + 1], chosen[i]) for i in range(0, len(chosen), 2)]
    return builder.bitcast(chosen[0], kind)
