"""Choose the defaults of feedback: a grid over the four choosing sets, resumable.

    python benchmarks/choose_feedback.py DATA --cache DIR
    python benchmarks/choose_feedback.py DATA --cache DIR --table

The sets are DL 2021 (a closed pool of MS MARCO v2), Vaswani, NFCorpus (dev) and SciFact; nothing is reported on them as
if unseen. The first grid crosses how much the added vectors weigh, ``weight`` (relative to the query) or ``beta`` (the
paper's), with the number of feedback documents; the second varies the other parameters around the best of the first,
one at a time; the third tries the best of the second as a ``weight``, which also suits queries of few vectors. Where a
setting says nothing, the paper's value holds. Every setting is run once and kept in DIR/feedback-grid.jsonl.

The rule: of the settings that harm no set by more than 0.5 % in AP or nDCG@10, the one whose mean relative gain over
the first pass, averaged over sets, both measures and its neighbours in the grid, is best. ``--table`` also leaves
one set out at a time: how the setting that the other three choose does on the fourth.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from effectiveness import CHOOSING, as_run, encode, open_searcher

from colbert_prf import ColbertPRF, EncodedQuery, Searcher
from colbert_prf.evaluation import evaluate
from colbert_prf.progress import progress_bar

BITS, DEPTH = 4, 1000
MEASURES = ("AP", "nDCG@10")
WEIGHTS = (0.025, 0.05, 0.1, 0.2)
BETAS = (0.02, 0.05, 0.1, 0.2)
DOCUMENTS = (1, 2, 3, 5, 7, 10)
OTHERS: tuple[dict[str, Any], ...] = (
    {"clusters": 12},
    {"clusters": 36},
    {"clusters": 48},
    {"expansion_vectors": 5},
    {"expansion_vectors": 15},
    {"expansion_vectors": 20},
    {"clustering": "kmeans-closest"},
    {"clustering": "kmedoids"},
    {"weighting": "ictf"},
    {"weighting": "cosine"},
)
RELATIVE = (0.1, 0.15)
PAPER = {"feedback_docs": 3, "clusters": 24, "expansion_vectors": 10, "clustering": "kmeans"}
LARGEST_HARM = 0.005

Setting = dict[str, Any]
Gains = dict[str, float]
"""Relative gain by set and measure, such as ``"vaswani AP"``."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--cache", type=Path, required=True)
    parser.add_argument("--table", action="store_true", help="print what is there, run nothing")
    arguments = parser.parse_args()
    journal = Journal(arguments.cache / "feedback-grid.jsonl")
    if not arguments.table:
        journal.run(arguments.data, arguments.cache, strengths())
        best = choose(journal.gains, strengths())
        journal.run(arguments.data, arguments.cache, around(best))
        journal.run(arguments.data, arguments.cache, as_weights(journal.gains, best))
    report(journal.gains)


def strengths() -> list[Setting]:
    """The first grid."""
    amounts = [{"weight": value} for value in WEIGHTS] + [{"beta": value} for value in BETAS]
    return [{**amount, "feedback_docs": count} for amount in amounts for count in DOCUMENTS]


def around(best: Setting) -> list[Setting]:
    """The second grid."""
    return [{**best, **other} for other in OTHERS]


def as_weights(gains: Mapping[str, Gains], best: Setting) -> list[Setting]:
    """The third: the best of the second, relative to the query."""
    better = max((s for s in around(best) if harmless(gains[key(s)])), key=lambda s: mean_gain(gains[key(s)]))
    rest = {name: value for name, value in better.items() if name not in ("weight", "beta")}
    return [{**rest, "weight": weight} for weight in RELATIVE]


class Journal:
    """Gains of settings, one line each, so that an interrupted run goes on where it stopped."""

    def __init__(self, path: Path) -> None:
        self.path = path
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        self.gains: dict[str, Gains] = {}
        for line in lines:
            entry = json.loads(line)
            self.gains.setdefault(entry["setting"], {}).update(entry["gains"])

    def run(self, data: Path, cache: Path, settings: Iterable[Setting]) -> None:
        """Run what is missing, one collection after the other."""
        wanted = list(settings)
        for name, topics in CHOOSING.items():
            missing = [s for s in wanted if f"{name} AP" not in self.gains.get(key(s), {})]
            if not missing:
                continue
            searcher = open_searcher(data, cache, topics.collection, BITS)
            texts, qrels = topics.read(data)
            queries = encode(searcher, texts)
            first = measured(searcher, queries, None, qrels, topics.relevance)
            with progress_bar(name, total=len(missing)) as advance:
                for setting in missing:
                    found = measured(searcher, queries, ColbertPRF(**{**PAPER, **setting}), qrels, topics.relevance)
                    gains = {f"{name} {measure}": found[measure] / first[measure] - 1 for measure in MEASURES}
                    self._keep(setting, gains)
                    advance(1)

    def _keep(self, setting: Setting, gains: Gains) -> None:
        self.gains.setdefault(key(setting), {}).update(gains)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"setting": key(setting), "gains": gains}) + "\n")


