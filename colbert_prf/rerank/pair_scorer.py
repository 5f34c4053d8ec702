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

from colbert_prf.encoder.base import available_cores
from colbert_prf.encoder.ordered import ordered_map
from colbert_prf.encoder.text import valid_document
from colbert_prf.errors import MissingExtraError, ModelError

__all__ = ["OnnxPairScorer", "PairScorer", "TorchPairScorer"]

SETTINGS, TOKENIZER, NETWORK = "cross_encoder.json", "tokenizer.json", "model.onnx"
FORMAT = 1


class PairScorer(ABC):
    """Scores passages for a query, each pair on its own: a cross-encoder."""

    @staticmethod
    def load(model: str | os.PathLike[str], *, threads: int | None = None) -> PairScorer:
        """Open a cross-encoder.

        Parameters
        ----------
        model
            A folder with an exported one, such as ``colbert-prf train --kind cross-encoder`` makes; or, with the extra
            ``[hub]``, any ``CrossEncoder`` sentence-transformers opens: a folder, or a name on the hub.
        threads
            Pairs scored at once by an exported one; as many as there are cores if left out.

        Raises
        ------
        ModelError
            If there is no such model, or it is damaged.
        MissingExtraError
            If it needs PyTorch and the extra is not installed.
        """
        if (Path(model) / SETTINGS).is_file():
            return OnnxPairScorer(model, threads=threads)
        return TorchPairScorer(os.fspath(model))

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
        With ``model.onnx``, ``tokenizer.json`` and ``cross_encoder.json``.
    threads
        Pairs scored at once; as many as there are cores if left out.
    """

    def __init__(self, folder: str | os.PathLike[str], *, threads: int | None = None) -> None:
        import onnxruntime
        from tokenizers import Tokenizer

        self.folder = Path(folder)
        self.threads = threads or available_cores()
        settings = self._settings()
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 3
        try:
            self._tokenizer = Tokenizer.from_file(str(self.folder / TOKENIZER))
            self._session = onnxruntime.InferenceSession(
                str(self.folder / NETWORK), options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # neither library's exceptions share a base but Exception
            reason = str(error).splitlines()[0]
            raise ModelError(f"{folder}: the cross-encoder cannot be opened ({reason}); export it again") from error
        self._inputs = [item.name for item in self._session.get_inputs()]
        self._tokenizer.enable_truncation(settings["max_length"])

    def scores(
        self, query: str, texts: Sequence[str], *, progress: Callable[[int], object] | None = None
    ) -> npt.NDArray[np.float64]:
        """The score of each text."""

        def score(text: str) -> float:
            pair = self._tokenizer.encode(valid_document(query), valid_document(text))
            given = {"input_ids": pair.ids, "attention_mask": pair.attention_mask, "token_type_ids": pair.type_ids}
            inputs = {name: np.array([given[name]], dtype=np.int64) for name in self._inputs}
            found = float(np.ravel(self._session.run(None, inputs)[0])[0])
            if progress is not None:
                progress(1)
            return found

        return np.fromiter(ordered_map(score, texts, threads=self.threads), dtype=np.float64, count=len(texts))

    def _settings(self) -> dict[str, Any]:
        path = self.folder / SETTINGS
        try:
            settings = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise ModelError(f"{path}: no cross-encoder ({error})") from error
        if not isinstance(settings, dict) or settings.get("format") != FORMAT:
            raise ModelError(f"{path}: not a cross-encoder of format {FORMAT}; export it again")
        if not isinstance(settings.get("max_length"), int) or settings["max_length"] < 1:
            raise ModelError(f"{path}: max_length must be a positive number, found {settings.get('max_length')!r}")
        return settings


class TorchPairScorer(PairScorer):
    """Scores with any ``CrossEncoder`` of sentence-transformers; needs the extra ``[hub]``.

    Parameters
    ----------
    model
        A folder, a name on the hub such as ``cross-encoder/ms-marco-MiniLM-L6-v2``, or a ``CrossEncoder``.
    batch_size
        Pairs per forward pass.
    """

    def __init__(self, model: Any, *, batch_size: int = 32) -> None:
        try:
            from sentence_transformers import CrossEncoder
        except ImportError as error:
            raise MissingExtraError("A cross-encoder that is not exported", extra="hub") from error
        if isinstance(model, str):
            try:
                model = CrossEncoder(model)
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
