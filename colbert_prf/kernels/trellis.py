"""Trellis-coded quantization: two bits a dimension that choose among sixteen levels.

Rounded to one of four levels, a normal variable loses .119 of its variance (Max, 1960). Here every dimension has a
symbol of two bits, and its own symbol and the next one choose its level::

    level[i] = TRELLIS[symbol[i] + 4 * symbol[i + 1]]

A path has sixteen dimensions, and after the last comes the first again: the trellis is tail-biting. Viterbi's algorithm
chooses the symbols of a path together. That loses .091 of the variance with as many bits, and reading takes one more
instruction, a shuffle (Marcellin and Fischer, 1990).

Byte i of a packed row has the symbols of the dimensions i, i + dim/4, i + 2·dim/4 and i + 3·dim/4, from its lowest bits
up. A path goes through four bytes in a row in the same direction, so that a symbol and the next one are four
neighbouring bits of 32, rotated.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from colbert_prf.kernels.compiled import Array, compiled

__all__ = [
    "TRELLIS",
    "best_path",
    "best_paths",
    "best_paths_definition",
    "levels_of_path",
    "levels_of_paths",
    "path_buffers",
]

TRELLIS = (14, 7, 4, 10, 7, 9, 12, 5, 10, 3, 6, 8, 5, 11, 8, 1)
"""Found by Lloyd's algorithm on normal variables from 300 random starts, on the levels of four bits."""
PLANES = 4
"""Dimensions of a byte."""
SYMBOLS = 4
STEPS = 16
"""Dimensions of a path."""
_LEVELS = np.array(TRELLIS, np.float32)
_BYTES = np.array(TRELLIS, np.uint8)
_UNREACHABLE = np.float32(1e30)
"""Cost of a path that does not begin where it should."""


