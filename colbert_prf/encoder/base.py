"""The interface of encoders, and how one is opened: the embedded model, a model folder, or a checkpoint."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt

from colbert_prf.encoder.folder import EMBEDDED, ModelFolder
from colbert_prf.encoder.settings import ModelSettings
from colbert_prf.encoder.tokenization import Tokenization
from colbert_prf.errors import ModelError
from colbert_prf.types import EncodedDocument, EncodedQuery, TokenIds, Weights

__all__ = ["Encoder", "available_cores"]


class Encoder(ABC):
    """Turns texts into token ids and unit vectors; :meth:`Encoder.load` opens one.

    A subclass defines ``tokenization``, ``fingerprint``, ``encode_queries`` and ``encode_documents``.
    """

    tokenization: Tokenization
    query_weights: npt.NDArray[np.float32] | None = None
    """The weight of each token's vector in a query, of shape (vocabulary_size,); None if all weigh the same."""

    @staticmethod
    def load(
        model: str | os.PathLike[str] | None = None, *, threads: int | None = None, query_weights: bool = True
    ) -> Encoder:
        """Open a model.

        Parameters
        ----------
        model
            The model that comes with the package if left out; a folder made by ``colbert-prf export``; or, with the
            extra ``[hub]``, any ColBERT checkpoint that sentence-transformers opens: a folder, or a name on the hub.
        threads
            The number of texts encoded at once; the number of cores if left out.
        query_weights
            Whether to weigh the vectors of a query if the model has weights, as the embedded one does: rare tokens
            count more. Otherwise all weigh 1, as in the paper.

        Raises
        ------
        ModelError
            If the folder is damaged, holds no model or may not be read.
        MissingExtraError
            If the checkpoint needs PyTorch and the extra is not installed.

        Examples
        --------
        >>> encoder = Encoder.load()
        >>> query = encoder.encode_query("do goldfish grow")
        >>> encoder.tokens(query.token_ids[:8])
        ['[CLS]', '[unused0]', 'do', 'gold', '##fish', 'grow', '[SEP]', '[MASK]']
        >>> query.vectors.shape, [round(weight, 1) for weight in query.weights[:8].tolist()]
        ((32, 96), [0.9, 0.9, 1.2, 1.4, 1.6, 1.4, 0.9, 0.9])
        """
        folder = ModelFolder(EMBEDDED if model is None else Path(model))
        try:
            if model is None or folder.settings_file.is_file():
                from colbert_prf.encoder.onnx import OnnxEncoder

                return OnnxEncoder(folder, threads=threads, query_weights=query_weights)
            is_folder = folder.path.is_dir()
        except OSError as error:
            advice = "check the path, and the right to read it"
            raise ModelError(f"{error.filename or model}: cannot be read ({error.strerror}); {advice}") from error
        if not is_folder and not may_be_on_the_hub(os.fspath(model)):
            raise ModelError(
                f"{model}: no such model folder; give a folder, a name on the hub (owner/name), or nothing"
            )
        from colbert_prf.encoder.torch import TorchEncoder

        return TorchEncoder.from_checkpoint(os.fspath(model))

    @property
    def settings(self) -> ModelSettings:
        """The markers, lengths and augmentation of the model."""
        return self.tokenization.settings

    @property
    def dim(self) -> int:
        """Components of a vector."""
        return self.settings.dim

    @property
    def vocabulary_size(self) -> int:
        """One more than the largest token id."""
        return self.tokenization.vocabulary_size

    @cached_property
    def special_ids(self) -> frozenset[int]:
        """Token ids that carry no word: ``[CLS]``, ``[MASK]``, the markers."""
        return self.tokenization.special_ids

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """A hash of weights and settings: equal fingerprints, equal vectors."""

    @property
    def query_fingerprint(self) -> str:
        """A hash that covers the weights of query tokens too: equal hashes, equal encoded queries."""
        return self.fingerprint

    def tokens(self, token_ids: Iterable[int]) -> list[str]:
        """Spell token ids, for people."""
        return self.tokenization.tokens(token_ids)

    def weights_of(self, token_ids: TokenIds) -> Weights:
        """Return the weights of the vectors of a query, 1 on average."""
        if self.query_weights is None or not len(token_ids):
            return np.ones(len(token_ids), dtype=np.float32)
        weights = self.query_weights[token_ids]
        return np.asarray(weights / weights.mean(), dtype=np.float32)

    def encode_query(self, text: str) -> EncodedQuery:
        """Encode one query, padded with augmentation tokens if the model uses them.

        Raises
        ------
        TextError
            If the query is empty.
        """
        return next(self.encode_queries([text]))

    @abstractmethod
    def encode_queries(
        self, texts: Iterable[str], *, progress: Callable[[int], object] | None = None
    ) -> Iterator[EncodedQuery]:
        """Encode queries, in order; see :meth:`encode_documents`."""

    @abstractmethod
    def encode_documents(
        self, texts: Iterable[str], *, progress: Callable[[int], object] | None = None
    ) -> Iterator[EncodedDocument]:
        """Encode a stream of documents, in order.

        A vector depends on its own text alone, not on other texts or the number of threads. An empty text keeps its
        marker tokens; a text longer than ``document_length`` is cut; a lone surrogate counts as U+FFFD.

        Parameters
        ----------
        texts
            Read as needed; they are never all in memory.
        progress
            Called with the number of texts that were just encoded.

        Raises
        ------
        TextError
            If a text is not a string.
        """


def available_cores() -> int:
    """Count the cores that this process may use; in a container they may be fewer than the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def may_be_on_the_hub(model: str) -> bool:
    """Tell whether a name has the form ``owner/name``; for a mistyped folder nobody should ask a network."""
    return not model.startswith((".", "~", os.sep)) and len(Path(model).parts) == 2
