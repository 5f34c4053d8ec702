"""How costs grow with the collection: build, memory, disk and latency from 0.3 to 30 million synthetic vectors.

    python benchmarks/growth.py --workdir /tmp
    python benchmarks/growth.py --compare CACHE

Each size has a process of its own that builds an index from a stream of passages (see `synthetic.py`), about 80 vectors
each, and another that searches it on 2 threads with queries of 32 vectors; then the index is removed. With `--keep` it
stays, and a later run with the same workdir only searches it again. Build seconds leave out the time spent making
vectors up. Peak memory is the largest resident set of the child up to the end of the build; it counts
pages of memory-mapped files, which the system takes back when it needs them, so the memory the process itself allocated
stands beside it, where the system tells (Linux). Distance is the mean squared distance of a query vector to its nearest
centroid.

Feedback is measured for k = 10, with the defaults and with the means of clusters as in the paper, which are looked up
in the whole collection: the first search with feedback over the index in its process (kernels are loaded before, on a
small index), the median of the others, and how much more memory the process allocated than before, at most. The
searches without feedback come before them.

The last rows are exponents: the slope of log cost against log size, over all sizes and over the last step; 1
means that the cost grows like the collection, 0 that it does not grow.

`--compare` prints distances between the synthetic vectors and between those of the cache of `search.py`.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from resource import RUSAGE_SELF, getrusage
from tempfile import TemporaryDirectory
from threading import Event, Thread
from time import perf_counter
from typing import Any

import numpy as np
from latency import CUTOFFS, THREADS, measure, report
from numpy.typing import NDArray
from synthetic import MEAN_LENGTH, Block, Collection
from tables import milliseconds, print_table
from vectors import Texts, folder_bytes, write_json

SIZES = (300_000, 1_000_000, 3_000_000, 10_000_000, 30_000_000)
QUERY_VECTORS = 32
RANKS = (1, 10, 100, 1000, 10_000)
FEEDBACK = {"feedback": {}, "means": {"clustering": "kmeans"}}
"""Parameters of the feedback methods, by what their columns are called."""
FEEDBACK_CUTOFF = 10


class Passages:
    """A stream of synthetic passages that knows how long it took to make them up."""

    def __init__(self, collection: Collection, count: int) -> None:
        self.collection = collection
        self.count = count
        self.seconds = 0.0

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        from colbert_prf import EncodedDocument

        number = 0
        blocks = self.collection.blocks(self.count)
        while (block := self._next(blocks)) is not None:
            for start, end in zip(block.offsets, block.offsets[1:], strict=False):
                yield f"passage-{number}", EncodedDocument(block.token_ids[start:end], block.vectors[start:end])
                number += 1

    def _next(self, blocks: Iterator[Block]) -> Block | None:
        started = perf_counter()
        block = next(blocks, None)
        self.seconds += perf_counter() - started
        return block


class AnonymousMemory(Thread):
    """Watches the memory this process has allocated, without files it has mapped; ``peak`` in bytes, 0 if unknown."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.status = Path("/proc/self/status")
        self.before = self.peak = self._now()
        self._over = Event()

    def run(self) -> None:
        while not self._over.wait(0.005):
            self.peak = max(self.peak, self._now())

    def _now(self) -> int:
        lines = self.status.read_text().splitlines() if self.status.exists() else []
        return max((1024 * int(line.split()[1]) for line in lines if line.startswith("RssAnon")), default=0)

    def stop(self) -> int:
        self._over.set()
        self.join()
        return self.peak


def folder_of(size: int, arguments: argparse.Namespace) -> Path:
    """Where an index and what its build took are kept."""
    return Path(arguments.workdir, f"growth-{size}-{arguments.bits}")


def build(size: int, arguments: argparse.Namespace) -> dict[str, float]:
    """Build an index of about ``size`` vectors; in a process that does nothing else."""
    from colbert_prf import Index

    folder, passages = folder_of(size, arguments), passages_of(size)
    with TemporaryDirectory(dir=arguments.workdir, prefix="growth-") as small:
        # The first build of a process also loads compiled kernels: not what is measured.
        few = Passages(Collection(), 64)
        Index.create_from_vectors(Path(small, "index"), few, bits=arguments.bits, progress=False)
    memory = AnonymousMemory()
    memory.start()
    started = perf_counter()
    index = Index.create_from_vectors(
        folder / "index", passages, bits=arguments.bits, total=passages.count, progress=False
    )
    taken = perf_counter() - started - passages.seconds
    anonymous, resident = memory.stop(), peak_resident()
    return {
        "vectors": index.num_vectors,
        "passages": index.num_documents,
        "centroids": index.codec.num_centroids,
        "build_seconds": taken,
        "synthesis_seconds": passages.seconds,
        "peak_bytes": resident,
        "peak_anonymous_bytes": anonymous,
        "disk_bytes": folder_bytes(folder / "index"),
    }