def measured(
    searcher: Searcher,
    queries: Mapping[str, EncodedQuery],
    feedback: ColbertPRF | None,
    qrels: Mapping[str, Mapping[str, int]],
    relevance: int,
) -> dict[str, float]:
    run = as_run((query_id, searcher.search(query, k=DEPTH, feedback=feedback)) for query_id, query in queries.items())
    result = evaluate(qrels, {"run": run}, MEASURES, relevance=relevance)
    return {measure: result.mean("run", measure) for measure in MEASURES}


def key(setting: Setting) -> str:
    """A setting as text, the same for equal settings.

    >>> key({"weight": 0.1, "feedback_docs": 3})
    'feedback_docs=3, weight=0.1'
    """
    return ", ".join(f"{name}={setting[name]}" for name in sorted(setting))


def mean_gain(gains: Gains, sets: Sequence[str] = tuple(CHOOSING)) -> float:
    """Over the named sets and both measures."""
    return float(np.mean([gains[f"{name} {measure}"] for name in sets for measure in MEASURES]))


def harmless(gains: Gains, sets: Sequence[str] = tuple(CHOOSING)) -> bool:
    return all(gains[f"{name} {measure}"] >= -LARGEST_HARM for name in sets for measure in MEASURES)


def neighbours(setting: Setting) -> list[Setting]:
    """A setting of the first grid and those one step from it in either direction."""
    amount, values = ("weight", WEIGHTS) if "weight" in setting else ("beta", BETAS)
    place, count = values.index(setting[amount]), DOCUMENTS.index(setting["feedback_docs"])
    steps = ((0, 0), (-1, 0), (1, 0), (0, -1), (0, 1))
    return [
        {amount: values[place + i], "feedback_docs": DOCUMENTS[count + j]}
        for i, j in steps
        if 0 <= place + i < len(values) and 0 <= count + j < len(DOCUMENTS)
    ]


def stable_gain(gains: Mapping[str, Gains], setting: Setting, sets: Sequence[str] = tuple(CHOOSING)) -> float:
    return float(np.mean([mean_gain(gains[key(near)], sets) for near in neighbours(setting)]))


def choose(gains: Mapping[str, Gains], settings: Sequence[Setting], sets: Sequence[str] = tuple(CHOOSING)) -> Setting:
    """Apply the rule."""
    allowed = [setting for setting in settings if harmless(gains[key(setting)], sets)]
    return max(allowed, key=lambda setting: stable_gain(gains, setting, sets))


def report(gains: Mapping[str, Gains]) -> None:
    grid = [setting for setting in strengths() if key(setting) in gains]
    best = choose(gains, grid)
    columns = [f"{name} {measure}" for name in CHOOSING for measure in MEASURES]
    print(f"| setting | {' | '.join(columns)} | mean | with neighbours |")
    print("|---" * (len(columns) + 3) + "|")
    ordered = sorted(grid, key=lambda setting: -stable_gain(gains, setting))
    rows = [(setting, f"{stable_gain(gains, setting):+.2%}") for setting in ordered[:12]]
    rows += [(setting, "") for setting in [*around(best), *as_weights(gains, best)] if key(setting) in gains]
    for setting, stable in rows:
        found = gains[key(setting)]
        cells = " | ".join(f"{found[column]:+.1%}" for column in columns)
        print(f"| {key(setting)} | {cells} | {mean_gain(found):+.2%} | {stable} |")
    print(f"\nchosen by the first grid: {key(best)}")
    for left_out in CHOOSING:
        others = [name for name in CHOOSING if name != left_out]
        chosen = choose(gains, grid, others)
        found = gains[key(chosen)]
        cells = ", ".join(f"{measure} {found[f'{left_out} {measure}']:+.1%}" for measure in MEASURES)
        print(f"without {left_out}, the others choose {key(chosen)}: {left_out} {cells}")


if __name__ == "__main__":
    main()
