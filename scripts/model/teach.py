"""Scores of a cross-encoder for training questions and the passages a base finds for them.

    python scripts/model/teach.py ../shared/data --bases FOLDER --cache CACHE --teacher RERANKER

RERANKER is a folder with ms-marco-MiniLM-L-12-v2 as ONNX (``reranker_en`` in the wheel). The passages of a question are
one that answers it, the best by MaxSim over states of the mining base projected by PCA, and one at random. Scores are
appended to CACHE/taught.jsonl, so that an interrupted run goes on where it stopped.
"""

from __future__ import annotations

import argparse
import json
import random
from pathlib import Path

from choose import open_searcher
from sets import SEED, read_set

from colbert_prf.baselines.rerank.pair_scorer import PairScorer
from colbert_prf.progress import progress_bar

MINING_BASE = "answerai"
NUM_MINED = 6
DIM = 96


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--bases", type=Path, required=True)
    parser.add_argument("--cache", type=Path, required=True)
    parser.add_argument("--teacher", type=Path, required=True)
    arguments = parser.parse_args()
    texts = read_set(arguments.data, "train")
    path = arguments.cache / "taught.jsonl"
    done = {json.loads(line)["query"] for line in path.read_text().splitlines()} if path.exists() else set()
    candidates = mine(arguments.data, arguments.bases, arguments.cache)
    scorer = PairScorer.load(arguments.teacher)
    order = [query for query in texts.queries if query not in done]
    random.Random(SEED).shuffle(order)
    with path.open("a") as file, progress_bar("teacher", total=len(order)) as advance:
        for query in order:
            passages = [texts.documents[doc_id] for doc_id in candidates[query]]
            scores = scorer.scores(texts.queries[query], passages).round(4).tolist()
            file.write(json.dumps({"query": query, "documents": candidates[query], "scores": scores}) + "\n")
            file.flush()
            advance(1)


def mine(data: Path, bases: Path, cache: Path) -> dict[str, list[str]]:
    """The passages to score for each question."""
    texts = read_set(data, "train")
    doc_ids = list(texts.documents)
    searcher, queries = open_searcher(data, bases, cache, f"{MINING_BASE}:{DIM}:pca", "train")
    drawing = random.Random(SEED)
    found: dict[str, list[str]] = {}
    for query, encoded in queries.items():
        known = [doc_id for doc_id in texts.qrels[query] if doc_id in texts.documents]
        chosen = drawing.sample(known, min(1, len(known)))
        best = searcher.search(encoded, k=NUM_MINED + 1).doc_ids
        chosen += [doc_id for doc_id in best if doc_id not in chosen][:NUM_MINED]
        found[query] = list(dict.fromkeys([*chosen, drawing.choice(doc_ids)]))
    return found


if __name__ == "__main__":
    main()
