"""The networks an embedded model may be made of, and their last hidden states over whole collections.

    python scripts/model/bases.py ../shared/data --bases FOLDER --cache CACHE --base answerai --set train --set vaswani

FOLDER has the checkpoints that ``bert_from_wheel.py`` and ``bert_from_onnx.py`` write. Hidden states are computed once,
by the int8 network, and kept in CACHE as float16; what is there already is not computed again.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray
from sets import SETS, read_set
from tokenizers import Tokenizer
from transformers import BertModel

from colbert_prf.encoder.bert_graph import bert_graph
from colbert_prf.encoder.quantize import quantize_network
from colbert_prf.encoder.settings import ModelSettings
from colbert_prf.encoder.tokenization import Tokenization, Tokenized
from colbert_prf.progress import progress_bar

LAYERS, HEADS, SIZE = 12, 12, 384
SPECIAL = ("[CLS]", "[MASK]", "[PAD]", "[SEP]", "[UNK]")
MARKERS = ("[unused0]", "[unused1]")
PLAIN = ModelSettings(name="", dim=SIZE, query_length=64, special_tokens=SPECIAL)
COLBERT = ModelSettings(
    name="",
    dim=SIZE,
    query_length=64,
    query_prefix="[unused0] ",
    document_prefix="[unused1] ",
    augment_to=32,
    special_tokens=(*SPECIAL, *MARKERS),
)
Weights = dict[str, NDArray[np.float32]]
BASES = {"gte": PLAIN, "bge": PLAIN, "answerai": COLBERT}


@dataclass(frozen=True)
class States:
    """Hidden states of the texts of one side, one after the other."""

    token_ids: NDArray[np.int32]
    vectors: NDArray[np.float16]
    offsets: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def of(self, place: int) -> slice:
        return slice(int(self.offsets[place]), int(self.offsets[place + 1]))


class Base:
    """A network without a last layer, in int8; its last layers can be left out too."""

    def __init__(self, name: str, bases: Path, cache: Path, *, int8: bool = True, without: int = 0) -> None:
        self.name, self.checkpoint, self.without = name, bases / name, without
        self.cache = cache / name / (("int8" if int8 else "float32") + (f"-without-{without}" if without else ""))
        self.cache.mkdir(parents=True, exist_ok=True)
        tokenizer = Tokenizer.from_file(str(self.checkpoint / "tokenizer.json"))
        tokenizer.add_special_tokens([marker for marker in MARKERS if marker in BASES[name].special_tokens])
        self.tokenization = Tokenization(tokenizer, BASES[name])
        self.filling_id = tokenizer.token_to_id("[MASK]")
        network = self.cache / "states.onnx"
        if not network.exists():
            part = network.with_suffix(".part")
            onnx.save(bert_graph(first_layers(self.weights(), LAYERS - without), heads=HEADS), part)
            if int8:
                quantize_network(part, self.tokenization)
            part.rename(network)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self._session = onnxruntime.InferenceSession(network, options, providers=["CPUExecutionProvider"])

    def weights(self) -> Weights:
        model = BertModel.from_pretrained(self.checkpoint, add_pooling_layer=False)
        return {name: tensor.numpy() for name, tensor in model.state_dict().items()}

    def states(self, name: str, side: str, texts: Sequence[str]) -> States:
        """The states of some texts as queries or documents, from the cache where they are there."""
        folder = self.cache / name / side
        if not (folder / "offsets.npy").exists():
            self._compute(folder, name, side, texts)
        parts = [np.load(folder / f"{part}.npy", mmap_mode="r") for part in ("token_ids", "vectors", "offsets")]
        return States(*parts)

    def _compute(self, folder: Path, name: str, side: str, texts: Sequence[str]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        tokenize = self.tokenization.query if side == "queries" else self.tokenization.document
        tokenized = [tokenize(text) for text in texts]
        offsets = np.concatenate([[0], np.cumsum([len(text.input_ids) for text in tokenized])])
        vectors = np.lib.format.open_memmap(
            folder / "vectors.npy", mode="w+", dtype=np.float16, shape=(int(offsets[-1]), SIZE)
        )
        with ThreadPoolExecutor(2) as pool, progress_bar(f"{self.name}, {name}, {side}", total=len(texts)) as advance:
            for begin, end, found in zip(offsets, offsets[1:], pool.map(self._run, tokenized), strict=False):
                vectors[begin:end] = found
                advance(1)
        vectors.flush()
        np.save(folder / "token_ids.npy", np.concatenate([text.input_ids for text in tokenized]).astype(np.int32))
        np.save(folder / "offsets.npy", offsets)

    def _run(self, text: Tokenized) -> NDArray[np.float32]:
        inputs = {"input_ids": text.input_ids[None], "attention_mask": text.attention_mask[None]}
        return np.asarray(self._session.run(["vectors"], inputs)[0][0])


def first_layers(weights: Weights, count: int) -> Weights:
    """The weights without those of later layers."""
    return {
        name: values
        for name, values in weights.items()
        if not name.startswith("encoder.layer.") or int(name.split(".")[2]) < count
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--bases", type=Path, required=True)
    parser.add_argument("--cache", type=Path, required=True)
    parser.add_argument("--base", action="append", choices=[*BASES], required=True)
    parser.add_argument("--set", action="append", choices=[*SETS], required=True)
    arguments = parser.parse_args()
    for name in arguments.base:
        base = Base(name, arguments.bases, arguments.cache)
        for collection in arguments.set:
            texts = read_set(arguments.data, collection)
            base.states(collection, "queries", list(texts.queries.values()))
            found = base.states(collection, "documents", list(texts.documents.values()))
            print(json.dumps({"base": name, "set": collection, "vectors": len(found.vectors)}), flush=True)


if __name__ == "__main__":
    main()