def search(size: int, arguments: argparse.Namespace) -> dict[str, float]:
    """Search the index of a size; in a process that does nothing else."""
    from colbert_prf import EncodedQuery, Index, Searcher

    block = Collection().queries(arguments.queries, QUERY_VECTORS, passages_of(size).count)
    queries = [
        EncodedQuery(block.token_ids[start : start + QUERY_VECTORS], block.vectors[start : start + QUERY_VECTORS])
        for start in block.offsets[:-1]
    ]
    with TemporaryDirectory(dir=arguments.workdir, prefix="growth-") as small:
        few = Passages(Collection(), 64)
        index = Index.create_from_vectors(Path(small, "index"), few, bits=arguments.bits, progress=False)
        measure_feedback(Searcher(index, threads=max(THREADS)), queries[:2])
    index = Index.open(folder_of(size, arguments) / "index")
    searcher = Searcher(index, threads=max(THREADS))
    result = {"distance": distance_to_nearest(block.vectors, index.codec.centroids)}
    for cutoff in CUTOFFS:
        timed = measure(searcher.search, queries, arguments.repeats, cutoff)
        result |= {f"latency@{cutoff}": timed["median"], f"cores@{cutoff}": timed["cores"]}
    return result | measure_feedback(searcher, queries)


def passages_of(size: int) -> Passages:
    """A stream of about ``size`` vectors."""
    return Passages(Collection(), max(1, round(size / MEAN_LENGTH)))


def measure_feedback(searcher: Any, queries: Sequence[Any]) -> dict[str, float]:
    """Of each method the first search, the median of the others, in ms, and the bytes it allocated at most."""
    from colbert_prf import ColbertPRF

    found = {}
    for name, parameters in FEEDBACK.items():
        memory, taken = AnonymousMemory(), []
        memory.start()
        for query in queries:
            started = perf_counter()
            searcher.search(query, FEEDBACK_CUTOFF, feedback=ColbertPRF(**parameters))
            taken.append(1000 * (perf_counter() - started))
        found |= {f"{name}_first": taken[0], f"{name}_later": float(np.median(taken[1:] or taken))}
        found[f"{name}_bytes"] = memory.stop() - memory.before
    return found


