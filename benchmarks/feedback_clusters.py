"""Clustering the vectors of three feedback passages: our k-means and k-medoids against scikit-learn's KMeans.

    pip install ".[dev]"
    python benchmarks/feedback_clusters.py

A set is the vectors of three neighbouring passages of the demo, Python's own documentation, encoded by the embedded
model. On each set the methods take turns, round after round, in one process. All k-means make K = 24 clusters from 10
starts; scikit-learn's is ``KMeans(24, n_init=10, random_state=42)``. A time is the median over sets and rounds: on the
clock, and of the processors, which other processes disturb less. Ratios are to our own on one thread. Those of the cost
are means over sets: of inertia for k-means, of the sum of distances for k-medoids, where alternating from the most
central vectors is what scikit-learn-extra's ``KMedoids`` does by default. The last column says on how many sets our
cost is at most 1 % above this one.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from statistics import median
from time import perf_counter, process_time

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from threadpoolctl import threadpool_limits

from colbert_prf import Encoder
from colbert_prf.demo import demo_passages
from colbert_prf.kernels.kmeans import kmeans
from colbert_prf.kernels.kmedoids import alternate_definition, central_vectors, kmedoids
from colbert_prf.kernels.seeding import squared_distances

K, SEED = 24, 42
Vectors = NDArray[np.float32]
Method = Callable[[Vectors], float]
Key = tuple[str, int]
"""The name of a method and its number of threads."""
Figures = dict[Key, list[float]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    sets = list(feedback_sets(arguments.sets))
    with ThreadPoolExecutor(arguments.threads) as executor:
        methods = make_methods(arguments.threads, executor)
        clock, processors, costs = measure(methods, sets, arguments.rounds)
    sizes = [len(vectors) for vectors in sets]
    print(f"{len(sets)} sets of {min(sizes)} to {max(sizes)} vectors (median {median(sizes):.0f}), ", end="")
    print(f"{arguments.rounds} rounds\n")
    print("| method | threads | ms | times ours | processor ms | times ours | cost / ours | ours within 1 % |")
    print("|---|---|---|---|---|---|---|---|")
    for key in methods:
        ours = ("k-medoids" if "medoids" in key[0] else "k-means", 1)
        row = [key[0], str(key[1])]
        for times in (clock, processors):
            row += [f"{1000 * median(times[key]):.2f}", f"{median(times[key]) / median(times[ours]):.1f}"]
        ratios = np.array(costs[key]) / np.array(costs[ours])
        print(f"| {' | '.join(row)} | {ratios.mean():.4f} | {np.mean(1.01 * ratios >= 1):.0%} |")


def feedback_sets(count: int) -> Iterator[Vectors]:
    passages = [text for _, text in demo_passages() if len(text.split()) > 30]
    encoder = Encoder.load()
    for first in np.linspace(0, len(passages) - 3, count).astype(int):
        yield np.concatenate([document.vectors for document in encoder.encode_documents(passages[first : first + 3])])


def make_methods(threads: int, executor: ThreadPoolExecutor) -> dict[Key, Method]:
    """What takes vectors and gives the cost."""

    def ours(vectors: Vectors, threads: int) -> float:
        return kmeans(vectors, K, seed=SEED, threads=threads, executor=executor).inertia

    def theirs(vectors: Vectors, threads: int) -> float:
        with threadpool_limits(threads):
            return float(KMeans(K, n_init=10, random_state=SEED).fit(vectors).inertia_)

    def alternated(vectors: Vectors) -> float:
        distances = np.sqrt(squared_distances(vectors)[:, : len(vectors)])
        return float(distances[alternate_definition(distances, central_vectors(distances, K))].min(axis=0).sum())

    return {
        ("k-means", threads): lambda vectors: ours(vectors, threads),
        ("k-means", 1): lambda vectors: ours(vectors, 1),
        ("scikit-learn KMeans", threads): lambda vectors: theirs(vectors, threads),
        ("scikit-learn KMeans", 1): lambda vectors: theirs(vectors, 1),
        ("k-medoids", threads): lambda v: kmedoids(v, K, seed=SEED, threads=threads, executor=executor).cost,
        ("k-medoids", 1): lambda vectors: kmedoids(vectors, K, seed=SEED).cost,
        ("alternating k-medoids in NumPy", 1): alternated,
    }


def measure(methods: dict[Key, Method], sets: list[Vectors], rounds: int) -> tuple[Figures, Figures, Figures]:
    """Seconds on the clock and of the processors in each turn, and the cost on each set."""
    clock, processors, costs = ({key: [] for key in methods} for _ in range(3))
    for method in methods.values():
        method(sets[0])  # compiled, or loaded
    for vectors in sets:
        for round_ in range(rounds):
            for key, method in methods.items():
                started, used = perf_counter(), process_time()
                cost = method(vectors)
                processors[key].append(process_time() - used)
                clock[key].append(perf_counter() - started)
                if round_ == 0:
                    costs[key].append(cost)
    return clock, processors, costs


if __name__ == "__main__":
    main()
