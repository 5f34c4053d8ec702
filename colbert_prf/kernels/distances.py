"""Squared distances between all pairs of some hundreds of vectors: all that the clustering of feedback looks at."""

from __future__ import annotations

from concurrent.futures import Executor
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numpy.typing import NDArray

from colbert_prf.kernels.compiled import Array, compiled, intrinsic
from colbert_prf.kernels.parallel import run
from colbert_prf.kernels.simd import COLUMNS, FLOAT, INT32, INT64, ROWS, Arrays, add_tile, int64, vector

__all__ = ["MAX_VECTORS", "copy_row", "squared_distances", "squared_distances_definition"]

MAX_VECTORS = 10_000
"""More would take over 400 MB; the feedback of three passages is 100 to 600 vectors."""
WORTH_A_THREAD = 32
"""Blocks of sixteen vectors that take as long as waking a thread does."""


def squared_distances_definition(vectors: NDArray[np.float32]) -> NDArray[np.float64]:
    """The definition of :func:`squared_distances`, without the padding: of shape (num_vectors, num_vectors)."""
    exact = vectors.astype(np.float64)
    return np.asarray(np.square(exact[:, None] - exact[None]).sum(axis=2))


@compiled()
def copy_row(source: Array, target: Array) -> None:
    """``target[:] = source``, which itself takes numba four seconds to compile, for the text of an error message."""
    for i in range(len(source)):
        target[i] = source[i]


@intrinsic
def _squares(_context: Any, blocks: Any, first: Any, dim: Any, out: Any) -> Any:
    """The squares of the sixteen vectors of a block, rounded exactly as products in :func:`_distance_tile`.

    For j in 0..15, with ``first`` the first of the block::

        out[first + j] = sum(blocks[first // 16, d, j] ** 2 for d in range(dim))
    """
    signature = types.void(blocks, types.int64, types.int64, out)

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> Any:
        arrays = Arrays(context, builder, signature, values)
        blocks, first, dim, out = arrays
        eight = vector(FLOAT, 8)
        (sums,) = arrays.accumulators(1, 2, eight, 0.0)
        start = builder.mul(first, dim)
        with cgutils.for_range_slice(builder, int64(0), dim, int64(1), INT64, inc=True) as (d, _):
            place = builder.add(start, builder.mul(d, int64(COLUMNS)))
            for half, variable in enumerate(sums):
                value = arrays.load(blocks, builder.add(place, int64(8 * half)), eight)
                product = builder.fmul(value, value, flags=["contract"])
                builder.store(builder.fadd(product, builder.load(variable), flags=["contract"]), variable)
        for half, variable in enumerate(sums):
            arrays.store(builder.load(variable), out, builder.add(first, int64(8 * half)))
        return context.get_dummy_value()

    return signature, generate


