"""Candidates for the embedded model on the sets that choose: AP and nDCG@10 of the first pass and of feedback.

    python scripts/model/choose.py ../shared/data --bases FOLDER --cache CACHE \\
        --candidate now --candidate answerai:96:trained --set dl21 --set vaswani

A candidate is ``now``, the embedded model, a model folder as NAME=FOLDER, or BASE:DIM:HEAD where HEAD is ``pca`` or
``trained``, the projection that ``train.py`` keeps. Indexes have 4 bits and are kept in CACHE; 1,000 documents a query.
In brackets stand the difference from the first candidate and p of a paired t-test, not corrected.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
from bases import Base
from numpy.typing import NDArray
from projection import pca_head, project
from scipy.stats import rankdata
from sets import SETS, TextSet, read_set
from train import head_file

from colbert_prf import ColbertPRF, EncodedDocument, EncodedQuery, Encoder, Feedback, Index, Searcher
from colbert_prf.evaluation import Evaluation, evaluate
from colbert_prf.evaluation.significance import paired_t_test

BITS, DEPTH = 4, 1000
MEASURES = ("AP", "nDCG@10")
PASSES: dict[str, Feedback | None] = {
    "first pass": None,
    "weight=0.1, 3 documents": ColbertPRF(weight=0.1, feedback_docs=3),
    "beta=0.1, 3 documents": ColbertPRF(beta=0.1, feedback_docs=3),
    "beta=0.2, 10 documents": ColbertPRF(beta=0.2, feedback_docs=10),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--bases", type=Path, required=True)
    parser.add_argument("--cache", type=Path, required=True)
    parser.add_argument("--candidate", action="append", required=True)
    parser.add_argument("--set", action="append", choices=[*SETS], required=True)
    arguments = parser.parse_args()
    names = [candidate.partition("=")[0] for candidate in arguments.candidate]
    print("| set | system | measure | " + " | ".join(names) + " |")
    print("|---" * (3 + len(names)) + "|")
    ranks: list[NDArray[np.float64]] = []
    for name in arguments.set:
        texts = read_set(arguments.data, name)
        runs = {
            f"{candidate}, {label}": run
            for candidate in arguments.candidate
            for label, run in runs_of(arguments.data, arguments.bases, arguments.cache, candidate, name).items()
        }
        evaluation = evaluate(texts.qrels, runs, MEASURES, relevance=texts.relevance)
        for label in PASSES:
            for measure in MEASURES:
                systems = [f"{candidate}, {label}" for candidate in arguments.candidate]
                cells = [cell(evaluation, system, systems[0], measure) for system in systems]
                print(f"| {name} | {label} | {measure} | {' | '.join(cells)} |", flush=True)
                ranks.append(rankdata([-evaluation.mean(system, measure) for system in systems]))
    print(f"| all | | mean rank | {' | '.join(f'{rank:.2f}' for rank in np.mean(ranks, axis=0))} |")


def cell(evaluation: Evaluation, system: str, baseline: str, measure: str) -> str:
    """A mean, and in brackets the difference from a baseline and its p."""
    mean = evaluation.mean(system, measure)
    if system == baseline:
        return f"{mean:.4f}"
    values, before = evaluation.per_query(system, measure), evaluation.per_query(baseline, measure)
    differences = [values[query] - before[query] for query in before]
    return f"{mean:.4f} ({mean / evaluation.mean(baseline, measure) - 1:+.1%}, p {paired_t_test(differences):.3f})"


def runs_of(data: Path, bases: Path, kept: Path, candidate: str, name: str) -> dict[str, dict[str, dict[str, float]]]:
    """The rankings of every system, from the cache where they are there."""
    path = kept / "runs" / f"{file_name(candidate)}.{name}.json"
    runs = json.loads(path.read_text()) if path.exists() else {}
    if missing := {label: method for label, method in PASSES.items() if label not in runs}:
        searcher, queries = open_searcher(data, bases, kept, candidate, name)
        for label, method in missing.items():
            runs[label] = search_all(searcher, queries, method)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(runs))
    return dict(runs)


def search_all(
    searcher: Searcher, queries: dict[str, EncodedQuery], method: Feedback | None
) -> dict[str, dict[str, float]]:
    return {
        query_id: {hit.doc_id: hit.score for hit in searcher.search(query, k=DEPTH, feedback=method)}
        for query_id, query in queries.items()
    }


def open_searcher(
    data: Path, bases: Path, kept: Path, candidate: str, name: str
) -> tuple[Searcher, dict[str, EncodedQuery]]:
    """An index of a set and its encoded queries."""
    texts = read_set(data, name)
    path = kept / "indexes" / f"{file_name(candidate)}.{name}.index"
    if candidate == "now" or "=" in candidate:
        encoder = _encoder(candidate.partition("=")[2])
        if not path.exists():
            Index.create(path, texts.documents.items(), encoder=encoder, bits=BITS, total=len(texts.documents))
        encoded = encoder.encode_queries(texts.queries.values())
        return Searcher(Index.open(path, encoder=encoder)), dict(zip(texts.queries, encoded, strict=True))
    base_name, dim, kind = candidate.split(":")
    base = Base(base_name, bases, kept)
    projection = projection_of(base, data, kept, int(dim), kind)
    if not path.exists():
        Index.create_from_vectors(
            path,
            encoded_documents(base, projection, name, texts),
            bits=BITS,
            special_ids=base.tokenization.special_ids,
            vocabulary_size=base.tokenization.vocabulary_size,
            total=len(texts.documents),
        )
    states = base.states(name, "queries", list(texts.queries.values()))
    vectors = project(states.vectors, projection)
    queries = {
        query_id: EncodedQuery(
            np.asarray(states.token_ids[states.of(i)]),
            vectors[states.of(i)],
            np.ones(len(vectors[states.of(i)]), np.float32),
        )
        for i, query_id in enumerate(texts.queries)
    }
    return Searcher(Index.open(path)), queries


def projection_of(base: Base, data: Path, kept: Path, dim: int, kind: str) -> NDArray[np.float32]:
    if kind == "pca":
        documents = read_set(data, "train").documents
        return pca_head(base.states("train", "documents", list(documents.values())), dim)
    return np.asarray(np.load(head_file(kept, base.name, dim, 0))["projection"])


def encoded_documents(
    base: Base, projection: NDArray[np.float32], name: str, texts: TextSet
) -> Iterator[tuple[str, EncodedDocument]]:
    states = base.states(name, "documents", list(texts.documents.values()))
    for i, doc_id in enumerate(texts.documents):
        part = states.of(i)
        yield doc_id, EncodedDocument(np.asarray(states.token_ids[part]), project(states.vectors[part], projection))


def file_name(candidate: str) -> str:
    return candidate.partition("=")[0].replace(":", "-")


@cache
def _encoder(folder: str) -> Encoder:
    return Encoder.load(folder or None)


if __name__ == "__main__":
    main()
