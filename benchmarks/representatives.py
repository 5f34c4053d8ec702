"""What represents a cluster of feedback vectors: its mean, named by the nearest vectors, or the vector nearest to it.

    python benchmarks/representatives.py effect DATA --cache DIR
    python benchmarks/representatives.py agree DATA --cache DIR [--set vaswani] [--queries 10] [--documents 1]

``effect`` compares the two on the choosing sets, with the other defaults, at 4 bits and 1,000 documents a query; p is
of a paired t-test. ``agree`` compares the neighbours and tokens found through some of the codec's centroids with those
of comparing with all vectors of the folder, for several numbers of centroids and several shares of their radius.
Indexes are those of ``choose_feedback.py``.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from itertools import product
from pathlib import Path

import numpy as np
from effectiveness import CHOOSING, as_run, encode, open_searcher

from colbert_prf import ColbertPRF
from colbert_prf.evaluation import evaluate
from colbert_prf.feedback.base import most_likely
from colbert_prf.feedback.clustering import represent
from colbert_prf.index import nearest_tokens
from colbert_prf.kernels.workers import ALONE

BITS, DEPTH = 4, 1000
MEASURES = ("AP", "nDCG@10")
SYSTEMS = {
    "first pass": None,
    "means": ColbertPRF(clustering="kmeans"),
    "the vector nearest to each mean": ColbertPRF(clustering="kmeans-closest"),
}
PROBES, REACHES = (16, 32, 64), (0.0, 0.3, 0.6)
EVERY = 1 << 16


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["effect", "agree"])
    parser.add_argument("data", type=Path)
    parser.add_argument("--cache", type=Path, required=True)
    parser.add_argument("--set", choices=list(CHOOSING), default="vaswani")
    parser.add_argument("--queries", type=int, default=10)
    parser.add_argument("--documents", type=int, default=1)
    arguments = parser.parse_args()
    if arguments.what == "effect":
        compare_effect(arguments.data, arguments.cache)
    else:
        compare_neighbours(arguments)


def compare_effect(data: Path, cache: Path) -> None:
    """A row for each set, measure and system."""
    print_row(["set", "measure", *SYSTEMS, "difference", "p"])
    print_row(["---"] * (len(SYSTEMS) + 4))
    for collection, topics in CHOOSING.items():
        searcher = open_searcher(data, cache, topics.collection, BITS)
        texts, qrels = topics.read(data)
        queries = encode(searcher, texts)
        runs = {
            system: as_run(
                (query_id, searcher.search(query, DEPTH, feedback=method)) for query_id, query in queries.items()
            )
            for system, method in SYSTEMS.items()
        }
        *_, means, closest = SYSTEMS
        found = evaluate(qrels, runs, MEASURES, relevance=topics.relevance, baselines=[means])
        for measure in MEASURES:
            (against,) = found.compared(closest, measure)
            figures = [f"{found.mean(system, measure):.4f}" for system in SYSTEMS]
            print_row([collection, measure, *figures, f"{against.difference:+.4f}", f"{against.p_value:.2f}"])


def compare_neighbours(arguments: argparse.Namespace) -> None:
    """A row for each number of centroids and share of their radius."""
    topics = CHOOSING[arguments.set]
    searcher = open_searcher(arguments.data, arguments.cache, topics.collection, BITS)
    texts = dict(list(topics.read(arguments.data)[0].items())[: arguments.queries])
    collection = searcher.index.snapshot
    settings = [(EVERY, 0.0), *product(PROBES, REACHES)]
    found, same, shares = ({setting: [] for setting in settings} for _ in range(3))
    for query in encode(searcher, texts).values():
        feedback = collection.vectors_of(collection.positions(searcher.search(query, arguments.documents).doc_ids))
        vectors = represent(feedback, ColbertPRF.clusters, method="kmeans", seed=ColbertPRF.seed, workers=ALONE).vectors
        for setting in settings:
            nearest_tokens.PROBES, nearest_tokens.REACH = setting
            near = collection.nearest_tokens(vectors, ColbertPRF.neighbours)
            tokens = most_likely(near.token_ids, collection.special_ids)
            if setting[0] == EVERY:
                farthest, expected = near.similarities[:, -1:], tokens
            found[setting].append(np.mean(near.similarities >= farthest - 1e-6))
            same[setting].append(np.mean(tokens == expected))
            shares[setting].append(nearest_tokens.probed_centroids(collection.on_disk.codec, vectors).mean())
    print_row(["centroids", "of the radius", "ten nearest found", "same token", "centroids read"])
    print_row(["---"] * 5)
    for setting in settings:
        probes = "all" if setting[0] == EVERY else str(setting[0])
        figures = [f"{np.mean(parts[setting]):.3f}" for parts in (found, same, shares)]
        print_row([probes, f"{setting[1]:g}", *figures])


def print_row(cells: Iterable[str]) -> None:
    print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
