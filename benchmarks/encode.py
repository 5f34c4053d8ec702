"""Encoding speed: ONNX int8 (the embedded model) against ONNX float32 and PyTorch, and a cold start of each.

    python scripts/build_embedded_model.py PASSAGES.tsv.gz --output /tmp/int8 --keep /tmp/kept
    python benchmarks/encode.py /tmp/kept

The texts are the demo's: passages and questions about Python. Encoders take turns, round after round, in one process; a
figure is the median over the rounds. A cold start is a new process that imports, loads the model and encodes one query.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
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
    parser.add_argument("kept", type=Path, help="the folder build_embedded_model.py --keep wrote")
    parser.add_argument("--passages", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    models = {
        "ONNX int8": None,
        "ONNX float32": str(arguments.kept / "float32"),
        "PyTorch": str(arguments.kept / "checkpoint"),
    }
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
    ratio = median(rates["ONNX int8"]["documents"]) / median(rates["PyTorch"]["documents"])
    print(f"\nONNX int8 encodes documents {ratio:.1f}x as fast as PyTorch ", end="")
    print(f"and starts {starts['PyTorch'] / starts['ONNX int8']:.1f}x as fast.")


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
