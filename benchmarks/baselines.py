"""The systems of the paper's table on small collections.

python benchmarks/baselines.py DATA [--systems lexical] [--cache DIR]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

from colbert_prf import BM25, KL, RM3, Bo1, LexicalIndex, Retriever
from colbert_prf.datasets import read_corpus, read_qrels, read_topics
from colbert_prf.evaluation import evaluate

COLLECTIONS = ("vaswani", "nfcorpus", "scifact")
MEASURES = ("AP", "nDCG@10", "R@1000")


def lexical(folder: Path, cache: Path) -> Mapping[str, Retriever]:
    path = cache / f"{folder.name}.lexical"
    if not path.is_dir():
        LexicalIndex.create(path, read_corpus(folder / "collection.tsv.gz", empty="keep"))
    index = LexicalIndex.open(path)
    return {
        "BM25": BM25(index),
        "BM25 as in Anserini": BM25(index, k1=0.9, b=0.4, k3=None, idf="lucene"),
        "RM3": BM25(index, feedback=RM3()),
        "Bo1": BM25(index, feedback=Bo1()),
        "KL": BM25(index, feedback=KL()),
    }


SYSTEMS: dict[str, Callable[[Path, Path], Mapping[str, Retriever]]] = {"lexical": lexical}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="the folder with the collections")
    parser.add_argument("--systems", choices=SYSTEMS, nargs="+", default=list(SYSTEMS))
    parser.add_argument("--collections", nargs="+", default=COLLECTIONS)
    parser.add_argument("--cache", type=Path, help="where indexes are kept; made anew if left out")
    arguments = parser.parse_args()
    with TemporaryDirectory() as temporary:
        cache = arguments.cache or Path(temporary)
        cache.mkdir(parents=True, exist_ok=True)
        for name in arguments.collections:
            for kind in arguments.systems:
                report(arguments.data / name, SYSTEMS[kind](arguments.data / name, cache))


def report(folder: Path, systems: Mapping[str, Retriever]) -> None:
    topics, qrels = read_topics(folder / "queries.tsv"), read_qrels(folder / "qrels.txt")
    print(f"| {folder.name} | " + " | ".join(MEASURES) + " | ms a query |")
    for name, system in systems.items():
        started = perf_counter()
        run = {
            query_id: {hit.doc_id: hit.score for hit in system.search(topics[query_id])}
            for query_id in qrels
            if query_id in topics
        }
        milliseconds = 1000 * (perf_counter() - started) / len(run)
        found = evaluate(qrels, {name: run}, MEASURES)
        values = " | ".join(f"{found.mean(name, measure):.4f}" for measure in MEASURES)
        print(f"| {name} | {values} | {milliseconds:.1f} |", flush=True)


if __name__ == "__main__":
    main()
