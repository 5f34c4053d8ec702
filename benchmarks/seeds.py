"""How much the seed of the clustering changes what feedback gives, on TREC DL 2019 and 2020 over the closed pool.

    python benchmarks/seeds.py DATA --cache DIR [--bits 16] [--seeds 30] [--model FOLDER]

Only the seed varies; nothing is chosen by it, the default stays 42. ``--model`` compares another model than the one
that comes with the package. Indexes are made once and kept in the cache.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np
from effectiveness import DEPTH, POOL, answers, as_run, encode, open_searcher

from colbert_prf import ColbertPRF, Encoder, Feedback
from colbert_prf.evaluation import evaluate

MEASURES = ("AP", "nDCG@10")
SYSTEMS = {
    "Ranker": ColbertPRF(),
    "Ranker, β=0.1 absolute": ColbertPRF(beta=0.1),
    "Ranker, β=0.1 absolute, all 24 centroids": ColbertPRF(beta=0.1, expansion_vectors=24),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--cache", type=Path, required=True)
    parser.add_argument("--bits", type=int, default=16)
    parser.add_argument("--seeds", type=int, default=30, help="from 0 on (default: %(default)s)")
    parser.add_argument("--model", type=Path, help="default: the embedded one")
    arguments = parser.parse_args()
    encoder = Encoder.load(arguments.model)
    cache = arguments.cache if arguments.model is None else arguments.cache / encoder.fingerprint[:8]
    searcher = open_searcher(arguments.data, cache, "msmarco-dl1920", arguments.bits, encoder)
    print(f"{arguments.seeds} seeds, bits={arguments.bits}\n")
    print("| | | measure | mean | standard deviation | least | most |\n|---|---|---|---|---|---|---|")
    for year, topics in POOL.items():
        texts, qrels = topics.read(arguments.data)
        queries = encode(searcher, texts)
        methods: dict[str, Feedback | None] = {"first pass": None}
        for label, method in SYSTEMS.items():
            methods |= {f"{label} {seed}": replace(method, seed=seed) for seed in range(arguments.seeds)}
        runs = {
            label: as_run(answers(searcher, queries, method, f"{year}, {label}", DEPTH))
            for label, method in methods.items()
        }
        result = evaluate(qrels, runs, MEASURES, relevance=topics.relevance)
        for measure in MEASURES:
            print(f"| {year} | first pass | {measure} | {result.mean('first pass', measure):.4f} | | | |")
            for label in SYSTEMS:
                values = [result.mean(f"{label} {seed}", measure) for seed in range(arguments.seeds)]
                cells = (np.mean(values), np.std(values, ddof=1), min(values), max(values))
                print(f"| {year} | {label} | {measure} | " + " | ".join(f"{cell:.4f}" for cell in cells) + " |")


if __name__ == "__main__":
    main()
