"""ONNX networks over texts, with their tokenizers, in folders such as optimum exports; no PyTorch."""

from __future__ import annotations

import hashlib
import json
import os
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from tokenizers import Tokenizer

from colbert_prf.encoder.base import available_cores
from colbert_prf.encoder.session import first_line, open_session
from colbert_prf.encoder.text import valid_document
from colbert_prf.errors import InputError, ModelError, require_positive

__all__ = ["TextNetwork", "read_json_object"]

TOKENIZER = "tokenizer.json"
NETWORKS = ("model.onnx", "onnx/model.onnx")
PYTORCH_WEIGHTS = ("model.safetensors", "pytorch_model.bin")
LENGTHS = (
    ("sentence_bert_config.json", "max_seq_length"),
    ("tokenizer_config.json", "model_max_length"),
    ("config.json", "max_position_embeddings"),
)
"""The files, and their keys, that may have the number of tokens that the network reads."""
LONGEST = 512
INPUTS = ("input_ids", "attention_mask", "token_type_ids")
INTEGERS: dict[str, type[np.integer[Any]]] = {"tensor(int64)": np.int64, "tensor(int32)": np.int32}
PROBE_LENGTH = 3
"""Tokens of the trial run when a folder is opened."""


class TextNetwork:
    """Runs an ONNX network over one text, or one pair of texts, at a time, in one thread and without padding.

    The constructor runs the network on three tokens, so that an unsuitable folder is refused at once and not in the
    middle of a collection.

    Parameters
    ----------
    folder
        A folder with ``tokenizer.json``, and ``model.onnx`` or ``onnx/model.onnx``.
    pairs
        Whether the network reads pairs of texts.
    max_length
        The most tokens of a text, or of a pair, special tokens included; the rest is cut. If left out, the smallest
        number in ``sentence_bert_config.json``, ``tokenizer_config.json`` and ``config.json``, at most 512.
    threads
        The number of runs that the caller makes at once; the number of cores if left out.

    Raises
    ------
    ModelError
        If a file is missing or damaged, the network takes other inputs, or the tokenizer belongs to another network.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        pairs: bool = False,
        max_length: int | None = None,
        threads: int | None = None,
    ) -> None:
        require_positive(threads=threads)
        self.threads = threads or available_cores()
        self.folder = Path(folder)
        self.network_file = _network_file(self.folder)
        self._tokenizer = _open_tokenizer(self.folder)
        self.max_length = self._cut(pairs, max_length)
        self._session = open_session(self.network_file)
        self._inputs = self._known_inputs()
        self.output_shapes = self._probe()

    @staticmethod
    def is_in(folder: str | os.PathLike[str]) -> bool:
        """Tell whether a folder has an ONNX network that should be opened.

        If the folder has PyTorch weights and no ``tokenizer.json``, which sentence-transformers can do without, the
        weights should be opened instead.
        """
        path = Path(folder)
        if not any((path / name).is_file() for name in NETWORKS):
            return False
        return (path / TOKENIZER).is_file() or not any((path / name).is_file() for name in PYTORCH_WEIGHTS)

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the network, of its weights if they are in a file of their own, and of the tokenizer."""
        digest = hashlib.sha256((self.folder / TOKENIZER).read_bytes())
        for file in sorted(self.network_file.parent.glob(f"{self.network_file.name}*")):
            with file.open("rb") as stream:
                while block := stream.read(1 << 20):
                    digest.update(block)
        return digest.hexdigest()[:32]

    def describe_outputs(self) -> str:
        """Describe the outputs and their shapes for three tokens, for error messages."""
        return ", ".join(f"{name} of shape {shape}" for name, shape in self.output_shapes.items())

    def run(self, output: str, text: str, second: str | None = None) -> npt.NDArray[np.float32]:
        """Compute one output of the network for a text, or for a pair of texts.

        Parameters
        ----------
        output
            The name of the output, a key of ``output_shapes``.
        text, second
            The text, or the two texts of a pair.

        Returns
        -------
        ndarray
            The output, with a batch axis of length 1.
        """
        encoding = self._tokenizer.encode(valid_document(text), None if second is None else valid_document(second))
        try:
            (values,) = self._run([output], encoding.ids, encoding.type_ids)
        except Exception as error:  # ONNX Runtime's exceptions share no base but Exception
            raise ModelError(
                f"{self.network_file}: the network fails on {len(encoding.ids)} tokens ({first_line(error)}); "
                f"give a max_length below {self.max_length}, or export the model with dynamic axes"
            ) from error
        return np.asarray(values, dtype=np.float32)

    def _run(self, outputs: list[str] | None, ids: list[int], type_ids: list[int]) -> list[npt.NDArray[Any]]:
        values = dict(zip(INPUTS, (ids, [1] * len(ids), type_ids), strict=True))
        inputs = {name: np.array([values[name]], dtype=dtype) for name, dtype in self._inputs.items()}
        return list(self._session.run(outputs, inputs))

    def _cut(self, pairs: bool, max_length: int | None) -> int:
        """Make the tokenizer cut texts without padding, and return the length."""
        length = _length_of(self.folder) if max_length is None else max_length
        special = self._tokenizer.num_special_tokens_to_add(pairs)
        if length <= special:  # the library would not cut at all
            raise InputError(
                f"max_length must be above {special}, the number of special tokens, found {length} for {self.folder}"
            )
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(length)
        return length

    def _known_inputs(self) -> dict[str, type[np.integer[Any]]]:
        kinds = {item.name: item.type for item in self._session.get_inputs()}
        unknown = [f"{name} ({kind})" for name, kind in kinds.items() if name not in INPUTS or kind not in INTEGERS]
        if unknown or "input_ids" not in kinds:
            raise ModelError(
                f"{self.network_file}: a text network takes integers as {', '.join(INPUTS)}, the first of them at "
                f"least; found the inputs {', '.join(unknown or kinds) or 'none'}; export an encoder such as BERT with "
                "optimum-cli export onnx"
            )
        return {name: INTEGERS[kind] for name, kind in kinds.items()}

    def _probe(self) -> dict[str, tuple[int, ...]]:
        """Return the shape of each output for three tokens, after a run on the largest id of the tokenizer."""
        try:
            values = self._run(None, [0] * PROBE_LENGTH, [0] * PROBE_LENGTH)
        except Exception as error:  # as in run
            raise ModelError(
                f"{self.network_file}: the network does not run on a text of {PROBE_LENGTH} tokens "
                f"({first_line(error)}); export the model with dynamic axes for batch and sequence"
            ) from error
        largest = max(self._tokenizer.get_vocab(with_added_tokens=True).values(), default=0)
        try:
            self._run(None, [largest] * PROBE_LENGTH, [0] * PROBE_LENGTH)
        except Exception as error:  # as in run
            raise ModelError(
                f"{self.folder / TOKENIZER}: its largest token id is {largest}, which {self.network_file.name} does "
                f"not know ({first_line(error)}); put the tokenizer.json of this very model there"
            ) from error
        names = [item.name for item in self._session.get_outputs()]
        return {name: np.shape(value) for name, value in zip(names, values, strict=True)}