def peak_resident() -> int:
    """The largest resident set of this process so far, in bytes."""
    peak = getrusage(RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak


def distance_to_nearest(vectors: NDArray[np.float32], centroids: NDArray[np.float32]) -> float:
    """The mean squared distance of a vector to the nearest centroid.

    >>> distance_to_nearest(np.eye(2, dtype=np.float32), np.array([[1, 0], [0, 0]], dtype=np.float32))
    0.5
    """
    centroids = centroids[:, : vectors.shape[1]]
    lengths = np.einsum("ij,ij->i", centroids, centroids)
    nearest = [(lengths - 2 * centroids @ vector).min() + vector @ vector for vector in vectors]
    return float(np.mean(nearest))


def exponents(sizes: Sequence[float], costs: Sequence[float]) -> tuple[float, float]:
    """The slope of log cost against log size over all sizes, and over the last step.

    >>> overall, last = exponents([1, 10, 100], [5, 50, 50])
    >>> round(overall, 3), round(last, 3)
    (0.5, 0.0)
    """
    x, y = np.log(sizes), np.log(costs)
    return float(np.polyfit(x, y, 1)[0]), float((y[-1] - y[-2]) / (x[-1] - x[-2]))


def print_results(results: Sequence[dict[str, float]]) -> None:
    """A row for each size, then the exponents."""
    costs = ["build_seconds", "peak_bytes", "peak_anonymous_bytes", "disk_bytes", *(f"latency@{k}" for k in CUTOFFS)]
    heads = ["vectors", "centroids", "distance", "build, s", "peak, MB", "allocated, MB", "disk, MB", "bytes/vector"]
    lines = [
        [
            *(f"{result[key]:,}" for key in ("vectors", "centroids")),
            f"{result['distance']:.3f}",
            f"{result['build_seconds']:.1f}",
            *(f"{result[key] / 1e6:,.0f}" if result[key] else "–" for key in costs[1:4]),
            f"{result['disk_bytes'] / result['vectors']:.1f}",
            *(milliseconds(result[key]) for key in costs[4:]),
            *(
                f"{result[f'{name}_first']:.0f}, {result[f'{name}_later']:.1f}, {result[f'{name}_bytes'] / 1e6:.0f}"
                for name in FEEDBACK
            ),
        ]
        for result in results
    ]
    if len(results) > 1:
        sizes = [result["vectors"] for result in results]
        slopes = [exponents(sizes, [max(result[key], 1e-9) for result in results]) for key in costs]
        for place, name in enumerate(("exponent", "last step")):
            figures = [f"{slope[place]:.2f}" for slope in slopes]
            lines.append([name, "", "", *figures[:4], "", *figures[4:], *("" for _ in FEEDBACK)])
    heads += [f"k={cutoff}, ms" for cutoff in CUTOFFS]
    print_table([*heads, *(f"{name}: first, later, ms, and MB" for name in FEEDBACK)], lines)


def compare(cache: Path) -> None:
    """Print, for synthetic passages and for those of a cache, how far the nearest vectors of other passages are."""
    count = 10_000
    blocks = list(Collection().blocks(count))
    lengths = np.concatenate([np.diff(block.offsets) for block in blocks])
    synthetic = np.concatenate([block.vectors for block in blocks])
    real = Texts.load(cache, "documents").first(count)
    lines = [
        ["MS MARCO", *distances(real.vectors, np.diff(real.offsets))],
        ["synthetic", *distances(synthetic, lengths)],
    ]
    print_table(["vectors", *(f"neighbour {rank:,}" for rank in RANKS), "4,096 centroids"], lines)


def distances(vectors: NDArray[np.float32], lengths: NDArray[np.int64]) -> list[str]:
    """Mean squared distances: to neighbours of some ranks in other passages, and to the nearest of 4,096 centroids."""
    from colbert_prf.index import Codec

    random = np.random.default_rng(0)
    passage_of = np.repeat(np.arange(len(lengths)), lengths)
    found = []
    for place in random.integers(0, len(vectors), 100):
        similarities = vectors @ vectors[place]
        similarities[passage_of == passage_of[place]] = -1
        largest = np.sort(np.partition(similarities, len(vectors) - max(RANKS))[-max(RANKS) :])[::-1]
        found.append([2 - 2 * largest[rank - 1] for rank in RANKS])
    sample = vectors[random.permutation(len(vectors))[: 48 * 4096]]
    codec = Codec.train(sample, num_vectors_expected=1 << 20, bits=2)
    near = distance_to_nearest(vectors[random.integers(0, len(vectors), 5000)], codec.centroids)
    return [f"{figure:.2f}" for figure in [*np.mean(found, axis=0), near]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", metavar="VECTORS", default=SIZES)
    parser.add_argument("--bits", type=int, default=2)
    parser.add_argument("--queries", type=int, default=50)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument(
        "--workdir", type=Path, default=Path(), help="where indexes are made: 12 GB for the largest size"
    )
    parser.add_argument("--keep", action="store_true", help="keep the indexes, and search those there are")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument(
        "--compare", type=Path, metavar="CACHE", help="compare the vectors with real ones, build nothing"
    )
    parser.add_argument("--step", choices=("build", "search"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.compare:
        compare(arguments.compare)
    elif arguments.step:
        step = build if arguments.step == "build" else search
        print(json.dumps(step(arguments.sizes[0], arguments)))
    else:
        results = [measure_size(size, arguments) for size in sorted(arguments.sizes)]
        if arguments.json:
            print(json.dumps(results, indent=1))
        else:
            print_results(results)


def measure_size(size: int, arguments: argparse.Namespace) -> dict[str, float]:
    """Build an index of a size where there is none yet, search it, and remove it unless it is to be kept."""
    folder = folder_of(size, arguments)
    built = folder / "build.json"
    if not built.exists():
        report(f"building {size:,} vectors ...")
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        write_json(built.with_suffix(".new"), in_child("build", size, arguments))
        built.with_suffix(".new").rename(built)
    report(f"searching {size:,} vectors ...")
    result = {**json.loads(built.read_text(encoding="utf-8")), **in_child("search", size, arguments)}
    report(json.dumps(result))  # not lost if a larger size fails
    if not arguments.keep:
        shutil.rmtree(folder)
    return result


def in_child(step: str, size: int, arguments: argparse.Namespace) -> dict[str, float]:
    """Do a step in a new process, so that its memory is its own."""
    same = [f"--{name}={getattr(arguments, name)}" for name in ("bits", "queries", "repeats", "workdir")]
    command = [sys.executable, __file__, f"--step={step}", f"--sizes={size}", *same]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    result: dict[str, float] = json.loads(done.stdout)
    return result


if __name__ == "__main__":
    main()
