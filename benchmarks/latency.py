"""How long a query takes: systems in turns, pass after pass over all queries, in one process."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Mapping, Sequence
from time import perf_counter, process_time
from typing import Any

import numpy as np
from numpy.typing import NDArray

CUTOFFS = (10, 100, 1000)
THREADS = (1, 2)
WARM_UP = 8
"""Queries before the clock starts."""
LONG = 60.0
"""Seconds after which a system is not repeated any more."""


def measure(
    searches: Mapping[str, Callable[..., object]], queries: Sequence[Any], repeats: int, *settings: int
) -> dict[str, dict[str, float]]:
    """Time ``search(query, *settings)`` for every query and every system; a turn is one pass over all queries.

    A system that has taken a minute gets no further turn.

    Returns
    -------
    dict
        For each system what :func:`summary` says, and ``cores``: processor seconds per second, which shows how many
        threads were really at work.
    """
    passes: dict[str, list[list[float]]] = {name: [] for name in searches}
    used = dict.fromkeys(searches, 0.0)
    for search in searches.values():
        for query in queries[:WARM_UP]:
            search(query, *settings)
    gc.collect()
    gc.disable()
    try:
        for _ in range(repeats):
            for name, search in searches.items():
                if sum(map(sum, passes[name])) > LONG:
                    continue
                before = process_time()
                taken = []
                for query in queries:
                    started = perf_counter()
                    search(query, *settings)
                    taken.append(perf_counter() - started)
                passes[name].append(taken)
                used[name] += process_time() - before
    finally:
        gc.enable()
    seconds = {name: np.array(taken) for name, taken in passes.items()}
    return {name: {**summary(taken), "cores": used[name] / taken.sum()} for name, taken in seconds.items()}


def summary(seconds: NDArray[np.float64]) -> dict[str, float]:
    """The median and 95th percentile over queries, in ms, of the median over repeats; of shape (repeats, queries).

    >>> summary(np.array([[0.001, 0.009], [0.002, 0.003], [0.050, 0.003]]))["median"]
    2.5
    """
    of_queries = 1000 * np.median(seconds, axis=0)
    return {"median": float(np.median(of_queries)), "p95": float(np.quantile(of_queries, 0.95))}


def cell(cutoff: int, threads: int) -> str:
    """The name of a measurement in a result."""
    return f"k={cutoff},threads={threads}"


def report(message: str) -> None:
    """Tell what is being done, beside the output."""
    print(message, file=sys.stderr, flush=True)
