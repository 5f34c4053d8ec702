"""Models that weigh words: a regression over ColBERT's token vectors, and DeepCT's published ones."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from colbert_prf.baselines.lexical.analysis import Analyzer
from colbert_prf.baselines.lexical.term_weights import (
    SCALE,
    TermWeigher,
    query_term_recall,
    scaled_frequencies,
    words_of,
)
from colbert_prf.encoder import Encoder
from colbert_prf.errors import InputError, MissingExtraError, ModelError
from colbert_prf.index import Index
from colbert_prf.storage.durable import write_atomically
from colbert_prf.types import TokenIds, Vectors

__all__ = ["TermRegression", "TorchTermWeigher"]

KIND = "colbert-prf term regression"
MAX_TOKENS = 512


class TermRegression(TermWeigher):
    """A linear function of a word's vector in its context, as ColBERT's encoder makes it.

    DeepCT trains BERT together with such a function; here the encoder stays as it is, so that training takes one pass
    over the texts and no PyTorch. A word has the vector of its first token. The encoder must have a WordPiece
    vocabulary, in which a token inside a word begins with ``##``.

    Parameters
    ----------
    encoder
        What makes the vectors.
    coefficients
        Of shape (dim,).
    intercept
        The weight of a vector of zeros.
    """

    def __init__(self, encoder: Encoder, coefficients: npt.NDArray[np.float64], intercept: float) -> None:
        if coefficients.shape != (encoder.dim,):
            raise ModelError(f"the regression is for vectors of dim {len(coefficients)}, the model's are {encoder.dim}")
        self.encoder = encoder
        self.coefficients = coefficients
        self.intercept = intercept

    @classmethod
    def train(
        cls,
        examples: Iterable[tuple[str, Sequence[str]]],
        *,
        encoder: Encoder | None = None,
        analyzer: Analyzer | None = None,
        ridge: float = 1.0,
        progress: Callable[[int], object] | None = None,
    ) -> TermRegression:
        """Fit the shares of queries that have a word (:func:`query_term_recall`) by least squares.

        Parameters
        ----------
        examples
            Passages, each with queries it is relevant to.
        encoder
            The embedded model if left out.
        analyzer
            What makes terms of words.
        ridge
            How much large coefficients cost.
        progress
            Called with the number of passages just finished.

        Raises
        ------
        InputError
            If there is no word to learn from.
        """
        encoder, analyzer = encoder or Encoder.load(), analyzer or Analyzer()
        squares = np.zeros((encoder.dim + 1, encoder.dim + 1))
        products = np.zeros(encoder.dim + 1)
        stream = iter(examples)
        while batch := list(islice(stream, 256)):
            encoded = encoder.encode_documents((text for text, _ in batch), progress=progress)
            for (text, queries), document in zip(batch, encoded, strict=True):
                targets = query_term_recall(text, queries, analyzer)
                words = [(analyzer.term(word), place) for word, place in _words(encoder, document.token_ids)]
                known = [(targets[term], place) for term, place in words if term in targets]
                vectors = document.vectors[[place for _, place in known]].astype(np.float64)
                rows = np.concatenate([vectors, np.ones((len(known), 1))], axis=1)
                squares += rows.T @ rows
                products += rows.T @ np.array([target for target, _ in known], dtype=np.float64)
        if squares[-1, -1] == 0:
            raise InputError("there is no word to learn from; give passages with queries they are relevant to")
        penalty = ridge * np.eye(len(products))
        penalty[-1, -1] = 0.0
        solution = np.asarray(np.linalg.solve(squares + penalty, products), dtype=np.float64)
        return cls(encoder, solution[:-1], float(solution[-1]))

    def weights(
        self, texts: Iterable[str], *, progress: Callable[[int], object] | None = None
    ) -> Iterator[list[tuple[str, float]]]:
        """The words of each text with their weights; those past the encoder's length are left out."""
        for document in self.encoder.encode_documents(texts, progress=progress):
            yield self._weigh(document.token_ids, document.vectors)

    def indexed_documents(
        self,
        index: Index,
        *,
        analyzer: Analyzer | None = None,
        scale: float = SCALE,
        progress: Callable[[int], object] | None = None,
    ) -> Iterator[tuple[str, Mapping[str, int], str]]:
        """The documents of a ColBERT index with learned weights, from the vectors it has: nothing is encoded.

        Parameters
        ----------
        index
            Made with the same encoder; with few bits the weights are a little off.
        analyzer, scale, progress
            As of :func:`weighted_documents`, which encodes the texts of documents.

        Yields
        ------
        doc_id, frequencies, text
            For :meth:`LexicalIndex.create_from_terms`; the text is empty where the index keeps none.
        """
        snapshot, analyzer = index.snapshot, analyzer or Analyzer()
        if snapshot.manifest.settings.model.fingerprint not in (None, self.encoder.fingerprint):
            raise ModelError("the index was made with another encoder than the term regression; give one of the same")
        for position in np.flatnonzero(snapshot.live).tolist():
            weights = self._weigh(snapshot.token_ids(position), snapshot.vectors(position))
            frequencies = scaled_frequencies(weights, analyzer, scale=scale)
            yield snapshot.doc_id(position), frequencies, snapshot.text(position) or ""
            if progress is not None:
                progress(1)

    def _weigh(self, token_ids: TokenIds, vectors: Vectors) -> list[tuple[str, float]]:
        values = vectors @ self.coefficients + self.intercept
        return [(word, float(values[place])) for word, place in _words(self.encoder, token_ids)]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it as JSON; the encoder is named, not kept."""
        content = {
            "kind": KIND,
            "fingerprint": self.encoder.fingerprint,
            "intercept": self.intercept,
            "coefficients": self.coefficients.tolist(),
        }
        write_atomically(Path(path), json.dumps(content).encode())

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, encoder: Encoder | None = None) -> TermRegression:
        """Read what :meth:`save` wrote.

        Raises
        ------
        ModelError
            If the file is damaged or foreign, or was made with another encoder.
        """
        encoder = encoder or Encoder.load()
        try:
            content = json.loads(Path(path).read_text(encoding="utf-8"))
            if content["kind"] != KIND:
                raise ValueError(f"it is a {content['kind']}")
            coefficients, intercept = np.array(content["coefficients"], dtype=np.float64), float(content["intercept"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ModelError(f"{os.fspath(path)}: no term regression ({error})") from error
        if content.get("fingerprint") != encoder.fingerprint:
            raise ModelError(f"{os.fspath(path)}: made with another encoder; give that one, or train again")
        return cls(encoder, coefficients, intercept)


class TorchTermWeigher(TermWeigher):
    """DeepCT as it was published: BERT with one output per token; needs the extra ``[hub]``.

    Parameters
    ----------
    model
        A folder or a name on the hub of a token classifier with one label, such as ``macavaney/deepct``.
    batch_size
        Texts per forward pass.
    """

    def __init__(self, model: str, *, batch_size: int = 16) -> None:
        try:
            from transformers import AutoModelForTokenClassification, AutoTokenizer
        except ImportError as error:
            raise MissingExtraError("A published DeepCT model", extra="hub") from error
        try:
            self.tokenizer: Any = AutoTokenizer.from_pretrained(model)
            self.model: Any = AutoModelForTokenClassification.from_pretrained(model).eval()
        except (OSError, ValueError) as error:
            raise ModelError(f"{model}: no token classifier that transformers opens ({error})") from error
        if self.model.config.num_labels != 1:
            raise ModelError(
                f"{model}: a term weigher has one output per token, this has {self.model.config.num_labels}"
            )
        self.batch_size = batch_size

    def weights(
        self, texts: Iterable[str], *, progress: Callable[[int], object] | None = None
    ) -> Iterator[list[tuple[str, float]]]:
        """The words of each text with the weights of their first tokens; at most 512 tokens are read."""
        import torch

        stream = iter(texts)
        while batch := list(islice(stream, self.batch_size)):
            longest = min(MAX_TOKENS, int(self.model.config.max_position_embeddings))
            given = self.tokenizer(batch, padding=True, truncation=True, max_length=longest, return_tensors="pt")
            with torch.inference_mode():
                values = self.model(**given).logits[..., 0].numpy()
            for row, value in zip(given["input_ids"].tolist(), values, strict=True):
                tokens = self.tokenizer.convert_ids_to_tokens(row)
                special = set(self.tokenizer.all_special_tokens)
                yield [(word, float(value[place])) for word, place in words_of(tokens) if word not in special]
            if progress is not None:
                progress(len(batch))


def _words(encoder: Encoder, token_ids: TokenIds) -> list[tuple[str, int]]:
    """The words of a document with the places of their vectors; special tokens are left out."""
    words = words_of(encoder.tokens(token_ids))
    return [(word, place) for word, place in words if int(token_ids[place]) not in encoder.special_ids]
