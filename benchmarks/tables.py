"""Results as Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from latency import CUTOFFS, THREADS, cell
from peers import PEERS
from systems import LABELS
from vectors import Texts


def print_tables(
    results: Mapping[str, dict[str, Any]], skipped: Mapping[str, str], documents: Texts, queries: Texts
) -> None:
    """Print a table of build, size and quality, one of latency, and which run measured what."""
    print(f"\n{len(documents):,} passages, {len(documents.vectors):,} vectors; ", end="")
    print(f"{len(queries)} queries of {len(queries.vectors) / len(queries):.1f} vectors each\n")
    recalls = [f"recall@{cutoff}" for cutoff in CUTOFFS]
    print_table(
        ["system", "build, s", "bytes/vector", *recalls, "nDCG@10", "MAP"],
        [[label(name), *quality_cells(result)] for name, result in results.items()],
    )
    heads = [f"k={cutoff}, {threads} thread{'s' * (threads > 1)}" for cutoff in CUTOFFS for threads in THREADS]
    cells = [cell(cutoff, threads) for cutoff in CUTOFFS for threads in THREADS]
    print("Milliseconds per query, median (95th percentile):\n")
    print_table(
        ["system", *heads],
        [[label(name), *(latency(result["latency"][key]) for key in cells)] for name, result in results.items()],
    )
    runs: dict[str, list[str]] = {}
    for name, result in results.items():
        runs.setdefault(result["run"], []).append(label(name))
    for run, labels in sorted(runs.items()):
        print(f"Run of {run}: {'; '.join(labels) if len(runs) > 1 else 'all rows'}.")
    for name, reason in skipped.items():
        print(f"Left out: {label(name)}: {reason}.")


def print_table(heads: Sequence[str], lines: Sequence[Sequence[str]]) -> None:
    for line in (heads, ["---"] * len(heads), *lines):
        print(f"| {' | '.join(line)} |")
    print()


def label(name: str) -> str:
    if name in LABELS:
        return LABELS[name]
    package, bits = PEERS[name]
    return f"{package}, {bits} bits"


def quality_cells(result: Mapping[str, Any]) -> list[str]:
    """Build, size, recalls, nDCG@10 and MAP of a result."""
    build = f"{result['build_seconds']:.1f}" if result["build_seconds"] else "–"
    judged = result["quality"].get("all")
    measures = [share(judged["ndcg@10"]), share(judged["map"])] if judged else ["–", "–"]
    return [build, f"{result['bytes_per_vector']:.1f}", *map(share, result["recall"].values()), *measures]


def share(value: float) -> str:
    """Three digits, without the zero.

    >>> share(0.9514), share(1.0)
    ('.951', '1.000')
    """
    return f"{value:.3f}".removeprefix("0")


def latency(found: Mapping[str, float]) -> str:
    """The median, and the 95th percentile in brackets.

    >>> latency({"median": 1.234, "p95": 12.34}), latency({"median": 123.4, "p95": 200.0})
    ('1.23 (12.3)', '123 (200)')
    """
    return f"{milliseconds(found['median'])} ({milliseconds(found['p95'])})"


def milliseconds(value: float) -> str:
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:.0f}"
