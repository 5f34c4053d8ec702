"""The default encoder, which needs only ONNX Runtime and tokenizers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from colbert_prf.encoder.base import Encoder, available_cores
from colbert_prf.encoder.folder import ModelFolder
from colbert_prf.encoder.ordered import ordered_map
from colbert_prf.encoder.session import open_session
from colbert_prf.encoder.tokenization import Tokenization, Tokenized
from colbert_prf.errors import ModelError, require_positive
from colbert_prf.types import EncodedDocument, EncodedQuery, TokenIds, Vectors

__all__ = ["OnnxEncoder"]

INPUTS, OUTPUTS = {"input_ids", "attention_mask"}, {"vectors"}
UNIT_TOLERANCE = 0.01

Encoded = TypeVar("Encoded", EncodedQuery, EncodedDocument)


class OnnxEncoder(Encoder):
    """Encodes one text per run, each run in one thread, with ``threads`` runs at once.

    Texts are not padded, so none costs more because of a longer one; int8 scales come from one text, so a vector does
    not depend on a batch; and on a CPU this is faster than batches.

    Parameters
    ----------
    folder
        A folder that ``colbert-prf export`` wrote.
    threads
        The number of texts encoded at once; the number of cores if left out.
    query_weights
        Whether to weigh the vectors of a query if the folder has weights.
    """

    def __init__(self, folder: ModelFolder, *, threads: int | None = None, query_weights: bool = True) -> None:
        require_positive(threads=threads)
        self.folder = folder.check()
        self.threads = threads or available_cores()
        self.tokenization = Tokenization.from_file(folder.tokenizer_file, folder.read_settings())
        if query_weights:
            self.query_weights = folder.read_query_weights(self.vocabulary_size)
        self._session = open_session(folder.network_file)
        self._check_network()

    @cached_property
    def fingerprint(self) -> str:
        """A hash of weights and settings: equal fingerprints, equal vectors."""
        return self.folder.fingerprint()

    @cached_property
    def query_fingerprint(self) -> str:
        """A hash that covers the weights of query tokens too: equal hashes, equal encoded queries."""
        return self.fingerprint if self.query_weights is None else self.folder.query_fingerprint()

    def encode_queries(
        self, texts: Iterable[str], *, progress: Callable[[int], object] | None = None
    ) -> Iterator[EncodedQuery]:
        """Encode queries, in order; see :meth:`Encoder.encode_documents`."""
        return self._stream(self._query, texts, progress)

    def encode_documents(
        self, texts: Iterable[str], *, progress: Callable[[int], object] | None = None
    ) -> Iterator[EncodedDocument]:
        """Encode documents, in order; see :meth:`Encoder.encode_documents`."""
        return self._stream(self._document, texts, progress)

    def _stream(
        self, encode: Callable[[str], Encoded], texts: Iterable[str], progress: Callable[[int], object] | None
    ) -> Iterator[Encoded]:
        for encoded in ordered_map(encode, texts, threads=self.threads):
            if progress is not None:
                progress(1)
            yield encoded

    def _query(self, text: str) -> EncodedQuery:
        token_ids, vectors = self._encode(self.tokenization.query(text))
        return EncodedQuery(token_ids, vectors, self.weights_of(token_ids))

    def _document(self, text: str) -> EncodedDocument:
        return EncodedDocument(*self._encode(self.tokenization.document(text)))

    def _encode(self, tokenized: Tokenized) -> tuple[TokenIds, Vectors]:
        ids, attention, has_vector = tokenized
        return ids[has_vector].astype(np.int32), np.ascontiguousarray(self._run(ids, attention)[has_vector])

    def _check_network(self) -> None:
        """Run the network on the largest token id, to check that it fits the tokenizer and the settings."""
        file, settings = self.folder.network_file, self.tokenization.settings
        names = {item.name for item in self._session.get_inputs()}, {item.name for item in self._session.get_outputs()}
        if names != (INPUTS, OUTPUTS):
            signature = " -> ".join(", ".join(sorted(part)) for part in names)
            raise ModelError(
                f"{file}: a ColBERT network is attention_mask, input_ids -> vectors, found {signature}; export the "
                "checkpoint with `colbert-prf export`"
            )
        largest = self.vocabulary_size - 1
        try:
            vectors = self._run(np.array([largest]), np.array([1]))
        except Exception as error:  # ONNX Runtime's exceptions share no base but Exception
            raise ModelError(
                f"{self.folder.tokenizer_file}: its largest token id is {largest}, which {file.name} does not know: "
                "tokenizer and network are of two models; export the checkpoint again"
            ) from error
        length = float(np.linalg.norm(vectors[0]))
        if vectors.shape[1] != settings.dim or abs(length - 1) > UNIT_TOLERANCE:
            raise ModelError(
                f"{file}: vectors must have {settings.dim} dimensions and unit length, found {vectors.shape[1]} and "
                f"{length:.3g}: the projection of the settings is not in it; export the checkpoint again"
            )

    def _run(self, token_ids: npt.NDArray[np.int64], attention: npt.NDArray[np.int64]) -> Vectors:
        (vectors,) = self._session.run(["vectors"], {"input_ids": token_ids[None], "attention_mask": attention[None]})
        return np.asarray(vectors[0], dtype=np.float32)
