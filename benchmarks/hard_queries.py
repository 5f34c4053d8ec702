"""Queries that centroids tell little about: is the best document found, and the best ten?

    python benchmarks/hard_queries.py DATA --cache CACHE
    python benchmarks/hard_queries.py DATA --cache CACHE --collections demo --peers peers/bin/python

DATA has a folder for each collection but the demo corpus; `kept.py` says what CACHE keeps. The queries, 150 of each
kind, chosen by a fixed seed:

- one: a word that stands in one passage of the collection;
- two: such a word, and one that stands in at least every fiftieth passage;
- added: a word that stands in one of 60 passages of another collection, which ``add`` brought in, and nowhere else.

Exact means weighted MaxSim over the decoded vectors of the same index, of every document: ``search(..., exact=True)``,
which the tests compare with ``Index.score``. "best" is the share of queries whose best exact document is among the k
found, "recall" the share of the best k exact documents among them. The row "rescore" scores as many documents exactly
as a search does at least, and none beside. Milliseconds are medians, without encoding.

With --peers, fast-plaid and xtr-warp-rs answer the queries of the kinds "one" and "two" over the same float32 vectors,
without weights, which they do not have; in this table exact is float32 MaxSim over these vectors for all rows.

The parameters of the search were set by queries of the seeds 0 and 1; the default is another. Only `ERROR_SAMPLE`,
which matters from k = 100 on, was decided on the default seed.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import numpy as np
from kept import Passages, opened, passages_of, texts_of
from latency import report
from numpy.typing import NDArray
from peers import run_peer
from quality import recall, rows
from systems import brute_force, encoded_queries
from tables import label, print_table, share
from vectors import Texts

from colbert_prf import EncodedQuery, Encoder, Index, Searcher
from colbert_prf.search.budget import default_rescore

COLLECTIONS = ("demo", "scifact", "vaswani", "msmarco-dl1920")
KINDS = ("one", "two", "added")
BITS = (2, 4)
CUTOFFS = (1, 10, 100)
PEERS = ("fast-plaid-4", "xtr-warp-4")
PEER_KINDS = ("one", "two")
NUM_ADDED = 60
COMMON = 50
WORD = re.compile("[a-z]{4,}")


def frequencies_of(passages: Passages) -> dict[str, int]:
    """In how many passages each word stands.

    >>> frequencies_of([("a", "Fish eat fish"), ("b", "The fish")])
    {'fish': 2}
    """
    counts: dict[str, int] = {}
    for _, text in passages:
        for word in sorted(set(WORD.findall(text.lower()))):
            counts[word] = counts.get(word, 0) + 1
    return counts


def queries_of(kind: str, passages: Passages, added: Passages, count: int, seed: int) -> list[str]:
    """Queries of a kind.

    >>> queries_of("one", [("a", "goldfish grow"), ("b", "they grow")], [], 1, seed=0)
    ['they']
    """
    random, counts = np.random.default_rng(seed), frequencies_of(passages)
    source = frequencies_of(added) if kind == "added" else counts
    rare = sorted(word for word, found in source.items() if found == 1 and (kind != "added" or word not in counts))
    chosen: list[str] = random.choice(rare, min(count, len(rare)), replace=False).tolist()
    if kind != "two":
        return chosen
    common = sorted(word for word, found in counts.items() if found * COMMON >= len(passages))
    return [f"{word} {other}" for word, other in zip(chosen, random.choice(common, len(chosen)), strict=True)]


def measure(index: Index, queries: Sequence[EncodedQuery]) -> dict[str, dict[str, float]]:
    """What a search finds by default and with a fixed budget."""
    searcher, found = Searcher(index), {}
    exact = [index.positions(searcher.search(query, max(CUTOFFS), exact=True).doc_ids) for query in queries]
    for row, fixed in {"rescore": True, "default": False}.items():
        result = {}
        for k in CUTOFFS:
            rankings, seconds = [], []
            for query in queries:
                started = perf_counter()
                ranking = searcher.search(query, k, rescore=default_rescore(k) if fixed else None)
                seconds.append(perf_counter() - started)
                rankings.append(index.positions(ranking.doc_ids))
            result |= quality(rows(rankings, k), rows(exact, max(CUTOFFS)), k)
            result[f"ms@{k}"] = 1000 * float(np.median(seconds))
        found[row] = result
    return found


def quality(found: NDArray[np.int64], exact: NDArray[np.int64], k: int) -> dict[str, float]:
    """Whether the best document is among the first ``k``, and how many of the best ``k``."""
    best = float((found[:, :k] == exact[:, :1]).any(axis=1).mean())
    return {f"best@{k}": best, f"recall@{k}": recall(found, exact, k)}


def measured(arguments: argparse.Namespace, encoder: Encoder, name: str, bits: int, kind: str) -> dict[str, Any]:
    """One kind of queries over one index."""
    passages, other = passages_of(arguments.data, name), "scifact" if name == "demo" else "demo"
    random = np.random.default_rng(1)
    added: Passages = []
    if kind == "added":
        source = passages_of(arguments.data, other)
        added = [(f"added-{number}", source[number][1]) for number in random.permutation(len(source))[:NUM_ADDED]]
    texts = queries_of(kind, passages, added, arguments.queries, arguments.seed)
    queries = list(encoder.encode_queries(texts))
    index = opened(arguments.cache, arguments.data, name, bits)
    with TemporaryDirectory(dir=arguments.cache, prefix="added-") as folder:
        if kind == "added":
            shutil.copytree(arguments.cache / f"{name}.{bits}.index", Path(folder, "index"))
            index = Index.open(Path(folder, "index"))
            vectors = encoder.encode_documents(text for _, text in added)
            items = zip(added, vectors, strict=True)
            index.add_vectors((doc_id, vector, text) for (doc_id, text), vector in items)
        result = measure(index, queries)
        passages_there = index.num_documents
        del index
    return {"collection": name, "passages": passages_there, "bits": bits, "kind": kind, "rows": result}


def compare(arguments: argparse.Namespace, encoder: Encoder, name: str) -> list[list[str]]:
    """This engine and the peers on the float32 vectors of a collection: rows of a table."""
    whole, index = (opened(arguments.cache, arguments.data, name, bits) for bits in (16, 4))
    documents = texts_of(whole)
    folder, searcher, lines = arguments.cache / f"peers-{name}", Searcher(index), []
    documents.save(folder, "documents")
    for kind in (kind for kind in PEER_KINDS if kind in arguments.kinds):
        texts = queries_of(kind, passages_of(arguments.data, name), [], arguments.queries, arguments.seed)
        made = encoder.encode_queries(texts)
        queries = Texts.join((text, item.token_ids, item.vectors) for text, item in zip(texts, made, strict=True))
        queries.save(folder, "queries")
        search, asked = brute_force(documents).search, encoded_queries(queries)
        exact = rows([np.asarray(search(query, 10, 1)) for query in asked], 10)
        rankings = {"colbert-prf, 4 bits": rows([index.positions(searcher.search(q, 10).doc_ids) for q in asked], 10)}
        for peer in PEERS:
            rankings[label(peer)] = run_peer(
                peer, arguments.peers, cache=folder, queries=folder, passages=len(documents), repeats=1, workdir=folder
            )[1][10]
        for system, found in rankings.items():
            lines.append([name, kind, system, *map(share, quality(found, exact, 10).values())])
    return lines


def print_results(results: Sequence[Mapping[str, Any]]) -> None:
    heads = ["collection", "bits", "query", "", *(f"{m}@{k}" for k in CUTOFFS for m in ("best", "recall", "ms"))]
    lines = []
    for result in results:
        names = [f"{result['collection']} ({result['passages']:,})", str(result["bits"]), result["kind"]]
        for row, found in result["rows"].items():
            cells = [f"{value:.1f}" if name[:2] == "ms" else share(value) for name, value in found.items()]
            lines.append([*names, row, *cells])
    print_table(heads, lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="the folder of the collections")
    parser.add_argument("--cache", type=Path, required=True, help="where indexes are kept: 1 GB, outside the clone")
    parser.add_argument("--collections", nargs="+", metavar="NAME", default=COLLECTIONS, choices=COLLECTIONS)
    parser.add_argument("--kinds", nargs="+", metavar="KIND", default=KINDS, choices=KINDS)
    parser.add_argument("--bits", nargs="+", type=int, metavar="BITS", default=BITS)
    parser.add_argument("--queries", type=int, metavar="N", default=150)
    parser.add_argument("--seed", type=int, default=2, help="chooses the words")
    parser.add_argument("--peers", type=Path, metavar="PYTHON", help="an interpreter that has the other engines")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    arguments = parser.parse_args()
    encoder, results = Encoder.load(), []
    if arguments.peers:
        lines = [line for name in arguments.collections for line in compare(arguments, encoder, name)]
        print_table(["collection", "query", "system", "best@10", "recall@10"], lines)
        return
    for name in arguments.collections:
        for bits in arguments.bits:
            for kind in arguments.kinds:
                report(f"{name}, {bits} bits, {kind} ...")
                results.append(measured(arguments, encoder, name, bits, kind))
    if arguments.json:
        print(json.dumps(results, indent=1))
    elif results:
        print_results(results)


if __name__ == "__main__":
    main()
