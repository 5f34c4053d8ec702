"""Encoding speed: the embedded model against others, such as its float32 form and the model before it; cold starts.

    python benchmarks/encode.py --model float32=KEPT --model before=FOLDER

A model is any that Encoder.load opens: a folder, or with [hub] a checkpoint. The texts are the demo's: passages and
questions about Python. Encoders take turns, round after round, in one process; a figure is the median over the rounds.
A cold start is a new process that imports, loads the model and encodes one query.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from statistics import median
from time import perf_counter

from colbert_prf import EncodedDocument, EncodedQuery, Encoder
from colbert_prf.demo import QUESTIONS, demo_passages

COLD_START = """
from colbert_prf import Encoder
Encoder.load({model!r}).encode_query("do goldfish grow")
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", action="append", default=[], metavar="NAME=FOLDER", help="may be given again")
    parser.add_argument("--passages", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    models: dict[str, str | None] = {"embedded": None}
    models |= {name: folder for name, _, folder in (model.partition("=") for model in arguments.model)}
    encoders = {name: Encoder.load(model) for name, model in models.items()}
    passages = [text for _, text in demo_passages()[:: 3000 // arguments.passages]][: arguments.passages]
    questions = list(QUESTIONS) * (len(passages) // len(QUESTIONS))
    rates: dict[str, dict[str, list[float]]] = {name: {"documents": [], "queries": []} for name in models}
    for _ in range(arguments.rounds):
        for name, encoder in encoders.items():
            rates[name]["documents"].append(tokens_per_second(encoder.encode_documents, passages))
            rates[name]["queries"].append(tokens_per_second(encoder.encode_queries, questions))
    starts = {name: median(cold_start(model) for _ in range(arguments.rounds)) for name, model in models.items()}
    print(f"{len(passages)} passages and {len(questions)} questions, median of {arguments.rounds} rounds\n")
    print(
        "| encoder | documents, tokens/s | queries, tokens/s | one query, ms | cold start, s |\n|---|---|---|---|---|"
    )
    for name in models:
        documents, queries = (median(rates[name][kind]) for kind in ("documents", "queries"))
        latency = 1000 * median(seconds(partial(encoders[name].encode_query, QUESTIONS[0])) for _ in range(50))
        row = [f"{documents:,.0f}", f"{queries:,.0f}", f"{latency:.1f}", f"{starts[name]:.2f}"]
        print(f"| {name} | {' | '.join(row)} |")
    embedded = median(rates["embedded"]["documents"])
    for name in [*models][1:]:
        ratio = embedded / median(rates[name]["documents"])
        print(f"\nThe embedded model encodes documents {ratio:.2f}x as fast as {name}.", end="")
    print()


def tokens_per_second(
    encode: Callable[[Iterable[str]], Iterator[EncodedDocument | EncodedQuery]], texts: list[str]
) -> float:
    started = perf_counter()
    tokens = sum(len(encoded) for encoded in encode(texts))
    return tokens / (perf_counter() - started)


def seconds(action: Callable[[], object]) -> float:
    started = perf_counter()
    action()
    return perf_counter() - started


def cold_start(model: str | None) -> float:
    return seconds(lambda: subprocess.run([sys.executable, "-c", COLD_START.format(model=model)], check=True))


if __name__ == "__main__":
    main()
