"""Strings that lie one after the other in an array of bytes."""

from __future__ import annotations

from typing import Any

import numpy as np

from colbert_prf.kernels.compiled import Array, compiled
from colbert_prf.kernels.simd import prefetch

__all__ = ["joined"]

LINE_END, FIRST_NOT_ASCII = 10, 128


@compiled()
def joined(raw: Array, offsets: Array, numbers: Array) -> Any:
    """Some strings as lines, uint8, and whether they can be told apart there: all are ASCII, and none has a line end.

    String i is ``raw[offsets[i]:offsets[i + 1]]``. Where an offset leads outside or back, nothing is read.

    >>> lines, whole = joined(np.frombuffer(b"onetwo", np.uint8), np.array([0, 3, 6]), np.array([1, 0]))
    >>> lines.tobytes(), whole
    (b'two\\none\\n', True)
    """
    length = numbers.shape[0]
    for number in numbers:
        start, stop = np.int64(offsets[number]), np.int64(offsets[number + 1])
        if not 0 <= start <= stop <= raw.shape[0]:
            return np.empty(0, np.uint8), False
        prefetch(raw, start)
        length += stop - start
    lines, at, whole = np.empty(length, np.uint8), 0, True
    for number in numbers:
        for place in range(np.int64(offsets[number]), np.int64(offsets[number + 1])):
            byte = raw[place]
            whole &= byte != LINE_END and byte < FIRST_NOT_ASCII
            lines[at] = byte
            at += 1
        lines[at] = LINE_END
        at += 1
    return lines, whole