def levels_of_paths(packed: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """The levels of all dimensions: (num_vectors, dim / 4) bytes to (num_vectors, dim).

    Symbol 3 in the last of 16 dimensions, 0 in all others: ``TRELLIS[0]`` except ``TRELLIS[12]`` before it and
    ``TRELLIS[3]`` there.

    >>> levels_of_paths(np.array([[0, 0, 0, 0b11000000]], np.uint8)).tolist()
    [[14, 14, 14, 14, 14, 14, 14, 14, 14, 14, 14, 5, 14, 14, 14, 10]]
    """
    words = np.ascontiguousarray(packed).view("<u4")
    turned = [words] + [(words >> np.uint32(2 * p)) | (words << np.uint32(32 - 2 * p)) for p in range(1, PLANES)]
    return np.concatenate([_BYTES[plane.astype("<u4").view(np.uint8) & 15] for plane in turned], axis=1)


@compiled()
def levels_of_path(packed: Array, levels: Array) -> None:
    """The levels (dim,) of one vector, of which ``packed`` (dim / 4,) has the paths."""
    width = packed.shape[0]
    for i in range(width):
        following = packed[i + 1] if i % 4 < 3 else packed[i - 3]
        symbols = np.int64(packed[i]) | np.int64(following) << 8
        for plane in range(4):
            levels[plane * width + i] = _BYTES[(symbols >> (2 * plane)) & 15]


def _in_steps(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """Values (num_vectors, dim) in the order of paths: (16, num_vectors, dim / 16)."""
    count, dim = values.shape
    planes = values.reshape(count, PLANES, dim // STEPS, 4)
    return planes.transpose(3, 1, 0, 2).reshape(STEPS, count, dim // STEPS)


def best_paths_definition(values: NDArray[np.float32]) -> NDArray[np.uint8]:
    """The definition of :func:`best_paths` in NumPy: Viterbi's algorithm from each symbol a path may begin with."""
    levels, steps = _LEVELS.reshape(SYMBOLS, SYMBOLS), _in_steps(values)
    shape = steps.shape[1:]
    lowest, best = np.full(shape, np.inf, np.float32), np.zeros((STEPS, *shape), np.intp)
    for start in range(SYMBOLS):
        cost = np.full((SYMBOLS, *shape), _UNREACHABLE)
        cost[start] = 0
        back_pointers = []
        for step in steps:
            costs = cost + np.square(step - levels[:, :, None, None])  # (next symbol, symbol, vector, word)
            back_pointers.append(costs.argmin(axis=1))
            cost = costs.min(axis=1)
        symbols, symbol = [], np.full((1, *shape), start)
        for choices in reversed(back_pointers):
            symbol = np.take_along_axis(choices, symbol, axis=0)
            symbols.append(symbol[0])
        best = np.where(cost[start] < lowest, np.stack(symbols[::-1]), best)
        lowest = np.minimum(cost[start], lowest)
    planes = best.reshape(4, PLANES, *shape) << (2 * np.arange(PLANES).reshape(1, PLANES, 1, 1))
    packed: NDArray[np.uint8] = np.bitwise_or.reduce(planes, axis=1).transpose(1, 2, 0).astype(np.uint8)
    return packed.reshape(len(values), -1)


@compiled()
def path_buffers(dim: int) -> tuple[Array, Array, Array, Array]:
    """Scratch space of :func:`best_path` for vectors of ``dim`` dimensions.

    ``steps`` (16, words): values in the order of paths. ``cost`` and ``next_cost`` (4, 4, words): the least cost of the
    paths that begin with the second index and have come to the first. ``back_pointers`` (16, 4, 4, words): the symbol
    each of them came from.
    """
    words = dim // STEPS
    return (
        np.empty((STEPS, words), np.float32),
        np.empty((SYMBOLS, SYMBOLS, words), np.float32),
        np.empty((SYMBOLS, SYMBOLS, words), np.float32),
        np.empty((STEPS, SYMBOLS, SYMBOLS, words), np.int32),
    )


@compiled()
def _advance(values: Array, to: int, cost: Array, next_cost: Array, back_pointers: Array) -> None:
    """One step of Viterbi's algorithm: the cheapest way to the symbol ``to`` from any symbol, for paths from each.

    Written out for four symbols and without branches, so that it becomes vector instructions over the words.
    """
    level_0, level_1, level_2, level_3 = _LEVELS[4 * to], _LEVELS[4 * to + 1], _LEVELS[4 * to + 2], _LEVELS[4 * to + 3]
    for start in range(SYMBOLS):
        for w in range(values.shape[0]):
            value = values[w]
            least, symbol = cost[0, start, w] + (value - level_0) * (value - level_0), np.int32(0)
            cost_1 = cost[1, start, w] + (value - level_1) * (value - level_1)
            cost_2 = cost[2, start, w] + (value - level_2) * (value - level_2)
            cost_3 = cost[3, start, w] + (value - level_3) * (value - level_3)
            symbol = np.int32(1) if cost_1 < least else symbol
            least = min(cost_1, least)
            symbol = np.int32(2) if cost_2 < least else symbol
            least = min(cost_2, least)
            symbol = np.int32(3) if cost_3 < least else symbol
            next_cost[start, w] = min(cost_3, least)
            back_pointers[start, w] = symbol


@compiled()
def best_path(values: Array, buffers: tuple[Array, Array, Array, Array], packed: Array) -> None:
    """The best paths for one vector (dim,), into ``packed`` (dim / 4,)."""
    steps, cost, next_cost, back_pointers = buffers
    words, width = steps.shape[1], packed.shape[0]
    for byte in range(4):
        for plane in range(PLANES):
            for w in range(words):
                steps[4 * byte + plane, w] = values[plane * width + 4 * w + byte]
    for symbol in range(SYMBOLS):
        for start in range(SYMBOLS):
            cost[symbol, start] = np.float32(0) if symbol == start else _UNREACHABLE
    for i in range(STEPS):
        for to in range(SYMBOLS):
            _advance(steps[i], to, cost, next_cost[to], back_pointers[i, to])
        cost, next_cost = next_cost, cost
    for w in range(words):
        start = 0
        for other in range(1, SYMBOLS):
            if cost[other, other, w] < cost[start, start, w]:
                start = other
        symbol = start
        for byte in range(3, -1, -1):
            bits = 0
            for plane in range(PLANES - 1, -1, -1):
                symbol = back_pointers[4 * byte + plane, symbol, start, w]
                bits |= symbol << (2 * plane)
            packed[4 * w + byte] = bits


@compiled()
def _best_paths(values: Array, packed: Array) -> None:
    buffers = path_buffers(values.shape[1])
    for t in range(values.shape[0]):
        best_path(values[t], buffers, packed[t])


def best_paths(values: NDArray[np.float32]) -> NDArray[np.uint8]:
    """The paths whose levels are nearest to values (num_vectors, dim) in units of a level.

    >>> values = np.array([[14, 14, 14, 14, 14, 14, 14, 14, 14, 14, 14, 5, 14, 14, 14, 10]], np.float32)
    >>> best_paths(values).tolist()
    [[0, 0, 0, 192]]
    """
    packed = np.empty((len(values), values.shape[1] // PLANES), np.uint8)
    _best_paths(values, packed)
    return packed