@compiled()
def _prepare(vectors: Array) -> Any:
    """Subtract the mean, lay sixteen vectors a block side by side, and take squares: of these whether all are finite.

    The result is (finite, vectors, blocks, squares); after the last vector there are zeros up to a whole block.
    """
    num_vectors, dim = vectors.shape
    width = -(-num_vectors // COLUMNS) * COLUMNS
    centred, blocks = np.empty((width, dim), np.float32), np.empty((width // COLUMNS, dim, COLUMNS), np.float32)
    squares = np.empty(width, np.float32)
    total, mean = np.zeros(dim, np.float64), np.empty(dim, np.float32)
    for i in range(num_vectors):
        for d in range(dim):
            total[d] += vectors[i, d]
    for d in range(dim):
        mean[d] = total[d] / num_vectors
    for i in range(num_vectors):
        block, row = blocks[i // COLUMNS], centred[i]
        for d in range(dim):
            row[d] = vectors[i, d] - mean[d]
            block[d, i % COLUMNS] = row[d]
    for i in range(num_vectors, width):
        for d in range(dim):
            centred[i, d] = blocks[-1, d, i % COLUMNS] = 0
    for first in range(0, width, COLUMNS):
        _squares(blocks, first, dim, squares)
    finite = True
    for square in squares:
        finite &= np.isfinite(square)
    return finite, centred, blocks, squares


@intrinsic
def _distance_tile(
    _context: Any, vectors: Any, row: Any, dim: Any, blocks: Any, first: Any, squares: Any, out: Any, width: Any
) -> Any:
    """Squared distances of four vectors and the sixteen of a block.

    For r in 0..3 and j in 0..15, with ``blocks`` as in :func:`squared_distances` and ``first`` the first of its block::

        product = sum(vectors[row + r, d] * blocks[first // 16, d, j] for d in range(dim))
        out[row + r, first + j] = max(squares[row + r] + squares[first + j] - 2 * product, 0)

    and if ``first > row``, to the right of the diagonal, also ``out[first + j, row + r]``.
    """
    integer = types.int64
    signature = types.void(vectors, integer, integer, blocks, integer, squares, out, integer)

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> Any:
        arrays = Arrays(context, builder, signature, values)
        vectors, row, dim, blocks, first, squares, out, width = arrays
        eight = vector(FLOAT, 8)
        sums = arrays.accumulators(ROWS, 2, eight, 0.0)
        add_tile(arrays, sums, vectors, row, dim, blocks, builder.mul(first, dim), int64(COLUMNS))
        twice, nothing = (ir.Constant(eight, [value] * 8) for value in (2.0, 0.0))
        tile: list[list[Any]] = []
        for r, own in enumerate(sums):
            number = builder.add(row, int64(r))
            square = arrays.splat(arrays.load(squares, number, FLOAT), eight)
            tile.append([])
            for half, variable in enumerate(own):
                column = builder.add(first, int64(8 * half))
                both = builder.fadd(square, arrays.load(squares, column, eight))
                value = builder.fsub(both, builder.fmul(builder.load(variable), twice))
                value = builder.select(builder.fcmp_ordered(">", value, nothing), value, nothing)
                arrays.store(value, out, builder.add(builder.mul(number, width), column))
                tile[r].append(value)
        with builder.if_then(builder.icmp_signed(">", first, row)):
            for j in range(COLUMNS):
                place = builder.add(builder.mul(builder.add(first, int64(j)), width), row)
                arrays.store(_column(builder, [own[j // 8] for own in tile], j % 8), out, place)
        return context.get_dummy_value()

    return signature, generate


def _column(builder: ir.IRBuilder, rows: list[Any], lane: int) -> Any:
    """One lane of each of four vectors of eight."""
    pair, both = (ir.Constant(vector(INT32, len(lanes)), lanes) for lanes in ([lane, 8 + lane], [0, 1, 2, 3]))
    first, second = (builder.shuffle_vector(*rows[r : r + 2], pair) for r in (0, 2))
    return builder.shuffle_vector(first, second, both)


@compiled()
def _distances(
    vectors: Array, blocks: Array, squares: Array, num_vectors: int, start: int, stop: int, out: Array
) -> None:
    """``out[i, j] = out[j, i] = |v_i|² + |v_j|² - 2 v_i·v_j`` for the blocks of i in ``[start, stop)`` and i <= j.

    What is not of two of the ``num_vectors`` is zero.
    """
    for row in range(start * COLUMNS, stop * COLUMNS, ROWS):
        for block in range(row // COLUMNS, len(blocks)):
            _distance_tile(vectors, row, vectors.shape[1], blocks, block * COLUMNS, squares, out, out.shape[1])
        for i in range(row, row + ROWS):
            for j in range(num_vectors, out.shape[1]):
                out[i, j] = 0


def squared_distances(
    vectors: NDArray[np.float32], *, threads: int = 1, executor: Executor | None = None
) -> NDArray[np.float32]:
    """Squared Euclidean distances between all pairs of vectors, in rows of whole registers.

    The mean is subtracted first, which changes no distance and keeps rounding small. Equal vectors are at distance zero
    exactly, and the matrix is symmetric exactly.

    Parameters
    ----------
    vectors : array of shape (num_vectors, dim)

    Returns
    -------
    array of shape (num_vectors, width)
        The width is ``num_vectors`` rounded up to a multiple of 16; the columns past ``num_vectors`` are zero.

    Examples
    --------
    >>> squared_distances(np.array([[0, 0], [3, 4]], np.float32))[:, :2].tolist()
    [[0.0, 25.0], [25.0, 0.0]]
    """
    num_vectors = len(vectors)
    if num_vectors > MAX_VECTORS:
        raise ValueError(
            f"cannot cluster {num_vectors} vectors by all their distances: at most {MAX_VECTORS}; give fewer passages"
        )
    finite, centred, blocks, squares = _prepare(vectors)
    if not finite:
        raise ValueError("cannot cluster vectors with values that are not finite (NaN, infinity or too large)")
    out = np.empty((len(centred), len(centred)), np.float32)
    run(
        lambda start, stop: _distances(centred, blocks, squares, num_vectors, start, stop, out),
        len(blocks),
        threads=threads,
        executor=executor,
        shortest=WORTH_A_THREAD,
    )
    return out[:num_vectors]
