"""Compare ways to quantize the embedded model: size, speed, cosine to float32, and nDCG@10 on a collection.

    python scripts/compare_int8_schemes.py KEPT/float32 ../shared/data/vaswani

KEPT is the folder that `build_embedded_model.py --keep` writes. Prints a Markdown table. Speeds are of one run
on one machine: compare rows, not runs.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import ir_measures
import numpy as np
from ir_measures import AP, nDCG
from onnx import TensorProto
from onnxruntime.quantization import QuantType, quantize_dynamic
from onnxruntime.quantization.shape_inference import quant_pre_process

from colbert_prf import EncodedDocument, Encoder, MemoryIndex, Searcher
from colbert_prf.datasets import read_corpus, read_qrels, read_topics
from colbert_prf.encoder.folder import ModelFolder
from colbert_prf.encoder.quantize import quantize_network
from colbert_prf.encoder.tokenization import Tokenization

Scheme = Callable[[Path, Path], Any]

# Fused attention and layer norms are not of the standard set of operators, so their types cannot be inferred.
FLOATS = {"DefaultTensorType": TensorProto.FLOAT}


def dynamic(**options: Any) -> Scheme:
    return lambda source, target: quantize_dynamic(source, target, extra_options=FLOATS, **options)


def smoothed(source: Path, target: Path) -> None:
    shutil.copyfile(source, target)
    folder = ModelFolder(target.parent)
    quantize_network(target, Tokenization.from_file(folder.tokenizer_file, folder.read_settings()))


INT8 = {"weight_type": QuantType.QInt8}
SCHEMES: dict[str, Scheme] = {
    "float32": shutil.copyfile,
    "int8 per channel, 7-bit weights, smoothed (shipped)": smoothed,
    "int8 per channel, 7-bit weights": dynamic(per_channel=True, reduce_range=True, **INT8),
    "int8 per channel": dynamic(per_channel=True, **INT8),
    "int8 per tensor": dynamic(**INT8),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path, help="a float32 model folder")
    parser.add_argument("collection", type=Path, help="collection.tsv.gz, queries.tsv and qrels.txt")
    arguments = parser.parse_args()
    corpus = list(read_corpus(arguments.collection / "collection.tsv.gz", empty="keep"))
    topics = read_topics(arguments.collection / "queries.tsv")
    qrels = read_qrels(arguments.collection / "qrels.txt")
    texts = [document.text for document in corpus]
    reference: list[EncodedDocument] = []
    with tempfile.TemporaryDirectory() as temporary:
        work = Path(temporary)
        folders = {name: quantized(arguments.model, scheme, work / name) for name, scheme in SCHEMES.items()}
        encoders = {name: Encoder.load(folder.path) for name, folder in folders.items()}
        speeds = median_speeds(encoders, texts[:: len(texts) // 400])
        print("| scheme | MB | tokens/s | mean cosine | 1% of cosines below | nDCG@10 | AP |")
        print("|---" * 7 + "|")
        for name, encoder in encoders.items():
            encoded = list(encoder.encode_documents(texts))
            reference = reference or encoded
            index = MemoryIndex([document.doc_id for document in corpus], encoded, encoder=encoder)
            measured = evaluate(Searcher(index), topics, qrels)
            similar = cosines(reference, encoded)
            print(
                f"| {name} | {folders[name].network_file.stat().st_size / 1e6:.1f} | {speeds[name]:,.0f} "
                f"| {similar.mean():.4f} | {np.quantile(similar, 0.01):.4f} "
                f"| {measured[nDCG @ 10]:.4f} | {measured[AP]:.4f} |",
                flush=True,
            )


def quantized(model: Path, scheme: Scheme, target: Path) -> ModelFolder:
    shutil.copytree(model, target)
    folder = ModelFolder(target)
    prepared = target / "prepared.onnx"
    quant_pre_process(ModelFolder(model).network_file, prepared, skip_symbolic_shape=True)
    scheme(prepared, folder.network_file)
    return folder


def median_speeds(encoders: dict[str, Encoder], texts: list[str], rounds: int = 7) -> dict[str, float]:
    """Tokens per second; the encoders take turns, so that all of them see the same machine."""
    speeds: dict[str, list[float]] = {name: [] for name in encoders}
    for _ in range(rounds):
        for name, encoder in encoders.items():
            started = perf_counter()
            tokens = sum(map(len, encoder.encode_documents(texts)))
            speeds[name].append(tokens / (perf_counter() - started))
    return {name: median(values) for name, values in speeds.items()}


def cosines(reference: list[EncodedDocument], encoded: list[EncodedDocument]) -> Any:
    pairs = zip(reference, encoded, strict=True)
    return np.concatenate([np.einsum("ij,ij->i", one.vectors, other.vectors) for one, other in pairs])


def evaluate(searcher: Searcher, topics: dict[str, str], qrels: dict[str, dict[str, int]]) -> dict[Any, float]:
    run = {
        query_id: {hit.doc_id: hit.score for hit in searcher.search(text, k=1000)} for query_id, text in topics.items()
    }
    return dict(ir_measures.calc_aggregate([nDCG @ 10, AP], qrels, run))


if __name__ == "__main__":
    main()
