"""Write a model folder from a base and what was trained: a graph made for speed, in int8 and, to compare, in float32.

    python scripts/model/build.py --bases FOLDER --cache CACHE --base answerai --dim 96 --layers 2 \\
        --name "answerai-colbert-small-v1, own projection" --output colbert_prf/encoder/embedded --keep KEPT
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
from bases import BASES, HEADS, LAYERS, Base, Weights
from numpy.typing import NDArray
from train import head_file

from colbert_prf import Encoder
from colbert_prf.encoder.bert_graph import bert_graph
from colbert_prf.encoder.export import compare_encoders
from colbert_prf.encoder.folder import ModelFolder
from colbert_prf.encoder.quantize import quantize_network


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bases", type=Path, required=True)
    parser.add_argument("--cache", type=Path, required=True)
    parser.add_argument("--base", choices=[*BASES], required=True)
    parser.add_argument("--dim", type=int, default=96)
    parser.add_argument("--layers", type=int, default=0, help="that were trained, the last ones (default: %(default)s)")
    parser.add_argument("--name", required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--keep", type=Path, required=True, help="folder for the float32 model")
    arguments = parser.parse_args()
    base = Base(arguments.base, arguments.bases, arguments.cache)
    trained = dict(np.load(head_file(arguments.cache, base.name, arguments.dim, arguments.layers)))
    weights = base.weights() | trained_layers(trained, arguments.layers)
    for folder, int8 in ((arguments.keep, False), (arguments.output, True)):
        write(ModelFolder(folder), base, weights, trained["projection"], arguments.name, int8=int8)
    agreement = compare_encoders(Encoder.load(arguments.keep), Encoder.load(arguments.output))
    print(f"int8 against float32: {agreement}")


def trained_layers(trained: Weights, count: int) -> Weights:
    """The weights of the last layers, by their names in the whole network."""
    found = {}
    for name, values in trained.items():
        if name.startswith("encoder.layer."):
            _, _, number, rest = name.split(".", 3)
            found[f"encoder.layer.{LAYERS - count + int(number)}.{rest}"] = values
    return found


def write(
    folder: ModelFolder, base: Base, weights: Weights, projection: NDArray[np.float32], name: str, *, int8: bool
) -> None:
    folder.path.mkdir(parents=True, exist_ok=True)
    settings = replace(BASES[base.name], name=name, dim=len(projection))
    folder.settings_file.write_text(settings.to_json(), encoding="utf-8")
    base.tokenization.save(folder.tokenizer_file)
    onnx.save(bert_graph(weights, heads=HEADS, projection=projection), folder.network_file)
    if int8:
        quantize_network(folder.network_file, base.tokenization)
    print(f"wrote {folder.path}: {folder.network_file.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
