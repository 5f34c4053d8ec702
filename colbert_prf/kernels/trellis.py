"""Two bits a dimension that choose among sixteen levels: residuals as paths through a trellis.

Rounded to one of four levels, a normal variable loses .119 of its variance (Max, 1960). Here every dimension has a
symbol of two bits, and its level, one of the sixteen of four bits, depends on its own symbol and on the next::

    level = TRELLIS[symbol[i] + 4 * symbol[i + 1]]

after the last of sixteen dimensions comes the first again. The levels of neighbours thus depend on each other, and the
symbols are chosen together, by Viterbi's algorithm: .091 of the variance is lost, as many bits are kept, and reading
them takes one more instruction, a shuffle. This is trellis-coded quantization (Marcellin and Fischer, 1990) on a
tail-biting trellis: a path ends at the symbol it began with.

The sixteen dimensions are those of four bytes in a row (see :func:`~.residuals.pack`), from their lowest bits up, so
that the symbols of a dimension are four bits of the 32, turned round.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from colbert_prf.kernels.compiled import Array, compiled

__all__ = [
    "TOP",
    "TRELLIS",
    "best_path",
    "best_paths",
    "best_paths_definition",
    "levels_of_path",
    "levels_of_paths",
    "room_for_paths",
]

TRELLIS = (14, 7, 4, 10, 7, 9, 12, 5, 10, 3, 6, 8, 5, 11, 8, 1)
"""Found by Lloyd's algorithm on normal variables from 300 random starts, on the levels of four bits."""
TOP = 15
"""The highest level."""
PLANES = 4
"""Dimensions of a byte."""
SYMBOLS = 4
STEPS = 16
"""Dimensions of a path."""
_LEVELS = np.array(TRELLIS, np.float32)
_BYTES = np.array(TRELLIS, np.uint8)
_FAR = np.float32(1e30)


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
    least, best = np.full(shape, np.inf, np.float32), np.zeros((STEPS, *shape), np.intp)
    for first in range(SYMBOLS):
        cost = np.full((SYMBOLS, *shape), _FAR)
        cost[first] = 0
        before = []
        for step in steps:
            costs = cost + np.square(step - levels[:, :, None, None])  # (next symbol, symbol, vector, word)
            before.append(costs.argmin(axis=1))
            cost = costs.min(axis=1)
        symbols, symbol = [], np.full((1, *shape), first)
        for choices in reversed(before):
            symbol = np.take_along_axis(choices, symbol, axis=0)
            symbols.append(symbol[0])
        best = np.where(cost[first] < least, np.stack(symbols[::-1]), best)
        least = np.minimum(cost[first], least)
    planes = best.reshape(4, PLANES, *shape) << (2 * np.arange(PLANES).reshape(1, PLANES, 1, 1))
    packed: NDArray[np.uint8] = np.bitwise_or.reduce(planes, axis=1).transpose(1, 2, 0).astype(np.uint8)
    return packed.reshape(len(values), -1)


@compiled()
def room_for_paths(dim: int) -> tuple[Array, Array, Array, Array]:
    """What :func:`best_path` works in.

    ``steps`` (16, words), values in the order of paths; ``cost`` and ``other`` (4, 4, words), the least cost of the
    paths that begin with the second index and have come to the first; ``before`` (16, 4, 4, words), where they came
    from.
    """
    words = dim // STEPS
    return (
        np.empty((STEPS, words), np.float32),
        np.empty((SYMBOLS, SYMBOLS, words), np.float32),
        np.empty((SYMBOLS, SYMBOLS, words), np.float32),
        np.empty((STEPS, SYMBOLS, SYMBOLS, words), np.int32),
    )


@compiled()
def _take_step(step: Array, following: int, cost: Array, other: Array, before: Array) -> None:
    """One step to the symbol ``following``, from each symbol, for paths from each."""
    a, b, c, d = (
        _LEVELS[4 * following],
        _LEVELS[4 * following + 1],
        _LEVELS[4 * following + 2],
        _LEVELS[4 * following + 3],
    )
    for first in range(SYMBOLS):
        for w in range(step.shape[0]):
            least, symbol = cost[0, first, w] + (step[w] - a) * (step[w] - a), np.int32(0)
            second = cost[1, first, w] + (step[w] - b) * (step[w] - b)
            third = cost[2, first, w] + (step[w] - c) * (step[w] - c)
            fourth = cost[3, first, w] + (step[w] - d) * (step[w] - d)
            symbol = np.int32(1) if second < least else symbol
            least = min(second, least)
            symbol = np.int32(2) if third < least else symbol
            least = min(third, least)
            symbol = np.int32(3) if fourth < least else symbol
            other[first, w] = min(fourth, least)
            before[first, w] = symbol


@compiled()
def best_path(values: Array, room: tuple[Array, Array, Array, Array], packed: Array) -> None:
    """The best paths for one vector (dim,), into ``packed`` (dim / 4,)."""
    steps, cost, other, before = room
    words, width = steps.shape[1], packed.shape[0]
    for byte in range(4):
        for plane in range(PLANES):
            for w in range(words):
                steps[4 * byte + plane, w] = values[plane * width + 4 * w + byte]
    for symbol in range(SYMBOLS):
        for first in range(SYMBOLS):
            cost[symbol, first] = np.float32(0) if symbol == first else _FAR
    for i in range(STEPS):
        for following in range(SYMBOLS):
            _take_step(steps[i], following, cost, other[following], before[i, following])
        cost, other = other, cost
    for w in range(words):
        first = 0
        for other_first in range(1, SYMBOLS):
            if cost[other_first, other_first, w] < cost[first, first, w]:
                first = other_first
        symbol = first
        for byte in range(3, -1, -1):
            bits = 0
            for plane in range(PLANES - 1, -1, -1):
                symbol = before[4 * byte + plane, symbol, first, w]
                bits |= symbol << (2 * plane)
            packed[4 * w + byte] = bits


@compiled()
def _best_paths(values: Array, packed: Array) -> None:
    room = room_for_paths(values.shape[1])
    for t in range(values.shape[0]):
        best_path(values[t], room, packed[t])


def best_paths(values: NDArray[np.float32]) -> NDArray[np.uint8]:
    """The paths whose levels are nearest to values (num_vectors, dim) in units of a level.

    >>> values = np.array([[14, 14, 14, 14, 14, 14, 14, 14, 14, 14, 14, 5, 14, 14, 14, 10]], np.float32)
    >>> best_paths(values).tolist()
    [[0, 0, 0, 192]]
    """
    packed = np.empty((len(values), values.shape[1] // PLANES), np.uint8)
    _best_paths(values, packed)
    return packed
