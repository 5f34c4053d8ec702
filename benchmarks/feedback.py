"""What feedback costs: Ranker and ReRanker against the first pass and against a straightforward implementation.

    python benchmarks/feedback.py DATA --cache DIR [--bits 4] [--k 1000] [--query-vectors 32]

Over the pool of DATA/msmarco-dl1920 with the queries of TREC DL 2019 and 2020, encoded beforehand. Systems take turns
in one process, all queries each; a time is the median over the queries of the median of the rounds. A machine has slow
seconds: what a system takes against the first pass is told for each round, from medians over the queries, of which the
table has the median. The straightforward implementation clusters with scikit-learn and searches from scratch with the
expanded query. Also checks what the speed may not change: the neighbours that name the mean of a cluster against
comparing with every vector, and the best 100 documents against a search from scratch.

With --query-vectors queries are filled up to the number of vectors ColBERT models have, as in search.py.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, median
from time import perf_counter

import numpy as np
from effectiveness import POOL, encode, open_searcher
from numpy.typing import NDArray
from systems import encoded_queries
from vectors import Texts, filled_up

from colbert_prf import CentroidPRF, ColbertPRF, EncodedQuery, Index, Ranking, Searcher
from colbert_prf.feedback.base import most_likely
from colbert_prf.feedback.clustering import Representatives, represent
from colbert_prf.index.collection import DocumentVectors
from colbert_prf.index.snapshot import Snapshot
from colbert_prf.kernels.workers import ALONE, Workers

Search = Callable[[EncodedQuery], Ranking]
BEST = 100
"""Documents that must be those of a search from scratch."""


@dataclass(frozen=True, kw_only=True)
class Straightforward(ColbertPRF):
    """Clusters with scikit-learn, without the zero vectors of ``compat="paper"``."""

    def _represent(self, feedback: DocumentVectors, workers: Workers) -> Representatives:
        from sklearn.cluster import KMeans

        clusters = min(self.clusters, len(feedback.vectors))
        found = KMeans(clusters, random_state=self.seed, n_init=10).fit(feedback.vectors)
        closest = found.transform(feedback.vectors).argmin(axis=0)
        return Representatives(feedback.vectors[closest], found.labels_, feedback.token_ids[closest])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--cache", type=Path, required=True)
    parser.add_argument("--bits", type=int, default=4)
    parser.add_argument("--k", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--query-vectors", type=int, help="fill queries up to so many vectors, all of weight 1")
    arguments = parser.parse_args()
    searcher = open_searcher(arguments.data, arguments.cache, "msmarco-dl1920", arguments.bits)
    queries = [query for topics in POOL.values() for query in encode(searcher, topics.read(arguments.data)[0]).values()]
    if arguments.query_vectors:
        texts = Texts.join((str(number), query.token_ids, query.vectors) for number, query in enumerate(queries))
        queries = encoded_queries(filled_up(texts, arguments.query_vectors))
    systems = systems_of(searcher, arguments.k, arguments.threads)
    times, stages = measure(systems, queries, arguments.rounds)
    length = mean(len(query) for query in queries)
    print(f"{len(queries)} queries of {length:.1f} vectors, ", end="")
    print(f"bits={arguments.bits}, k={arguments.k}, {arguments.threads} threads\n")
    print("| system | median, ms | against the first pass |\n|---|---|---|")
    first = np.median(times["first pass"], axis=1)
    for name, taken in times.items():
        against = np.median(np.median(taken, axis=1) / first)
        print(f"| {name} | {1000 * np.median(np.median(taken, axis=0)):.2f} | {against:.2f} |")
    print("\n| stage of the Ranker | median, ms |\n|---|---|")
    for stage, taken in stages["Ranker"].items():
        print(f"| {stage} | {1000 * taken:.2f} |")
    best = min(BEST, arguments.k)
    for name, method in {"Ranker": ColbertPRF(), "ReRanker": ColbertPRF(rerank=True)}.items():
        agreement = mean(same_best(searcher, query, arguments.k, method) for query in queries)
        print(f"\nBest {best} of the {name} that a search from scratch has too: {best * agreement:.2f}")
    assert isinstance(searcher.index, Index)
    found, named = neighbours(searcher, queries)
    print(f"Ten nearest vectors found: {found:.3f}; same token as by comparing with all: {named:.3f}")


def systems_of(searcher: Searcher, k: int, threads: int) -> dict[str, Search]:
    def straightforward(query: EncodedQuery) -> Ranking:
        first = searcher.search(query, k=k, threads=threads)
        expansion = Straightforward().expand(query, first, searcher.index)
        return searcher.search(expansion.query, k=k, threads=threads)

    return {
        "first pass": lambda query: searcher.search(query, k=k, threads=threads),
        "Ranker": lambda query: searcher.search(query, k=k, threads=threads, feedback=ColbertPRF()),
        "ReRanker": lambda query: searcher.search(query, k=k, threads=threads, feedback=ColbertPRF(rerank=True)),
        "Ranker, means as in the paper": lambda query: searcher.search(
            query, k=k, threads=threads, feedback=ColbertPRF(clustering="kmeans")
        ),
        "ReRanker of the best k": lambda query: searcher.search(
            query, k=k, threads=threads, feedback=ColbertPRF(rerank=True, rerank_depth=k)
        ),
        "CentroidPRF": lambda query: searcher.search(query, k=k, threads=threads, feedback=CentroidPRF()),
        "straightforward Ranker": straightforward,
    }


def measure(
    systems: Mapping[str, Search], queries: list[EncodedQuery], rounds: int
) -> tuple[dict[str, NDArray[np.float64]], dict[str, dict[str, float]]]:
    """Seconds of each system, of shape (rounds, queries), and the median of each of its stages."""
    times = {name: np.empty((rounds, len(queries))) for name in systems}
    stages: dict[str, dict[str, list[float]]] = {name: {} for name in systems}
    for search in systems.values():
        search(queries[0])
    for turn in range(rounds):
        for name, search in systems.items():
            for number, query in enumerate(queries):
                started = perf_counter()
                ranking = search(query)
                times[name][turn, number] = perf_counter() - started
                for stage, taken in ranking.timings.items():
                    stages[name].setdefault(stage, []).append(taken)
    return times, {name: {stage: median(taken) for stage, taken in parts.items()} for name, parts in stages.items()}


def same_best(searcher: Searcher, query: EncodedQuery, k: int, method: ColbertPRF) -> float:
    """The share of the best documents that a search from scratch with the expanded query finds as well."""
    reused = searcher.search(query, k=k, feedback=method)
    scratch = searcher.search(reused.query, k=k)
    best = min(BEST, k)
    return len(set(reused.doc_ids[:best]) & set(scratch.doc_ids[:best])) / best


def neighbours(searcher: Searcher, queries: list[EncodedQuery]) -> tuple[float, float]:
    """Of the means of all queries: the share of the ten nearest vectors found, and of tokens that are the same."""
    collection, parameters = searcher.index.snapshot, ColbertPRF()
    vectors, near = [], []
    for query in queries:
        feedback = collection.vectors_of(collection.positions(searcher.search(query, k=3).doc_ids))
        vectors.append(represent(feedback, parameters.clusters, method="kmeans", seed=42, workers=ALONE).vectors)
        near.append(collection.nearest_tokens(vectors[-1], parameters.neighbours))
    token_ids, similarities = (np.concatenate(parts) for parts in zip(*near, strict=True))
    true_ids, true = nearest_of_all(collection, np.concatenate(vectors), parameters.neighbours)
    # A neighbour was found if it is as near as the last of the true ones, rounding aside.
    found = np.mean(similarities >= true[:, -1:] - 1e-3)
    same = most_likely(token_ids, collection.special_ids) == most_likely(true_ids, collection.special_ids)
    return float(found), float(np.mean(same))


def nearest_of_all(
    snapshot: Snapshot, vectors: NDArray[np.float32], count: int
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """The tokens of the nearest of all document vectors, nearest first, and how near they are, both (n, count)."""
    token_ids, near = np.full((len(vectors), count), -1, np.int32), np.full((len(vectors), count), -np.inf, np.float32)
    for segment in snapshot.segments:
        for start, end in segment.ranges():
            products = vectors @ segment.vectors(start, end).T
            # Sorting all of them would take minutes.
            rows = np.argpartition(-products, min(count, products.shape[1] - 1), axis=1)[:, :count]
            tokens = segment.token_ids[segment.offsets[start] : segment.offsets[end]][rows].astype(np.int32)
            token_ids = np.concatenate([token_ids, tokens], axis=1)
            near = np.concatenate([near, np.take_along_axis(products, rows, axis=1)], axis=1)
            order = np.argsort(-near, axis=1, kind="stable")[:, :count]
            token_ids, near = (np.take_along_axis(part, order, axis=1) for part in (token_ids, near))
    return token_ids, near


if __name__ == "__main__":
    main()
