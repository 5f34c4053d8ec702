"""A text encoder with one vector per text, from a folder with an ONNX network; no PyTorch."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, get_args

import numpy as np

from colbert_prf.baselines.single_vector.encoders import BATCH, Pooling, VectorEncoder
from colbert_prf.encoder.ordered import ordered_map
from colbert_prf.encoder.text import valid_document, valid_query
from colbert_prf.encoder.text_network import TextNetwork, read_json_object
from colbert_prf.errors import InputError, ModelError
from colbert_prf.types import Vectors

__all__ = ["OnnxVectorEncoder", "further_layers"]

POOLING, MODULES, SETTINGS = "1_Pooling/config.json", "modules.json", "config_sentence_transformers.json"
DONE_HERE = frozenset({"Transformer", "Pooling", "Normalize"})
"""The layers of sentence-transformers that a network and this module make together."""


class OnnxVectorEncoder(VectorEncoder):
    """Encodes with ONNX Runtime alone, one text per run and a run per core: no text pays for a longer neighbour.

    Parameters
    ----------
    folder
        What :class:`~colbert_prf.encoder.text_network.TextNetwork` opens, with hidden states as the output.
    pooling
        The vector of the first token (``"cls"``), or the mean over all tokens (``"mean"``); what
        ``1_Pooling/config.json`` says if left out, and an error where there is no such file.
    query_prefix, document_prefix
        Put before every query, every document; the prompts in ``config_sentence_transformers.json`` if left out, or
        nothing.
    normalise
        Whether vectors have unit length; if left out, unless ``config_sentence_transformers.json`` says that the model
        is made for the inner product.
    max_length
        Tokens of a text; what the folder says, at most 512, if left out.
    threads
        Texts encoded at once; as many as there are cores if left out.

    Raises
    ------
    ModelError
        If the folder is damaged, its network gives no hidden states, or nothing says how to pool them.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        pooling: Pooling | None = None,
        query_prefix: str | None = None,
        document_prefix: str | None = None,
        normalise: bool | None = None,
        max_length: int | None = None,
        threads: int | None = None,
    ) -> None:
        if pooling is not None and pooling not in get_args(Pooling):
            raise InputError(f"pooling must be 'cls' or 'mean', found {pooling!r}")
        path = Path(folder)
        if layers := further_layers(path):
            raise ModelError(
                f"{path / MODULES}: the layers {', '.join(layers)} come after the network, which the ONNX file does "
                "not hold; open the folder with BiEncoder, which needs the extra [hub]"
            )
        settings = read_json_object(path / SETTINGS)
        self.network = TextNetwork(path, max_length=max_length, threads=threads)
        self._output, self.dim = _hidden_states(self.network)
        self.pooling: Pooling = _pooling_of(path) if pooling is None else pooling
        self.query_prefix = _prompt(settings, "query") if query_prefix is None else query_prefix
        given = _prompt(settings, "document", "passage", "corpus") if document_prefix is None else document_prefix
        self.document_prefix = given
        self.normalise = settings.get("similarity_fn_name") != "dot" if normalise is None else normalise

    @cached_property
    def fingerprint(self) -> str:
        """A hash of all that makes the vectors of documents; the prefix of queries has no part in them."""
        settings = [self.pooling, self.document_prefix, self.normalise, self.network.max_length]
        return hashlib.sha256(f"{self.network.fingerprint} {json.dumps(settings)}".encode()).hexdigest()[:32]

    @property
    def name(self) -> str:
        """The pooling and the fingerprint."""
        return f"{self.pooling} pooling of {self.fingerprint}"

    def encode_query(self, text: str) -> Vectors:
        """The vector of a query, after its prefix; an empty query is a :class:`TextError`."""
        return self._vector(self.query_prefix + valid_query(text))

    def encode_documents(
        self, texts: Iterable[str], *, progress: Callable[[int], object] | None = None
    ) -> Iterator[Vectors]:
        """The vectors of documents, each after its prefix."""
        vectors = ordered_map(self._document, texts, threads=self.network.threads)
        while batch := list(islice(vectors, BATCH)):
            yield np.stack(batch)
            if progress is not None:
                progress(len(batch))

    def _document(self, text: str) -> Vectors:
        return self._vector(self.document_prefix + valid_document(text))

    def _vector(self, text: str) -> Vectors:
        states = self.network.run(self._output, text)[0]
        if not len(states):  # an empty text, where the tokenizer adds no special tokens
            return np.zeros(self.dim, dtype=np.float32)
        vector = states[0] if self.pooling == "cls" else states.mean(axis=0)
        length = np.linalg.norm(vector) if self.normalise else 1.0
        return np.asarray(vector / length if length > 0 else vector, dtype=np.float32)


def further_layers(folder: Path) -> list[str]:
    """The layers that sentence-transformers puts after a network, except pooling and unit length.

    Parameters
    ----------
    folder
        With ``modules.json``; without it there are none.
    """
    path = folder / MODULES
    if not path.is_file():
        return []
    try:
        kinds = [str(module["type"]).rsplit(".", 1)[-1] for module in json.loads(path.read_text(encoding="utf-8"))]
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise ModelError(f"{path}: not a list of modules ({error}); copy it from the model again") from error
    return [kind for kind in kinds if kind not in DONE_HERE]


def _hidden_states(network: TextNetwork) -> tuple[str, int]:
    """The name of the output with a vector for each token, and the components of a vector."""
    for name, shape in network.output_shapes.items():
        if len(shape) == 3:
            return name, shape[2]
    raise ModelError(
        f"{network.network_file}: a text encoder gives hidden states, a vector for each token; found "
        f"{network.describe_outputs()}; a cross-encoder opens with PairScorer.load, an encoder is exported with "
        "optimum-cli export onnx --task feature-extraction"
    )


def _pooling_of(folder: Path) -> Pooling:
    path = folder / POOLING
    if not path.is_file():
        raise ModelError(
            f"{folder}: nothing says how the vectors of tokens become one, for want of {POOLING}; "
            "give pooling='cls' or pooling='mean', as the model's card says"
        )
    config = read_json_object(path)
    modes = [name for name, chosen in config.items() if name.startswith("pooling_mode_") and chosen is True]
    modes = [str(config["pooling_mode"])] if "pooling_mode" in config else modes
    if modes in (["cls"], ["pooling_mode_cls_token"]):
        return "cls"
    if modes in (["mean"], ["pooling_mode_mean_tokens"]):
        return "mean"
    found = " and ".join(modes) or "none"
    raise ModelError(f"{path}: pooling must be that of cls or of mean, found {found}; open the folder with BiEncoder")


def _prompt(settings: dict[str, Any], *names: str) -> str:
    """The first prompt of these names; an empty one if there is none."""
    prompts = settings.get("prompts")
    if not isinstance(prompts, dict):
        return ""
    return next((str(prompts[name]) for name in names if prompts.get(name)), "")
