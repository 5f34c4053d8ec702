"""Indexing through Ray against the build of one machine, on the same cores, and what follows for larger clusters.

    python benchmarks/distributed.py builds CORPUS --passages 6000 --rounds 3 --output builds.json
    python benchmarks/distributed.py driver CORPUS --passages 1000000 --output driver.json
    python benchmarks/distributed.py model builds.json driver.json

`builds` lets the builds take turns, round after round, each in a process of its own; a figure is the median over the
rounds. `driver` measures what one process does for all machines: it reads, checks and slices passages (those of CORPUS
again and again, under new ids), trains the largest codec, and compares files with their checksums. `model` computes
the hours of larger clusters from these figures. Figures of both are measured on all cores of this machine.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import count, cycle, islice
from math import ceil
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter

import numpy as np

from colbert_prf import Encoder, Index
from colbert_prf.datasets import read_corpus
from colbert_prf.encoder.base import available_cores

SYSTEMS = {"one machine": None, "Ray, one worker": 1, "Ray, a worker for each core": available_cores()}
LARGEST = 1 << 16, 1 << 21
"""The centroids of the codec of a large index, and the vectors that it is trained on."""
MACHINES, CORES, PASSAGES = (1, 4, 16, 64, 256), 16, (8_841_823, 100_000_000, 1_000_000_000)
SEGMENT = 50_000
Figures = dict[str, float]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=["builds", "driver", "model", *SYSTEMS])
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("--passages", type=int, default=6_000)
    parser.add_argument("--segments", type=int, default=6)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workdir", type=Path, help="a folder with room for an index")
    parser.add_argument("--output", type=Path, help="the figures, as JSON")
    arguments = parser.parse_args()
    if arguments.action == "model":
        builds, driver = (json.loads(file.read_text()) for file in arguments.files)
        print_model(builds, driver)
        return
    with TemporaryDirectory(dir=arguments.workdir) as folder:
        if arguments.action in SYSTEMS:
            print(json.dumps(build(arguments, SYSTEMS[arguments.action], Path(folder, "my.index"))))
            return
        figures = builds_of(arguments) if arguments.action == "builds" else driver_of(arguments, Path(folder))
    if arguments.output:
        arguments.output.write_text(json.dumps(figures, indent=1))


def builds_of(arguments: argparse.Namespace) -> dict[str, Figures]:
    """The median of each figure of each system, printed as a table."""
    rounds: dict[str, list[Figures]] = {name: [] for name in SYSTEMS}
    options = [f"--passages={arguments.passages}", f"--segments={arguments.segments}"]
    for number in range(arguments.rounds):
        for name in SYSTEMS:
            command = [sys.executable, __file__, name, *map(str, arguments.files), *options]
            done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
            rounds[name].append(json.loads(done.stdout))
            print(f"round {number}, {name}: {done.stdout.strip()}", file=sys.stderr)
    figures = {name: {key: median(row[key] for row in rows) for key in rows[0]} for name, rows in rounds.items()}
    print(f"{arguments.passages:,} passages, {arguments.segments} segments, median of {arguments.rounds} rounds\n")
    print("| build | seconds | against one machine | after the start | against one machine |\n|---|---|---|---|---|")
    alone = figures["one machine"]["seconds"]
    for name, row in figures.items():
        working = row["seconds"] - row["start"]
        print(
            f"| {name} | {row['seconds']:.1f} | {row['seconds'] / alone:.2f} | {working:.1f} | {working / alone:.2f} |"
        )
    return figures


def build(arguments: argparse.Namespace, workers: int | None, path: Path) -> Figures:
    """Build once; ``start`` is what no passage waits for in a longer build: Ray, its workers, their models."""
    from colbert_prf.distributed import create_index
    from colbert_prf.distributed.cluster import connected

    encoder = Encoder.load()
    passages = list(islice(passages_of(arguments.files[0]), arguments.passages))
    if workers is None:
        seconds = timed(lambda: Index.create(path, passages, encoder=encoder, progress=False))
        start = 0.0
    else:
        size = ceil(arguments.passages / arguments.segments)

        def through_ray(path: Path, passages: list[tuple[str, str]]) -> None:
            with connected():
                create_index(
                    path, passages, workers=workers, passages_per_segment=size, encoder=encoder, progress=False
                )

        through_ray(path.with_name("warm-up"), passages[:1])  # imports, and compiled kernels in memory
        start = timed(lambda: through_ray(path.with_name("start"), passages[:1]))
        seconds = timed(lambda: through_ray(path, passages))
    info = Index.open(path).info()
    num_bytes = sum(info.num_bytes.values())
    return {
        "seconds": seconds,
        "start": start,
        "passages": info.num_documents,
        "vectors": info.num_vectors,
        "bytes": num_bytes,
    }


def driver_of(arguments: argparse.Namespace, folder: Path) -> Figures:
    """Measure the work that only the driver does, and print it."""
    from colbert_prf.distributed.slices import write_slices
    from colbert_prf.index.codec import Codec
    from colbert_prf.index.documents import documents_of_texts
    from colbert_prf.storage.layout import IndexLayout
    from colbert_prf.storage.store import IdCheck

    texts: list[str] = []
    reading = timed(lambda: texts.extend(text for _, text in passages_of(arguments.files[0]))) / len(texts)
    documents = documents_of_texts((str(number), text) for number, text in zip(count(), cycle(texts), strict=False))
    checked = IdCheck().checked(islice(documents, arguments.passages))
    layout = IndexLayout(folder)
    layout.building.mkdir()
    slicing = timed(lambda: sum(1 for _ in write_slices(layout, checked, SEGMENT))) / arguments.passages
    index = Index.create(folder / "my.index", list(zip(map(str, count()), texts[:2000], strict=False)), progress=False)
    vectors = np.concatenate([index.vectors(position) for position in range(index.num_documents)])
    num_centroids, num_sampled = LARGEST
    noise = np.random.default_rng(0)
    sample = np.resize(vectors, (num_sampled, vectors.shape[1]))
    sample += noise.standard_normal(sample.shape, dtype=np.float32) * 0.05
    sample /= np.linalg.norm(sample, axis=1, keepdims=True)
    num_expected = (num_centroids // 4) ** 2
    trained = timed(lambda: Codec.train(sample, num_vectors_expected=num_expected, bits=4))
    checked_bytes = sum(info.num_bytes for info in index.snapshot.array_files().values())
    repeats = ceil(2e9 / checked_bytes)
    seconds = timed(lambda: [segment.check() for _ in range(repeats) for segment in index.snapshot.segments])
    figures = {
        "passages/s": 1 / (reading + slicing),
        "slice bytes": sum(file.stat().st_size for file in layout.building.iterdir()) / arguments.passages,
        "train seconds": trained,
        "checked bytes/s": repeats * checked_bytes / seconds,
    }
    print("| what the driver does alone | |\n|---|---|")
    print(f"| read, check and slice, passages/s | {figures['passages/s']:,.0f} |")
    print(f"| bytes of a passage in a slice | {figures['slice bytes']:.0f} |")
    print(f"| train {num_centroids:,} centroids on {num_sampled:,} vectors, s | {trained:.0f} |")
    print(f"| compare files with their checksums, GB/s | {figures['checked bytes/s'] / 1e9:.2f} |")
    return figures


def print_model(builds: dict[str, Figures], driver: Figures) -> None:
    """Print hours and sizes of larger clusters: machines of 16 cores, each core as fast as one here."""
    from colbert_prf.distributed.crew import threads_of

    alone, ray = builds["one machine"], builds["Ray, a worker for each core"]
    rate = ray["passages"] / (ray["seconds"] - ray["start"]) / available_cores()
    num_bytes = alone["bytes"] / alone["passages"]
    print(f"{rate:.1f} passages/s a core, {num_bytes:,.0f} bytes a passage, machines of {CORES} cores\n")
    print("| passages | machines | driver alone, h | encoding, h | all, h | index a machine, GB |")
    print("|---|---|---|---|---|---|")
    for num_passages in PASSAGES:
        for machines in MACHINES:
            serial = num_passages / driver["passages/s"] + driver["train seconds"] + ray["start"]
            segments = ceil(num_passages / SEGMENT)
            workers = min(segments, machines * CORES)
            round_seconds = SEGMENT / (rate * threads_of(workers, [CORES] * machines))
            encoding = max(
                ceil(segments / workers) * round_seconds, num_passages * num_bytes / driver["checked bytes/s"]
            )
            hours = [seconds / 3600 for seconds in (serial, encoding, serial + encoding)]
            cells = [*(f"{value:.2f}" for value in hours), f"{num_passages * num_bytes / machines / 1e9:,.1f}"]
            print(f"| {num_passages:,} | {machines} | {' | '.join(cells)} |")


def passages_of(path: Path) -> Iterator[tuple[str, str]]:
    return ((doc_id, text) for doc_id, text in read_corpus(path, empty="keep"))


def timed(action: Callable[[], object]) -> float:
    started = perf_counter()
    action()
    return perf_counter() - started


if __name__ == "__main__":
    main()
