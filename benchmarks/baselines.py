"""The systems of the paper's table on small collections.

python benchmarks/baselines.py DATA [--systems lexical neural deepct] [--cache DIR]

``deepct`` needs DIR/term-weights.json, made with `colbert-prf term-weights`.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

from colbert_prf import (
    BM25,
    KL,
    RM3,
    AverageFeedback,
    BertQE,
    Bo1,
    ColbertPRF,
    ColbertReranker,
    EndToEnd,
    Fusion,
    Index,
    LexicalIndex,
    MeanEncoder,
    Retriever,
    RocchioFeedback,
    Searcher,
    SingleVector,
    VectorIndex,
)
from colbert_prf.datasets import read_corpus, read_qrels, read_topics
from colbert_prf.evaluation import evaluate
from colbert_prf.lexical import TermRegression, weighted_documents

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


def neural(folder: Path, cache: Path) -> Mapping[str, Retriever]:
    path = cache / f"{folder.name}.4.index"
    if not (path / "manifest.json").is_file():
        Index.create(path, read_corpus(folder / "collection.tsv.gz", empty="keep"), bits=4, resume=True)
    vectors = Index.open(path)
    searcher, index = Searcher(vectors), LexicalIndex.of(vectors)
    bm25, rm3, e2e = BM25(index), BM25(index, feedback=RM3()), EndToEnd(searcher)
    means = MeanEncoder(searcher.encoder)
    if not (cache / f"{folder.name}.mean").is_dir():
        VectorIndex.create_from_index(cache / f"{folder.name}.mean", vectors, name=means.name)
    dense = VectorIndex.open(cache / f"{folder.name}.mean")
    return {
        "ColBERT E2E": e2e,
        "ColBERT-PRF Ranker": EndToEnd(searcher, feedback=ColbertPRF()),
        "BM25+ColBERT": ColbertReranker(bm25, searcher),
        "BM25+RM3+ColBERT": ColbertReranker(rm3, searcher),
        "BM25+RM3+ColBERT, PRF over the candidates": ColbertReranker(rm3, searcher, feedback=ColbertPRF()),
        "BM25+RM3+ColBERT+BERT-QE": BertQE(ColbertReranker(rm3, searcher), searcher),
        "ColBERT E2E+BERT-QE": BertQE(e2e, searcher),
        "mean vector": SingleVector(dense, means),
        "mean vector, HNSW": SingleVector(dense, means, exact=False),
        "mean vector, average PRF": SingleVector(dense, means, feedback=AverageFeedback()),
        "mean vector, Rocchio PRF": SingleVector(dense, means, feedback=RocchioFeedback()),
        "RM3 and ColBERT E2E by ranks": Fusion([rm3, e2e]),
        "RM3 and ColBERT E2E by scores": Fusion([rm3, e2e], method="scores"),
    }


def deepct(folder: Path, cache: Path) -> Mapping[str, Retriever]:
    path = cache / f"{folder.name}.deepct"
    if not (path / "manifest.json").is_file():
        documents = ((one.doc_id, one.text) for one in read_corpus(folder / "collection.tsv.gz", empty="keep"))
        weigher = TermRegression.load(cache / "term-weights.json")
        LexicalIndex.create_from_terms(path, weighted_documents(documents, weigher), texts=True)
    index = LexicalIndex.open(path)
    return {"DeepCT": BM25(index), "DeepCT, k1=10, b=0.9": BM25(index, k1=10, b=0.9)}


SYSTEMS: dict[str, Callable[[Path, Path], Mapping[str, Retriever]]] = {
    "lexical": lexical,
    "neural": neural,
    "deepct": deepct,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="the folder with the collections")
    parser.add_argument("--systems", choices=SYSTEMS, nargs="+", default=["lexical", "neural"])
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
