"""The systems of the paper's table on small collections.

python benchmarks/baselines.py DATA [--systems lexical neural deepct cross-encoder bi-encoder] [--cache DIR]
    [--cross-encoder FOLDER] [--bi-encoder FOLDER [--pooling cls] [--query-prefix TEXT]]

``deepct`` needs DIR/term-weights.json, made with `colbert-prf term-weights`; ``cross-encoder`` a folder such as
ms-marco-MiniLM-L-12-v2, DIR/cross-encoder if it is not named; ``bi-encoder`` one such as bge-small-en-v1.5,
DIR/bi-encoder if it is not named: ONNX network and tokenizer, or a folder of sentence-transformers. A collection may
name a split: `nfcorpus/dev` reads nfcorpus/dev.queries.tsv and dev.qrels.txt.
"""

from __future__ import annotations

import argparse
import hashlib
import random
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import get_args

from colbert_prf import ColbertPRF, Index, Retriever, Searcher
from colbert_prf.baselines import (
    BM25,
    KL,
    RM3,
    AverageFeedback,
    BertQE,
    Bo1,
    ColbertReranker,
    CrossEncoderReranker,
    Fusion,
    LexicalIndex,
    MeanEncoder,
    PairScorer,
    RocchioFeedback,
    SingleVector,
    VectorEncoder,
    VectorIndex,
)
from colbert_prf.baselines.lexical import TermRegression
from colbert_prf.baselines.single_vector.encoders import Pooling
from colbert_prf.datasets import read_corpus, read_qrels, read_topics
from colbert_prf.evaluation import evaluate
from colbert_prf.search.retriever import RUN_DEPTH

COLLECTIONS = ("vaswani", "nfcorpus", "scifact")
MEASURES = ("AP", "nDCG@10", "R@1000")
DEPTHS = (50, 200)
"""Candidates a cross-encoder reads."""


def terms(folder: Path, cache: Path) -> LexicalIndex:
    path = cache / f"{folder.name}.lexical"
    if not path.is_dir():
        LexicalIndex.create(path, read_corpus(folder / "collection.tsv.gz", empty="keep"))
    return LexicalIndex.open(path)


def vectors_of(folder: Path, cache: Path) -> Index:
    path = cache / f"{folder.name}.4.index"
    if not (path / "manifest.json").is_file():
        Index.create(path, read_corpus(folder / "collection.tsv.gz", empty="keep"), bits=4, resume=True)
    return Index.open(path)


def lexical(folder: Path, cache: Path) -> Mapping[str, Retriever]:
    index = terms(folder, cache)
    return {
        "BM25": BM25(index),
        "BM25 as in Anserini": BM25(index, k1=0.9, b=0.4, k3=None, idf="lucene"),
        "RM3": BM25(index, feedback=RM3()),
        "Bo1": BM25(index, feedback=Bo1()),
        "KL": BM25(index, feedback=KL()),
    }


