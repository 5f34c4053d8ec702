"""How long a query takes: pass after pass over all queries."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Sequence
from time import perf_counter, process_time
from typing import Any

import numpy as np
from numpy.typing import NDArray

CUTOFFS = (10, 100, 1000)
THREADS = (1, 2)
WARM_UP = 8
"""Queries before the clock starts."""
LONG = 60.0
"""Seconds after which nothing is repeated any more."""


def measure(search: Callable[..., object], queries: Sequence[Any], repeats: int, *settings: int) -> dict[str, float]:
    """Time ``search(query, *settings)`` for every query, pass after pass over all of them.

    After a minute there is no further pass.

    Returns
    -------
    dict
        What :func:`summary` says, and ``cores``: processor seconds per second, which shows how many threads were
        really at work.
    """
    for query in queries[:WARM_UP]:
        search(query, *settings)
    passes: list[list[float]] = []
    gc.collect()
    gc.disable()
    before = process_time()
    try:
        while len(passes) < repeats and sum(map(sum, passes)) <= LONG:
            passes.append([])
            for query in queries:
                started = perf_counter()
                search(query, *settings)
                passes[-1].append(perf_counter() - started)
    finally:
        gc.enable()
    used, seconds = process_time() - before, np.array(passes)
    return {**summary(seconds), "cores": used / seconds.sum()}


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
