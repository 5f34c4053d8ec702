"""A query and a passage read together by one network: from an ONNX folder, or with sentence-transformers."""

from __future__ import annotations

import json
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from colbert_prf.encoder.ordered import ordered_map
from colbert_prf.encoder.text_network import TextNetwork
from colbert_prf.errors import MissingExtraError, ModelError

__all__ = ["OnnxPairScorer", "PairScorer", "TorchPairScorer"]

SETTINGS, FORMAT = "cross_encoder.json", 1


class PairScorer(ABC):
    """Scores passages for a query, each pair on its own: a cross-encoder."""

    @staticmethod
    def load(model: str | os.PathLike[str], *, threads: int | None = None, max_length: int | None = None) -> PairScorer:
        """Open a cross-encoder.

        Parameters
        ----------
        model
            A folder with ``tokenizer.json``, and ``model.onnx`` or ``onnx/model.onnx``, such as optimum exports or
            ``colbert-prf train --kind cross-encoder`` makes; or, with the extra ``[hub]``, any ``CrossEncoder``
            sentence-transformers opens: a folder, or a name on the hub.
        threads
            Pairs scored at once by an ONNX network; as many as there are cores if left out.
        max_length
            Tokens of a pair; what the model says, at most 512, if left out.

        Raises
        ------
        ModelError
            If there is no such model, it is damaged, or it is no cross-encoder with one score.
        MissingExtraError
            If it needs PyTorch and the extra is not installed.
        """
        if (Path(model) / SETTINGS).is_file() or TextNetwork.is_in(model):
            return OnnxPairScorer(model, threads=threads, max_length=max_length)
        return TorchPairScorer(os.fspath(model), max_length=max_length)

    @abstractmethod
    def scores(
        self, query: str, texts: Sequence[str], *, progress: Callable[[int], object] | None = None
    ) -> npt.NDArray[np.float64]:
        """The score of each text, of shape (num_texts,).

        Parameters
        ----------
        query
            A text.
        texts
            The passages, cut where both together are too long.
        progress
            Called with the number of pairs just finished.
        """


class OnnxPairScorer(PairScorer):
    """Scores with ONNX Runtime alone, one pair per run and a run per core: no pair pays for a longer neighbour.

    Parameters
    ----------
    folder
        What :class:`~colbert_prf.encoder.text_network.TextNetwork` opens; ``cross_encoder.json``, which ``colbert-prf
        train`` writes, says how long a pair is.
    threads
        Pairs scored at once; as many as there are cores if left out.
    max_length
        Tokens of a pair; what the folder says if left out.
    """

    def __init__(
        self, folder: str | os.PathLike[str], *, threads: int | None = None, max_length: int | None = None
    ) -> None:
        settings = Path(folder) / SETTINGS
        if settings.is_file():
            trained_length = _trained_length(settings)
            max_length = trained_length if max_length is None else max_length
        self.network = TextNetwork(folder, pairs=True, max_length=max_length, threads=threads)
        self._output = _score_of(self.network)

    def scores(
        self, query: str, texts: Sequence[str], *, progress: Callable[[int], object] | None = None
    ) -> npt.NDArray[np.float64]:
        """The score of each text."""

        def score(text: str) -> float:
            value = self.network.run(self._output, query, text).item()
            if progress is not None:
                progress(1)
            return value

        scored = ordered_map(score, texts, threads=self.network.threads)
        return np.fromiter(scored, dtype=np.float64, count=len(texts))


def _score_of(network: TextNetwork) -> str:
    """The name of the output with one score a pair."""
    name = "logits" if "logits" in network.output_shapes else next(iter(network.output_shapes))
    shape = network.output_shapes[name]
    if shape in ((1,), (1, 1)):
        return name
    found = network.describe_outputs()
    if len(shape) == 2:
        advice = f"a classifier with {shape[1]} labels is none; give a cross-encoder trained with one label"
    else:
        advice = (
            "hidden states come from a text encoder: open it with VectorEncoder.load, or export the cross-encoder "
            "with optimum-cli export onnx --task text-classification"
        )
    raise ModelError(f"{network.network_file}: a cross-encoder gives one score a pair, found {found}; {advice}")


def _trained_length(path: Path) -> int:
    try:
        settings = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ModelError(f"{path}: no cross-encoder ({error})") from error
    if not isinstance(settings, dict) or settings.get("format") != FORMAT:
        raise ModelError(f"{path}: not a cross-encoder of format {FORMAT}; export it again")
    length = settings.get("max_length")
    if not isinstance(length, int) or length < 1:
        raise ModelError(f"{path}: max_length must be a positive number, found {length!r}")
    return length


class TorchPairScorer(PairScorer):
    """Scores with any ``CrossEncoder`` of sentence-transformers; needs the extra ``[hub]``.

    Parameters
    ----------
    model
        A folder, a name on the hub such as ``cross-encoder/ms-marco-MiniLM-L6-v2``, or a ``CrossEncoder``.
    batch_size
        Pairs per forward pass.
    max_length
        Tokens of a pair, for a model opened by its name; what the model says if left out.
    """

    def __init__(self, model: Any, *, batch_size: int = 32, max_length: int | None = None) -> None:
        try:
            from sentence_transformers import CrossEncoder
        except ImportError as error:
            raise MissingExtraError("A cross-encoder that is not exported", extra="hub") from error
        if isinstance(model, str):
            try:
                model = CrossEncoder(model, max_length=max_length)
            except (OSError, ValueError) as error:
                raise ModelError(f"{model}: no cross-encoder that sentence-transformers opens ({error})") from error
        self.model = model
        self.batch_size = batch_size

    def scores(
        self, query: str, texts: Sequence[str], *, progress: Callable[[int], object] | None = None
    ) -> npt.NDArray[np.float64]:
        """The score of each text, before the model squashes it into 0 to 1."""
        import torch

        found = []
        for start in range(0, len(texts), self.batch_size):
            pairs = [(query, text) for text in texts[start : start + self.batch_size]]
            given = self.model.predict(
                pairs, batch_size=self.batch_size, show_progress_bar=False, activation_fn=torch.nn.Identity()
            )
            found.append(np.asarray(given, dtype=np.float64).reshape(len(pairs), -1)[:, -1])
            if progress is not None:
                progress(len(pairs))
        return np.concatenate([np.empty(0), *found])