def neural(folder: Path, cache: Path) -> Mapping[str, Retriever]:
    vectors = vectors_of(folder, cache)
    searcher, index = Searcher(vectors), LexicalIndex.of(vectors)
    bm25, rm3, e2e = BM25(index), BM25(index, feedback=RM3()), searcher
    means = MeanEncoder(searcher.encoder)
    if not (cache / f"{folder.name}.mean").is_dir():
        VectorIndex.create_from_index(cache / f"{folder.name}.mean", vectors, name=means.name)
    dense = VectorIndex.open(cache / f"{folder.name}.mean")
    return {
        "ColBERT E2E": e2e,
        "ColBERT-PRF Ranker": searcher.with_defaults(feedback=ColbertPRF()),
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
        learned = TermRegression.load(cache / "term-weights.json")
        LexicalIndex.create_from_terms(path, learned.indexed_documents(vectors_of(folder, cache)))
    index = LexicalIndex.open(path)
    return {"DeepCT": BM25(index), "DeepCT, k1=10, b=0.9": BM25(index, k1=10, b=0.9)}


def cross_encoder(folder: Path, cache: Path, *, model: Path | None) -> Mapping[str, Retriever]:
    bm25, scorer = BM25(terms(folder, cache)), PairScorer.load(model or cache / "cross-encoder")
    return {
        "BM25": bm25,
        **{f"BM25+BERT, best {depth}": CrossEncoderReranker(bm25, scorer, depth=depth) for depth in DEPTHS},
    }


def bi_encoder(
    folder: Path, cache: Path, *, model: Path | None, pooling: Pooling | None, query_prefix: str | None
) -> Mapping[str, Retriever]:
    model = model or cache / "bi-encoder"
    encoder = VectorEncoder.load(model, pooling=pooling, query_prefix=query_prefix)
    digest = hashlib.sha256(encoder.name.encode()).hexdigest()[:8]
    path = cache / f"{folder.name}.{model.name}.{digest}.bi-encoder"
    if not path.is_dir():
        VectorIndex.create(path, read_corpus(folder / "collection.tsv.gz", empty="keep"), encoder=encoder)
    index = VectorIndex.open(path)
    return {
        "bi-encoder": SingleVector(index, encoder),
        "bi-encoder, HNSW": SingleVector(index, encoder, exact=False),
        "bi-encoder, average PRF": SingleVector(index, encoder, feedback=AverageFeedback()),
        "bi-encoder, Rocchio PRF": SingleVector(index, encoder, feedback=RocchioFeedback()),
    }


SYSTEMS = ("lexical", "neural", "deepct", "cross-encoder", "bi-encoder")


def systems_of(arguments: argparse.Namespace) -> dict[str, Callable[[Path, Path], Mapping[str, Retriever]]]:
    """By their names on the command line: a function from the folder of a collection and the cache."""
    settings = {"pooling": arguments.pooling, "query_prefix": arguments.query_prefix}
    return {
        "lexical": lexical,
        "neural": neural,
        "deepct": deepct,
        "cross-encoder": partial(cross_encoder, model=arguments.cross_encoder),
        "bi-encoder": partial(bi_encoder, model=arguments.bi_encoder, **settings),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="the folder with the collections")
    parser.add_argument("--systems", choices=SYSTEMS, nargs="+", default=["lexical", "neural"])
    parser.add_argument("--collections", nargs="+", default=COLLECTIONS)
    parser.add_argument("--cache", type=Path, help="where indexes are kept; made anew if left out")
    parser.add_argument("--cross-encoder", type=Path, help="its folder (default: DIR/cross-encoder)")
    parser.add_argument("--bi-encoder", type=Path, help="its folder (default: DIR/bi-encoder)")
    parser.add_argument("--pooling", choices=get_args(Pooling), help="of the bi-encoder, if its folder does not say")
    parser.add_argument("--query-prefix", help="of the bi-encoder, such as bge-small-en-v1.5 has")
    parser.add_argument("--topics", type=int, help="so many topics only, drawn at random")
    arguments = parser.parse_args()
    builders = systems_of(arguments)
    with TemporaryDirectory() as temporary:
        cache = arguments.cache or Path(temporary)
        cache.mkdir(parents=True, exist_ok=True)
        for name in arguments.collections:
            folder, _, split = name.partition("/")
            for kind in arguments.systems:
                systems = builders[kind](arguments.data / folder, cache)
                report(arguments.data / folder, split and f"{split}.", arguments.topics, systems)


def report(folder: Path, split: str, num_topics: int | None, systems: Mapping[str, Retriever]) -> None:
    topics, qrels = read_topics(folder / f"{split}queries.tsv"), read_qrels(folder / f"{split}qrels.txt")
    if num_topics is not None:
        chosen = set(random.Random(7).sample(sorted(qrels), min(num_topics, len(qrels))))
        qrels = {query_id: judged for query_id, judged in qrels.items() if query_id in chosen}
    print(f"| {split}{folder.name}, {len(qrels)} topics | " + " | ".join(MEASURES) + " | ms a query |")
    for name, system in systems.items():
        started = perf_counter()
        run = {
            query_id: {hit.doc_id: hit.score for hit in system.search(topics[query_id], RUN_DEPTH)}
            for query_id in qrels
            if query_id in topics
        }
        milliseconds = 1000 * (perf_counter() - started) / len(run)
        found = evaluate(qrels, {name: run}, MEASURES)
        values = " | ".join(f"{found.mean(name, measure):.4f}" for measure in MEASURES)
        print(f"| {name} | {values} | {milliseconds:.1f} |", flush=True)


if __name__ == "__main__":
    main()
