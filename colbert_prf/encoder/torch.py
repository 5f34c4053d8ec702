"""Encoders over PyTorch: any checkpoint, on a CPU or a GPU; needs the extra ``[hub]``."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np

from colbert_prf.encoder.base import Encoder
from colbert_prf.encoder.checkpoint import open_checkpoint, tokenization_of
from colbert_prf.encoder.text import valid_document, valid_query
from colbert_prf.types import EncodedDocument, EncodedQuery

if TYPE_CHECKING:
    from sentence_transformers import MultiVectorEncoder

__all__ = ["TorchEncoder"]

Encoded = TypeVar("Encoded", EncodedQuery, EncodedDocument)


class TorchEncoder(Encoder):
    """Encodes batches with ``sentence_transformers.MultiVectorEncoder``.

    Parameters
    ----------
    checkpoint
        An open checkpoint.
    name
        A name for people.
    batch_size
        Texts per forward pass; it changes the speed, but vectors only by 1e-5.
    """

    def __init__(self, checkpoint: MultiVectorEncoder, *, name: str, batch_size: int = 16) -> None:
        self.checkpoint = checkpoint
        self.batch_size = batch_size
        self.tokenization = tokenization_of(checkpoint, name=name)

    @classmethod
    def from_checkpoint(cls, model: str, *, device: str | None = None, batch_size: int = 16) -> TorchEncoder:
        """Open a folder or a name on the hub."""
        return cls(open_checkpoint(model, device=device), name=model, batch_size=batch_size)

    @cached_property
    def fingerprint(self) -> str:
        """A hash of weights and settings: equal fingerprints, equal vectors."""
        digest = hashlib.sha256(self.settings.to_json().encode())
        for name, weight in sorted(self.checkpoint.state_dict().items()):
            digest.update(name.encode())
            digest.update(np.ascontiguousarray(weight.detach().cpu().float().numpy()).data)
        return digest.hexdigest()[:32]

    def encode_queries(
        self, texts: Iterable[str], *, progress: Callable[[int], object] | None = None
    ) -> Iterator[EncodedQuery]:
        """Encode queries, in order; see :meth:`Encoder.encode_documents`."""
        return self._stream(EncodedQuery, "query", texts, progress)

    def encode_documents(
        self, texts: Iterable[str], *, progress: Callable[[int], object] | None = None
    ) -> Iterator[EncodedDocument]:
        """Encode documents, in order; see :meth:`Encoder.encode_documents`."""
        return self._stream(EncodedDocument, "document", texts, progress)

    def _stream(
        self,
        wrap: type[Encoded],
        task: Literal["query", "document"],
        texts: Iterable[str],
        progress: Callable[[int], object] | None,
    ) -> Iterator[Encoded]:
        encode, valid = {
            "query": (self.checkpoint.encode_query, valid_query),
            "document": (self.checkpoint.encode_document, valid_document),
        }[task]
        remaining = iter(texts)
        # Sixteen batches at a time, so that texts of similar length share a batch.
        while chunk := [valid(text) for text in islice(remaining, 16 * self.batch_size)]:
            encoded: Any = encode(chunk, batch_size=self.batch_size, output_value=None, show_progress_bar=False)
            for features in encoded:
                mask = features["attention_mask"].bool()
                vectors = features["token_embeddings"][mask].float().cpu().numpy()
                yield wrap(features["input_ids"][mask].cpu().numpy().astype(np.int32), np.ascontiguousarray(vectors))
            if progress is not None:
                progress(len(chunk))
