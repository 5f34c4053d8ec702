"""The engine against brute force and other engines: build, size, quality, latency, on the same vectors in one run.

    python benchmarks/search.py DATA/msmarco-dl1920 --cache CACHE --peers peers/bin/python
    python benchmarks/search.py DATA/msmarco-dl1920 --cache CACHE --peers peers/bin/python --query-vectors 32

The collections are the pool of 41,867 MS MARCO passages and its first 10,000, encoded once by the embedded model
(see `kept.py`); the queries are the 97 topics of TREC DL 2019 and 2020. `peers.py` says how to make the environment of
the other engines; without --peers their rows are left out.

Build seconds start from vectors in memory. Bytes per vector are those of all files, which hold no texts. Recall@k is
that of exact float32 MaxSim, of a search for k. nDCG@10 and MAP (relevant from grade 2) are of a search for 1,000, the
mean over all topics; judgements of passages that are not in the collection are left out, and topics that are then left
without a relevant passage. A latency is one query at a time, encoding excluded: after a warm-up all queries, several
times (but no more after a minute), one system after the other; the median and, in brackets, the 95th percentile over
queries of each query's median. Brute force does the same work whatever k is, so one measurement stands for all k.

Every result is kept in CACHE/results: --resume runs only the systems that are not there yet, --table runs nothing.
The indexes of other engines, which take long to build, are kept in CACHE/peers-*, for queries of other lengths.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numba
import numpy as np
from kept import opened, texts_of
from latency import CUTOFFS, THREADS, cell, measure, report
from numpy.typing import NDArray
from peers import PEERS, run_peer
from quality import exact_rankings, judged_quality, read_judgements, recall, rows
from systems import LABELS, System, build, encoded_queries
from tables import print_tables
from vectors import YEARS, Texts, filled_up, joined, open_cache, write_json

import colbert_prf
from colbert_prf import Encoder
from colbert_prf.datasets import read_topics
from colbert_prf.encoder.base import available_cores

DEFAULT_SYSTEMS = ("ours-2", "ours-4", "ours-4-hasty", "paper", "brute-force", *PEERS)


class Experiment:
    """One collection and one set of queries: what is measured on them, and where it is kept.

    Parameters
    ----------
    arguments
        Of the command line.
    documents, queries
        Encoded.
    settings
        What a kept result must have been measured with.
    """

    def __init__(
        self, arguments: argparse.Namespace, documents: Texts, queries: Texts, settings: dict[str, Any]
    ) -> None:
        self.arguments = arguments
        self.documents = documents
        self.queries = queries
        self.settings = {**settings, "passages": len(documents)}
        self.folder = arguments.cache / "results" / f"{len(documents)}-{arguments.query_vectors or 'own'}"
        self.judgements = read_judgements(arguments.data, documents)

    def run(self, names: Sequence[str], machine: dict[str, Any]) -> dict[str, str]:
        """Measure systems and keep what was found; gives the reasons why some could not run."""
        self.save_queries()
        own, skipped = [name for name in names if name in LABELS], {}
        with TemporaryDirectory(dir=self.arguments.cache, prefix="indexes-") as workdir:
            for name in own:
                report(f"building {name} ...")
                # The first build of a process also loads compiled kernels: not what is measured.
                build(name, self.documents.first(64), Path(workdir, f"{name}.small"))
                system = build(name, self.documents, Path(workdir, name))
                found = {"build_seconds": system.build_seconds, "bytes": system.num_bytes}
                latency = time_system(name, system, self.queries, self.arguments.repeats)
                self.keep(name, {**found, "latency": latency, **machine}, rankings_of(system, self.queries))
        for name in (name for name in names if name in PEERS):
            if self.arguments.peers is None:
                skipped[name] = "no --peers"
                continue
            try:
                self.run_peer(name, machine)
            except RuntimeError as error:
                skipped[name] = str(error)
                report(f"{name} is left out: {error}")
        return skipped

    def save_queries(self) -> None:
        """Write the queries for the peers; the exact rankings of other queries are of no more use."""
        if not (self.folder / "queries.vectors.npy").exists() or not np.array_equal(
            Texts.load(self.folder, "queries").vectors, self.queries.vectors
        ):
            (self.folder / "exact.npy").unlink(missing_ok=True)
            self.queries.save(self.folder, "queries")

    def run_peer(self, name: str, machine: dict[str, Any]) -> None:
        found, rankings = run_peer(
            name,
            self.arguments.peers,
            cache=self.arguments.cache,
            queries=self.folder,
            passages=len(self.documents),
            repeats=self.arguments.repeats,
            workdir=self.arguments.cache / f"peers-{self.settings['fingerprint'][:8]}-{len(self.documents)}",
        )
        self.keep(name, {**machine, **found, "versions": {**machine["versions"], **found["versions"]}}, rankings)

    def keep(self, name: str, found: dict[str, Any], rankings: dict[int, NDArray[np.int64]]) -> None:
        """Add the quality of the rankings, and write everything down."""
        exact = exact_rankings(self.documents, self.queries, self.folder / "exact.npy")
        result = {
            "settings": self.settings,
            **found,
            "bytes_per_vector": found["bytes"] / len(self.documents.vectors),
            "recall": {str(cutoff): recall(rankings[cutoff], exact, cutoff) for cutoff in CUTOFFS},
            "quality": judged_quality(rankings[max(CUTOFFS)], self.documents, self.queries, self.judgements),
        }
        write_json(self.folder / f"{name}.json", result)

    def kept(self, names: Sequence[str]) -> dict[str, dict[str, Any]]:
        """Results that were measured with the same settings, by this run or an earlier one."""
        paths = {name: self.folder / f"{name}.json" for name in names}
        found = {name: json.loads(path.read_text(encoding="utf-8")) for name, path in paths.items() if path.exists()}
        return {name: result for name, result in found.items() if result["settings"] == self.settings}


def time_system(name: str, system: System, texts: Texts, repeats: int) -> dict[str, dict[str, float]]:
    """The latency of a system for each cutoff and number of threads; BLAS and OpenMP get as many threads."""
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    queries, latency = encoded_queries(texts), {}
    for threads in THREADS:
        report(f"timing {name} on {threads} thread{'s' if threads > 1 else ''} ...")
        with threadpool_limits(threads):
            cutoffs = CUTOFFS if system.depends_on_cutoff else CUTOFFS[-1:]
            measured = {cutoff: measure(system.search, queries, repeats, cutoff, threads) for cutoff in cutoffs}
        latency |= {cell(cutoff, threads): measured.get(cutoff, measured[cutoffs[-1]]) for cutoff in CUTOFFS}
    return latency


def rankings_of(system: System, queries: Texts) -> dict[int, NDArray[np.int64]]:
    """For each cutoff the places found, of shape (num_queries, cutoff)."""
    return {
        cutoff: rows([system.places(system.search(query, cutoff, 1)) for query in encoded_queries(queries)], cutoff)
        for cutoff in CUTOFFS
    }


def encode(cache: Path, data: Path, encoder: Encoder, name: str) -> Texts:
    """The passages or the queries of a year, encoded."""
    if name == "documents":
        return texts_of(opened(cache, data.parent, data.name, 16))
    topics = read_topics(data / f"queries.{name}.tsv")
    queries = encoder.encode_queries(topics.values())
    return Texts.join((query_id, item.token_ids, item.vectors) for query_id, item in zip(topics, queries, strict=True))


def machine_now() -> dict[str, Any]:
    """When and on what a run was made."""
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    if load > 0.5:
        report(f"the machine is not idle (load {load:.1f}): latencies will be too long")
    if available_cores() < max(THREADS):
        sys.exit(f"needs {max(THREADS)} cores, found {available_cores()}")
    versions = {"colbert-prf": colbert_prf.__version__, "numpy": np.__version__, "numba": numba.__version__}
    return {
        "run": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "cores": available_cores(),
        "load": load,
        "versions": {"python": platform.python_version(), **versions},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "data", type=Path, help="the folder with collection.tsv.gz, queries.dl19.tsv, qrels.dl19.txt ..."
    )
    parser.add_argument(
        "--cache", type=Path, required=True, help="where vectors and results are kept: 2 GB, outside the clone"
    )
    parser.add_argument("--passages", type=int, nargs="+", metavar="N", default=[10_000, 41_867])
    parser.add_argument("--query-vectors", type=int, metavar="N", help="fill queries up with noisy copies to N vectors")
    parser.add_argument("--systems", nargs="+", metavar="NAME", default=DEFAULT_SYSTEMS, choices=(*LABELS, *PEERS))
    parser.add_argument(
        "--peers", type=Path, metavar="PYTHON", help="an interpreter that has fast-plaid and xtr-warp-rs"
    )
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--resume", action="store_true", help="keep what earlier runs measured")
    parser.add_argument("--table", action="store_true", help="print what earlier runs measured, run nothing")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    arguments = parser.parse_args()
    encoder = Encoder.load()
    documents, years = open_cache(
        arguments.cache, encoder.fingerprint, lambda name: encode(arguments.cache, arguments.data, encoder, name)
    )
    queries = joined([years[year] for year in YEARS])
    if arguments.query_vectors:
        queries = filled_up(queries, arguments.query_vectors)
    settings = {
        "fingerprint": encoder.fingerprint,
        "query_vectors": arguments.query_vectors,
        "repeats": arguments.repeats,
    }
    machine = {} if arguments.table else machine_now()
    output = []
    for passages in arguments.passages:
        experiment = Experiment(arguments, documents.first(passages), queries, settings)
        done = experiment.kept(arguments.systems) if arguments.resume or arguments.table else {}
        todo = [] if arguments.table else [name for name in arguments.systems if name not in done]
        skipped = experiment.run(todo, machine) if todo else {}
        results = experiment.kept([name for name in arguments.systems if name in done or name in todo])
        results = {name: result for name, result in results.items() if name not in skipped}
        if not arguments.json:
            print_tables(results, skipped, experiment.documents, queries)
        output.append({"passages": len(experiment.documents), "systems": results, "skipped": skipped})
    if arguments.json:
        print(json.dumps(output, indent=1))


if __name__ == "__main__":
    main()
