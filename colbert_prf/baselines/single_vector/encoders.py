"""A text as one vector: the mean of ColBERT's, or what a bi-encoder makes of it."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import numpy as np

from colbert_prf.encoder import Encoder
from colbert_prf.encoder.text_network import TextNetwork
from colbert_prf.errors import InputError, MissingExtraError, ModelError
from colbert_prf.types import Vectors

__all__ = ["BiEncoder", "MeanEncoder", "Pooling", "VectorEncoder", "mean_vectors"]

Pooling = Literal["cls", "mean"]

BATCH = 256


class VectorEncoder(ABC):
    """Texts in, a vector for each out; two vectors are compared by their inner product."""

    @staticmethod
    def load(
        model: str | os.PathLike[str],
        *,
        pooling: Pooling | None = None,
        query_prefix: str | None = None,
        document_prefix: str | None = None,
        normalise: bool | None = None,
        max_length: int | None = None,
        threads: int | None = None,
    ) -> VectorEncoder:
        """Open a text encoder.

        Parameters
        ----------
        model
            A folder with ``tokenizer.json``, and ``model.onnx`` or ``onnx/model.onnx``, such as optimum exports; or,
            with the extra ``[hub]``, any bi-encoder of sentence-transformers: see :class:`BiEncoder`.
        pooling, query_prefix, document_prefix, normalise, max_length, threads
            Of an ONNX network, what its folder does not say or says otherwise: see
            :class:`~colbert_prf.baselines.single_vector.onnx_encoder.OnnxVectorEncoder`.

        Raises
        ------
        ModelError
            If there is no such model, or it is damaged or of another kind.
        InputError
            If settings of an ONNX network are given for a bi-encoder, which has its own.
        MissingExtraError
            If it needs PyTorch and the extra is not installed.

        Examples
        --------
        bge-small-en-v1.5, from a folder that does not say how it pools::

            prefix = "Represent this sentence for searching relevant passages: "
            VectorEncoder.load("models/bge-small-en-v1.5", pooling="cls", query_prefix=prefix)
        """
        from colbert_prf.baselines.single_vector.onnx_encoder import OnnxVectorEncoder, further_layers

        settings = {
            "pooling": pooling,
            "query_prefix": query_prefix,
            "document_prefix": document_prefix,
            "normalise": normalise,
            "max_length": max_length,
            "threads": threads,
        }
        given: dict[str, Any] = {name: value for name, value in settings.items() if value is not None}
        if TextNetwork.is_in(model) and not further_layers(Path(model)):
            return OnnxVectorEncoder(model, **given)
        if given:
            raise InputError(
                f"{', '.join(given)}: for a folder with an ONNX network, which {os.fspath(model)} is not; leave them "
                "out for a bi-encoder of sentence-transformers, or give a folder with model.onnx"
            )
        return BiEncoder(os.fspath(model))

    @property
    @abstractmethod
    def name(self) -> str:
        """What an index remembers of the model, to refuse another."""

    @abstractmethod
    def encode_query(self, text: str) -> Vectors:
        """The vector of a query, of shape (dim,)."""

    @abstractmethod
    def encode_documents(
        self, texts: Iterable[str], *, progress: Callable[[int], object] | None = None
    ) -> Iterator[Vectors]:
        """The vectors of documents, in their order and in pieces of shape (n, dim)."""


class MeanEncoder(VectorEncoder):
    """The mean of the vectors ColBERT makes of a text, at unit length.

    Parameters
    ----------
    encoder
        The embedded model if left out.

    Examples
    --------
    >>> vectors = next(MeanEncoder().encode_documents(["Goldfish grow.", "Bank rates fell."]))
    >>> vectors.shape
    (2, 96)
    """

    def __init__(self, encoder: Encoder | None = None) -> None:
        self.encoder = encoder or Encoder.load()

    @property
    def name(self) -> str:
        """The fingerprint of the ColBERT model."""
        return f"mean of {self.encoder.fingerprint}"

    def encode_query(self, text: str) -> Vectors:
        """The mean of the query's vectors."""
        return np.asarray(mean_vectors([self.encoder.encode_query(text).vectors], self.encoder.dim)[0])

    def encode_documents(
        self, texts: Iterable[str], *, progress: Callable[[int], object] | None = None
    ) -> Iterator[Vectors]:
        """The means of the documents' vectors."""
        encoded = self.encoder.encode_documents(texts, progress=progress)
        while batch := list(islice(encoded, BATCH)):
            yield mean_vectors([document.vectors for document in batch], self.encoder.dim)


class BiEncoder(VectorEncoder):
    """Any bi-encoder of sentence-transformers, such as ANCE; needs the extra ``[hub]``.

    Parameters
    ----------
    model
        A folder, a name on the hub such as ``sentence-transformers/msmarco-roberta-base-ance-firstp``, or a
        ``SentenceTransformer``. One made for cosine similarity gives vectors of unit length; one made for the inner
        product keeps their lengths.
    """

    def __init__(self, model: Any) -> None:
        try:
            from sentence_transformers import SentenceTransformer
        except ImportError as error:
            raise MissingExtraError("A bi-encoder", extra="hub") from error
        self._name = model if isinstance(model, str) else type(model).__name__
        if isinstance(model, str):
            try:
                model = SentenceTransformer(model, device="cpu")
            except (OSError, ValueError) as error:
                raise ModelError(f"{self._name}: no bi-encoder that sentence-transformers opens ({error})") from error
        self.model = model
        self._unit = str(getattr(model, "similarity_fn_name", "cosine")) == "cosine"

    @property
    def name(self) -> str:
        """The name it was opened by."""
        return self._name

    def encode_query(self, text: str) -> Vectors:
        """The vector of a query, with the model's prompt for queries if it has one."""
        return np.asarray(self._encoded(self.model.encode_query, [text])[0])

    def encode_documents(
        self, texts: Iterable[str], *, progress: Callable[[int], object] | None = None
    ) -> Iterator[Vectors]:
        """The vectors of documents, with the model's prompt for documents if it has one."""
        stream = iter(texts)
        while batch := list(islice(stream, BATCH)):
            yield self._encoded(self.model.encode_document, batch)
            if progress is not None:
                progress(len(batch))

    def _encoded(self, encode: Callable[..., Any], texts: list[str]) -> Vectors:
        vectors = encode(texts, show_progress_bar=False, normalize_embeddings=self._unit, convert_to_numpy=True)
        return np.asarray(vectors, dtype=np.float32)


def mean_vectors(texts: Sequence[Vectors], dim: int) -> Vectors:
    """The mean of the vectors of each text, at unit length, of shape (len(texts), dim); zeros for one without vectors.

    Examples
    --------
    >>> mean_vectors([np.eye(2, dtype=np.float32), np.empty((0, 2), np.float32)], 2).round(2).tolist()
    [[0.7099999785423279, 0.7099999785423279], [0.0, 0.0]]
    """
    means = np.zeros((len(texts), dim), dtype=np.float32)
    for row, vectors in enumerate(texts):
        if len(vectors):
            means[row] = vectors.mean(axis=0)
    lengths = np.linalg.norm(means, axis=1, keepdims=True)
    return np.asarray(np.divide(means, lengths, out=means, where=lengths > 0))
