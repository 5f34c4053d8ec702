"""What vectors stand for, by the tokens near each: the most frequent, how rare it is, and what a glance tells."""

from __future__ import annotations

from typing import Any

import numpy as np

from colbert_prf.kernels.compiled import Array, compiled
from colbert_prf.kernels.probes import NONE
from colbert_prf.kernels.selection import falling

__all__ = ["inverse_frequencies", "most_frequent", "prospects"]


@compiled()
def most_frequent(neighbours: Array, left_out: Array) -> Any:
    """The token that is most frequent in each row of ``neighbours`` (n, count), of equals the first, of shape (n,).

    Tokens below 0 and those in ``left_out`` do not count; where there are no others it is -1.

    >>> most_frequent(np.array([[5, 101, 7, 7, 101, 101], [101, 101, -1, -1, -1, -1]], np.int32), np.array([101]))
    array([ 7, -1], dtype=int32)
    """
    out = np.empty(neighbours.shape[0], np.int32)
    for i in range(neighbours.shape[0]):
        row, most = neighbours[i], 0
        out[i] = NONE
        for token in row:
            votes = 0
            for other in row:
                votes += other == token
            for special in left_out:
                votes = 0 if special == token else votes
            if token >= 0 and votes > most:
                out[i], most = token, votes
    return out


@compiled()
def inverse_frequencies(token_ids: Array, left_out: Array, frequencies: Array, total: int, otherwise: float) -> Any:
    """``ln((total + 1) / (frequency + 1))`` of the token at each place of ``token_ids`` (n,), of shape (n,).

    A token that is not in the table has frequency 0; ``otherwise`` for those below 0 and those in ``left_out``.

    >>> inverse_frequencies(np.array([0, 1, 7, -1]), np.array([101]), np.array([9, 0]), 99, -1.0).round(3)
    array([ 2.303,  4.605,  4.605, -1.   ])
    """
    out = np.empty(token_ids.shape[0], np.float64)
    for i in range(token_ids.shape[0]):
        token = token_ids[i]
        counts = token >= 0
        for special in left_out:
            counts &= special != token
        frequency = frequencies[token] if 0 <= token < frequencies.shape[0] else 0
        out[i] = np.log((total + 1) / (frequency + 1)) if counts else otherwise
    return out


@compiled()
def prospects(tokens: Array, sigmas: Array, alike: int, first: int) -> Any:
    """What a glance at the tokens near vectors tells, before these are looked up.

    Where the nearest ``alike`` tokens (n, count) are one, and it has a σ, the vector has this token for certain.
    The others may have the highest σ (n, at most count) of those near them.

    Returns
    -------
    (near, hopes, waiting, num_first)
        Of the shape of ``tokens`` what is known, the token that is certain and else -1; of each the highest σ; who is
        to be looked up, highest hope first, and how many of these are among the ``first`` highest hopes of all.

    Examples
    --------
    >>> tokens = np.array([[7, 7, 8], [6, 9, 6], [5, 4, 5]], np.int32)
    >>> near, hopes, waiting, num_first = prospects(tokens, tokens / 10, 2, 2)
    >>> near.tolist(), hopes.tolist(), waiting.tolist(), num_first
    ([[7, -1, -1], [-1, -1, -1], [-1, -1, -1]], [0.8, 0.9, 0.5], [1, 2], 1)
    """
    near, hopes = np.full(tokens.shape, NONE, tokens.dtype), np.empty(tokens.shape[0], np.float64)
    for i in range(tokens.shape[0]):
        hopes[i] = sigmas[i].max()
        certain = alike < tokens.shape[1] and sigmas[i, 0] >= 0  # a special token is dropped, and then the next counts
        for j in range(1, alike if certain else 0):
            certain &= tokens[i, j] == tokens[i, 0]
        if certain:
            near[i, 0] = tokens[i, 0]
    order = falling(hopes, -np.inf)
    waiting, found, num_first = np.empty(order.shape[0], np.int64), 0, 0
    for rank in range(order.shape[0]):
        if near[order[rank], 0] < 0:
            waiting[found] = order[rank]
            found += 1
            num_first += rank < first
    return near, hopes, waiting[:found], num_first
