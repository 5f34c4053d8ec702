"""What a search over shards costs beside that of one machine, and what follows for larger clusters.

    python benchmarks/distributed_search.py measure --cache DIR --output search.json
    python benchmarks/distributed_search.py model search.json

`measure` searches a made-up collection of eight segments (see `synthetic.py`). One machine, shards within the process
and shards of a local Ray take turns, query by query; figures are medians. It counts the round trips of a query, times
an empty round trip to 1 to 256 shards, and compares a search whose answers are delayed with what the model says of it.
`model` computes the latency of 4 to 256 shards from these figures: a round trip takes as long as its slowest answer.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import median
from time import perf_counter, sleep
from typing import Any

import numpy as np
from synthetic import Block, Collection

from colbert_prf import ColbertPRF, EncodedDocument, EncodedQuery, Index, Searcher
from colbert_prf.distributed.cluster import connected
from colbert_prf.distributed.messages import GenerationKey
from colbert_prf.distributed.searcher import DistributedSearcher
from colbert_prf.distributed.transport import LocalTransport, Transport, start_shards
from colbert_prf.errors import OutgrownCodecWarning

SEGMENTS, VECTORS_PER_QUERY = 8, 32
SHARDS, MACHINES, FAN_OUT = (1, 2, 4), (4, 16, 64, 256), (1, 4, 16, 64, 256)
SEARCHES = {
    "first pass, k = 10": {"k": 10},
    "Ranker, k = 10": {"k": 10, "feedback": ColbertPRF()},
    "ReRanker, k = 10": {"k": 10, "feedback": ColbertPRF(rerank=True)},
    "Ranker, k = 1000": {"k": 1000, "feedback": ColbertPRF()},
}
LATE = 0.01, 0.020
"""The share of answers that come late, as after a pause of a machine, and by how many seconds."""
Figures = dict[str, Any]


class CountedTransport(Transport):
    """Another transport, with its round trips counted and timed, and answers delayed if wanted."""

    def __init__(self, inner: Transport, delays: tuple[float, float] = (0.0, 0.0)) -> None:
        self.inner, self.delays = inner, delays
        self.rounds: list[float] = []
        self.slept = 0.0
        self.random = np.random.default_rng(0)

    @property
    def num_shards(self) -> int:
        return self.inner.num_shards

    def send(self, shard: int, method: str, *arguments: Any) -> Any:
        return perf_counter(), self.inner.send(shard, method, *arguments)

    def collect(self, sent: Sequence[Any], timeout: float) -> list[Any]:
        answers = self.inner.collect([each for _, each in sent], timeout)
        share, seconds = self.delays
        if share and (self.random.random(len(sent)) < share).any():
            started = perf_counter()
            sleep(seconds)
            self.slept += perf_counter() - started
        self.rounds.append(perf_counter() - sent[0][0])
        return answers

    def close(self) -> None:
        self.inner.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=["measure", "model"])
    parser.add_argument("figures", type=Path, nargs="?", help="what measure has written")
    parser.add_argument("--cache", type=Path, help="keeps the index between runs")
    parser.add_argument("--passages", type=int, default=40_000)
    parser.add_argument("--queries", type=int, default=100)
    parser.add_argument("--output", type=Path, help="the figures, as JSON")
    arguments = parser.parse_args()
    if arguments.action == "model":
        print_model(json.loads(arguments.figures.read_text()))
        return
    index, queries = collection(arguments.cache, arguments.passages, arguments.queries)
    with connected():
        figures = measured(index, queries)
    if arguments.output:
        arguments.output.write_text(json.dumps(figures))


def collection(cache: Path, num_passages: int, num_queries: int) -> tuple[Index, list[EncodedQuery]]:
    made, folder = Collection(), cache / f"shards-{num_passages}.index"
    if not folder.exists():
        warnings.simplefilter("ignore", OutgrownCodecWarning)  # every search decodes with the same codec
        documents = documents_of(made.blocks(num_passages))
        size = num_passages // SEGMENTS
        first = [next(documents) for _ in range(size)]
        index = Index.create_from_vectors(folder, first, bits=4, progress=False)
        for _ in range(SEGMENTS - 1):
            index.add_vectors([next(documents) for _ in range(size)])
    block = made.queries(num_queries, VECTORS_PER_QUERY, num_passages)
    return Index.open(folder), [EncodedQuery(ids, vectors) for ids, vectors in parts_of(block)]


def documents_of(blocks: Iterator[Block]) -> Iterator[tuple[str, EncodedDocument]]:
    number = 0
    for block in blocks:
        for token_ids, vectors in parts_of(block):
            yield f"d{number}", EncodedDocument(token_ids, vectors)
            number += 1


def parts_of(block: Block) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    bounds = block.offsets.tolist()
    for first, last in pairwise(bounds):
        yield block.token_ids[first:last].astype(np.int32), np.ascontiguousarray(block.vectors[first:last])


def measured(index: Index, queries: list[EncodedQuery]) -> Figures:
    systems: dict[str, Searcher] = {"one machine": Searcher(index, threads=1)}
    transports: dict[str, CountedTransport] = {}
    for count in SHARDS:
        transports[f"in process, {count}"] = CountedTransport(LocalTransport(index.path, count))
        transports[f"Ray, {count}"] = CountedTransport(start_shards(index.path, count, cpus=0))
    for name, transport in transports.items():
        systems[name] = DistributedSearcher(index.path, transport=transport, threads=1)
    figures: Figures = {"ms": {}, "rounds": {}}
    print(f"{index.num_documents:,} passages, {len(index.segments)} segments, {len(queries)} queries, one thread\n")
    print(f"| search | {' | '.join(systems)} | round trips |\n|---|{'---|' * (len(systems) + 1)}")
    for label, options in SEARCHES.items():
        times: dict[str, list[float]] = {name: [] for name in systems}
        for repeat in range(2):  # the first warms up
            for transport in transports.values():
                transport.rounds.clear()
            for query in queries:
                for name, searcher in systems.items():
                    started = perf_counter()
                    searcher.search(query, **options)
                    if repeat:
                        times[name].append(1000 * (perf_counter() - started))
        rounds = len(transports["Ray, 4"].rounds) / len(queries)
        figures["ms"][label] = {name: median(values) for name, values in times.items()}
        figures["rounds"][label] = rounds
        cells = [f"{value:.2f}" for value in figures["ms"][label].values()]
        print(f"| {label} | {' | '.join(cells)} | {rounds:.1f} |")
    figures["fan-out"] = fan_out(transports["Ray, 2"].inner)
    figures["throughput"] = throughput(systems, queries)
    figures["delayed"] = delayed(index, queries)
    for transport in transports.values():
        transport.close()
    return figures


def fan_out(transport: Transport) -> dict[str, float]:
    """Milliseconds of an empty round trip to so many shards, of which there are two."""
    key, seconds = GenerationKey(0, ""), {}
    for count in FAN_OUT:
        times = []
        for _ in range(60):
            started = perf_counter()
            transport.collect([transport.send(n % 2, "answer", key, "nothing", ()) for n in range(count)], 60.0)
            times.append(1000 * (perf_counter() - started))
        seconds[str(count)] = median(times)
    print("\n| shards asked at once | " + " | ".join(seconds) + " |\n|---|" + "---|" * len(seconds))
    print("| empty round trip through Ray, ms | " + " | ".join(f"{value:.2f}" for value in seconds.values()) + " |")
    return seconds


def throughput(systems: dict[str, Searcher], queries: list[EncodedQuery]) -> dict[str, float]:
    """Queries a second of `search_many`, the best of three."""
    rates = {}
    for name, searcher in systems.items():
        times = []
        for _ in range(3):
            started = perf_counter()
            for _ in searcher.search_many(queries, 10):
                pass
            times.append(perf_counter() - started)
        rates[name] = len(queries) / min(times)
    print("\n| search_many, k = 10 | " + " | ".join(rates) + " |\n|---|" + "---|" * len(rates))
    print("| queries/s | " + " | ".join(f"{rate:.0f}" for rate in rates.values()) + " |")
    return rates


def delayed(index: Index, queries: list[EncodedQuery]) -> dict[str, float]:
    """What a query waits for late answers when every answer of 4 shards may be late, and what the model says."""
    transport = CountedTransport(LocalTransport(index.path, 4), LATE)
    with DistributedSearcher(index.path, transport=transport, threads=1) as searcher:
        transport.rounds.clear()
        transport.slept = 0.0
        for query in queries:
            searcher.search(query, 10, feedback=ColbertPRF())
    share, seconds = LATE
    waited = 1000 * transport.slept / len(queries)
    expected = 1000 * seconds * len(transport.rounds) / len(queries) * (1 - (1 - share) ** 4)
    print(f"\na Ranker's query, 4 shards, {share:.0%} of answers {1000 * seconds:.0f} ms late: ", end="")
    print(f"waits {waited:.2f} ms, {expected:.2f} ms by the model")
    return {"measured": waited, "model": expected}


def print_model(figures: Figures) -> None:
    """Print latencies: the search of one shard, what asking all costs, and the slowest of many answers."""
    random, draws = np.random.default_rng(0), 20_000
    counts = np.array([float(count) for count in figures["fan-out"]])
    each, base = np.polyfit(counts, np.array(list(figures["fan-out"].values())), 1)
    share, seconds = LATE
    print(f"an empty round trip: {base:.2f} ms, and {1000 * each:.0f} µs for each shard\n")
    print("| search | shards | one shard, ms | asking all, ms | together, ms | median, late | 99 %, late |")
    print("|---|---|---|---|---|---|---|")
    for label, rounds in figures["rounds"].items():
        work = figures["ms"][label]["in process, 1"]
        for shards in MACHINES:
            asking = rounds * (base + each * shards)
            waits = 1000 * seconds * random.binomial(round(rounds), 1 - (1 - share) ** shards, draws)
            late = [work + asking + np.percentile(waits, percent) for percent in (50, 99)]
            cells = [work, asking, work + asking, *late]
            print(f"| {label} | {shards} | {' | '.join(f'{cell:.1f}' for cell in cells)} |")


if __name__ == "__main__":
    main()