def read_json_object(path: Path) -> dict[str, Any]:
    """Read the object in a JSON file; an empty one if there is no such file."""
    if not path.is_file():
        return {}
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ModelError(f"{path}: not JSON ({error}); copy it from the model again, or remove it") from error
    if not isinstance(content, dict):
        kind = type(content).__name__
        raise ModelError(f"{path}: must hold a JSON object, found {kind}; copy it from the model again")
    return content


def _length_of(folder: Path) -> int:
    lengths = [read_json_object(folder / name).get(key) for name, key in LENGTHS]
    return min([LONGEST, *(length for length in lengths if isinstance(length, int) and length > 0)])


def _network_file(folder: Path) -> Path:
    if not folder.is_dir():
        raise ModelError(f"{folder}: no such folder; give one with {TOKENIZER} and {' or '.join(NETWORKS)}")
    for name in NETWORKS:
        if (folder / name).is_file():
            return folder / name
    names = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.onnx"))
    advice = "rename one of them" if names else "export the model again with optimum-cli export onnx"
    raise ModelError(
        f"{folder}: no ONNX network, which must be {' or '.join(NETWORKS)}; "
        f"found {', '.join(names) or 'none'}; {advice}"
    )


def _open_tokenizer(folder: Path) -> Any:
    path = folder / TOKENIZER
    if not path.is_file():
        raise ModelError(
            f"{folder}: no {TOKENIZER}, without which the network reads no text; found "
            f"{', '.join(sorted(file.name for file in folder.iterdir()))}; copy it from the model, or write it with "
            "AutoTokenizer.from_pretrained(MODEL).save_pretrained(FOLDER) of transformers"
        )
    try:
        return Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises bare Exception
        raise ModelError(f"{path}: not a tokenizer file ({first_line(error)}); copy it from the model again") from error
