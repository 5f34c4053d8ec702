"""Find out whether feedback should be left out, or weakened, where the first pass looks poor; AP and nDCG@10.

    python scripts/choose_selective.py vaswani.index:../shared/data/vaswani:qrels.txt:queries.tsv \\
        nfcorpus.index:../shared/data/nfcorpus:dev.qrels.txt:dev.queries.tsv \\
        scifact.index:../shared/data/scifact:qrels.txt:queries.tsv

Prints a Markdown table. The threshold of each collection is the best one, by AP, on the other collections. Damped
weights are rounded to halves. "better of both" takes for each query the better of first pass and feedback.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from colbert_prf import ColbertPRF, Expansion, Index, Ranking, Searcher
from colbert_prf.datasets import read_qrels, read_topics
from colbert_prf.evaluation import evaluate, paired_t_test
from colbert_prf.feedback.selective import coherence, damped
from colbert_prf.feedback.source import FeedbackSource, source_of

DEPTH, SCORES = 1000, 100
"""Documents of a run, and of the first pass that the spread is taken over."""
LEVELS = 2
"""Feedback is run with 0, 1/2 and 2/2 of its weight."""
Values = npt.NDArray[np.float64]


class Collection(NamedTuple):
    name: str
    values: Values
    """Of shape (LEVELS + 1, 2, num_queries): AP and nDCG@10."""
    confidences: dict[str, Values]
    """Each of shape (num_queries,)."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("collections", nargs="+", metavar="INDEX:FOLDER:QRELS:QUERIES")
    parser.add_argument("--threads", type=int)
    arguments = parser.parse_args()
    report([read(*argument.split(":"), arguments.threads) for argument in arguments.collections])


def report(collections: list[Collection]) -> None:
    print("| | " + " | ".join(collection.name for collection in collections) + " | mean AP |")
    print("|---|" + "---|" * len(collections) + "---|")
    show("first pass", [collection.values[0] for collection in collections], collections)
    show("feedback always", [collection.values[-1] for collection in collections], collections)
    show("half the weight always", [collection.values[LEVELS // 2] for collection in collections], collections)
    for confidence in collections[0].confidences:
        for damp in (False, True):
            rows, notes = [], []
            for collection in collections:
                others = [other for other in collections if other is not collection] or [collection]
                threshold = best_threshold(others, confidence, damp=damp)
                levels = chosen_levels(collection.confidences[confidence], threshold, damp=damp)
                rows.append(at_levels(collection, levels))
                notes.append(f"; at {threshold:.3f} full for {(levels == LEVELS).mean():.0%}")
            show(confidence + (", damped" if damp else ""), rows, collections, notes)
    show("better of both", [np.maximum(c.values[0], c.values[-1]) for c in collections], collections)
    print()
    for collection in collections:
        gains = collection.values[-1, 0] - collection.values[0, 0]
        found = [f"{name} {rank_correlation(values, gains):+.2f}" for name, values in collection.confidences.items()]
        print(f"{collection.name}: rank correlation of the confidence with the gain in AP: {', '.join(found)}")


def read(index: str, folder: str, qrels_file: str, queries_file: str, threads: int | None) -> Collection:
    searcher, qrels = Searcher(Index.open(index), threads=threads), read_qrels(Path(folder, qrels_file))
    source = source_of(searcher.index)
    runs: list[dict[str, dict[str, float]]] = [{} for _ in range(LEVELS + 1)]
    confidences: dict[str, dict[str, float]] = defaultdict(dict)
    for query_id, text in read_topics(Path(folder, queries_file)).items():
        if query_id not in qrels:
            continue
        after = searcher.search(text, k=DEPTH, feedback=ColbertPRF())
        before, expansion = after.before, after.expansion
        assert before is not None
        assert expansion is not None
        for level, run in enumerate(runs):
            if level in (0, LEVELS):
                ranking = after if level else before
            else:
                ranking = searcher.search(damped(expansion, level / LEVELS).query, k=DEPTH)
            run[query_id] = {hit.doc_id: hit.score for hit in ranking}
        for name, value in confidences_of(before, expansion, source).items():
            confidences[name][query_id] = value
    found = evaluate(qrels, {str(level): run for level, run in enumerate(runs)}, ["AP", "nDCG@10"])
    by_query = {
        name: np.array([values[query_id] for query_id in found.query_ids]) for name, values in confidences.items()
    }
    print(f"{Path(folder).name}: {len(found.query_ids)} queries read", flush=True)
    return Collection(Path(folder).name, found.values, by_query)


def confidences_of(before: Ranking, expansion: Expansion, source: FeedbackSource) -> dict[str, float]:
    """How good the first pass looks, by each measure.

    ``coherence``: how alike the feedback documents are. ``spread``: standard deviation over mean of the best scores,
    after NQC (Shtok, Kurland, Carmel, Raiber and Markovits, 2012). ``clarity``: the mean P(t|υ) of the added vectors.
    """
    scores = np.array([hit.score for hit in before.hits[:SCORES]])
    return {
        "coherence": coherence(expansion.feedback, source),
        "spread": float(np.clip(scores.std() / scores.mean(), 0, 1)),
        "clarity": float(np.mean([vector.probability for vector in expansion.vectors])),
    }


def chosen_levels(confidences: Values, threshold: float, *, damp: bool) -> npt.NDArray[np.int64]:
    """How many parts of the weight each query gets."""
    below = np.round(LEVELS * confidences / threshold) if damp and threshold > 0 else 0
    return np.where(confidences >= threshold, LEVELS, below).astype(np.int64)


def at_levels(collection: Collection, levels: npt.NDArray[np.int64]) -> Values:
    """AP and nDCG@10 of every query, of shape (2, num_queries)."""
    return collection.values[levels, :, np.arange(len(levels))].T


def best_threshold(collections: list[Collection], confidence: str, *, damp: bool) -> float:
    """The threshold of the highest mean AP over some collections; 0 is feedback always, 1 hardly ever."""
    seen = np.concatenate([collection.confidences[confidence] for collection in collections])
    candidates = [0.0, *np.unique(np.quantile(seen, np.linspace(0, 1, 101))).tolist(), 1.0]

    def mean(threshold: float) -> float:
        return float(
            np.mean(
                [
                    at_levels(each, chosen_levels(each.confidences[confidence], threshold, damp=damp))[0].mean()
                    for each in collections
                ]
            )
        )

    return max(candidates, key=mean)


def show(name: str, rows: list[Values], collections: list[Collection], notes: list[str] | None = None) -> None:
    """One row: AP / nDCG@10, and how likely so large a difference in AP from feedback always is by chance."""
    cells = []
    for row, collection, note in zip(rows, collections, notes or [""] * len(rows), strict=True):
        p_value = paired_t_test(row[0] - collection.values[-1, 0]) if notes else 1.0
        chance = f" (p={p_value:.2f}{note})" if notes else ""
        cells.append(f"{row[0].mean():.4f} / {row[1].mean():.4f}{chance}")
    print(f"| {name} | " + " | ".join(cells) + f" | {np.mean([row[0].mean() for row in rows]):.4f} |", flush=True)


def rank_correlation(first: Values, second: Values) -> float:
    """Spearman's ρ, ties in the order they come."""
    ranks = [np.argsort(np.argsort(values)) for values in (first, second)]
    return float(np.corrcoef(*ranks)[0, 1])


if __name__ == "__main__":
    main()
