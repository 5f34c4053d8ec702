"""Models side by side on the sets that choose: first pass and ColBERT-PRF, with the differences and their significance.

    python benchmarks/models.py DATA --cache DIR --model before=FOLDER --model now=embedded

The first model is what the others are compared with, by paired t-tests that are not corrected for their number. A model
is a folder, or ``embedded`` for the one that comes with the package; ``plain:FOLDER`` or ``plain:embedded`` leaves out
the weights of its query tokens. The sets are vaswani, nfcorpus (dev), scifact and held-out: 300 questions of the
training mix (Natural Questions, SQuAD, SelQA) over 1,500 of its paragraphs, drawn with a seed. Indexes of 4 bits are
made once for each model and kept in the cache; 1,000 documents a query.
"""

from __future__ import annotations

import argparse
import gzip
import random
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import numpy as np
from effectiveness import CHOOSING, DEPTH, answers, as_run, encode, open_searcher

from colbert_prf import ColbertPRF, Encoder, Feedback
from colbert_prf.evaluation import Evaluation, evaluate
from colbert_prf.evaluation.significance import paired_t_test

BITS = 4
MEASURES = ("AP", "nDCG@10")
PASSES: dict[str, Feedback | None] = {"first pass": None, "ColBERT-PRF": ColbertPRF()}
HELD_OUT = {"nq-qed": 150, "squad11dev": 75, "selqa": 75}
"""Questions of each source."""
NUM_PARAGRAPHS = 1500

Qrels = Mapping[str, Mapping[str, int]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--cache", type=Path, required=True)
    parser.add_argument("--model", action="append", required=True, metavar="NAME=FOLDER", help="may be given again")
    arguments = parser.parse_args()
    models = {name: load(folder) for name, _, folder in (model.partition("=") for model in arguments.model)}
    first, *others = models
    sets = [*CHOOSING, "held-out"]
    print("| collection | | measure | " + " | ".join(models) + " |")
    print("|---" * (3 + len(models)) + "|")
    for name in sets:
        result = measure(arguments.data, arguments.cache, name, models)
        for label in PASSES:
            for measured in MEASURES:
                cells = [f"{result.mean(f'{first}, {label}', measured):.4f}"]
                cells += [compared(result, f"{other}, {label}", f"{first}, {label}", measured) for other in others]
                print(f"| {name} | {label} | {measured} | {' | '.join(cells)} |", flush=True)


def load(folder: str) -> Encoder:
    plain, folder = folder.startswith("plain:"), folder.removeprefix("plain:")
    return Encoder.load(None if folder == "embedded" else folder, query_weights=not plain)


def measure(data: Path, cache: Path, name: str, models: Mapping[str, Encoder]) -> Evaluation:
    """Both passes of every model on one set."""
    runs: dict[str, dict[str, dict[str, float]]] = {}
    relevance = 1 if name == "held-out" else CHOOSING[name].relevance
    for model, encoder in models.items():
        folder = cache / encoder.fingerprint[:8]
        if name == "held-out":
            texts, qrels = held_out(data, cache)
            searcher = open_searcher(cache, folder, "held-out", BITS, encoder)
        else:
            texts, qrels = CHOOSING[name].read(data)
            searcher = open_searcher(data, folder, CHOOSING[name].collection, BITS, encoder)
        queries = encode(searcher, texts)
        for label, method in PASSES.items():
            runs[f"{model}, {label}"] = as_run(answers(searcher, queries, method, f"{name}, {model}, {label}", DEPTH))
    return evaluate(qrels, runs, MEASURES, relevance=relevance)


def compared(result: Evaluation, system: str, baseline: str, measure: str) -> str:
    """A mean, and in brackets the difference from a baseline and its p."""
    values, before = result.per_query(system, measure), result.per_query(baseline, measure)
    differences = [values[query] - before[query] for query in before]
    p = paired_t_test(differences)
    return f"{result.mean(system, measure):.4f} ({np.mean(differences):+.4f}, p {p:.3f})"


@cache
def held_out(data: Path, cache: Path) -> tuple[dict[str, str], Qrels]:
    """Questions and judgements; the paragraphs are written to the cache, as a collection of their own."""
    mix = data / "train"
    positives: dict[str, dict[str, set[str]]] = {source: {} for source in HELD_OUT}
    known: set[str] = set()
    for source, question, positive, negative in lines_of(mix / "mix.triples.ids.tsv.gz"):
        if source in HELD_OUT:
            positives[source].setdefault(question, set()).add(positive)
            known |= {positive, negative}
    texts, paragraphs = (dict(lines_of(mix / f"mix.{what}.tsv.gz")) for what in ("queries", "passages"))
    drawing = random.Random(42)
    questions: dict[str, set[str]] = {}
    for source, count in HELD_OUT.items():
        different = {texts[question]: question for question in sorted(positives[source]) if texts[question].strip()}
        questions |= {
            question: positives[source][question] for question in drawing.sample([*different.values()], count)
        }
    wanted = sorted(set().union(*questions.values()))
    others = sorted(known - set(wanted))
    chosen = wanted + drawing.sample(others, NUM_PARAGRAPHS - len(wanted))
    path = cache / "held-out" / "collection.tsv.gz"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        with gzip.open(path, "wt", encoding="utf-8") as file:
            file.writelines(f"{doc_id}\t{paragraphs[doc_id]}\n" for doc_id in chosen)
    qrels = {question: dict.fromkeys(relevant, 1) for question, relevant in questions.items()}
    return {question: texts[question] for question in questions}, qrels


def lines_of(path: Path) -> Iterator[list[str]]:
    """The fields of each line; texts are last, and keep their tabs."""
    fields = 4 if "triples" in path.name else 2
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            yield line.rstrip("\n").split("\t", fields - 1)


if __name__ == "__main__":
    main()
