"""Batches: documents side by side in arrays, on their way to or from the disk."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from time import monotonic

import numpy as np
import numpy.typing as npt

from colbert_prf.errors import InputError
from colbert_prf.index.documents import Document
from colbert_prf.index.manifest import Settings
from colbert_prf.storage.arrays import Array

__all__ = ["BATCH_VECTORS", "Batch", "batches_of", "metadata_json"]

BATCH_VECTORS = 1 << 15
"""Vectors that go through the codec together: 16 MB as float32 at dim 128."""
BATCH_SECONDS = 5.0
"""The longest time that a document waits for others, so that a build with a slow model can be resumed."""


@dataclass(frozen=True, eq=False)
class Batch:
    """Documents side by side, their vectors as float16 or as the codec encoded them.

    Parameters
    ----------
    doc_ids
        The id of each document.
    lengths
        The number of vectors of each document, int64.
    token_ids
        The token of each vector, documents one after the other.
    columns
        A row for each vector: ``vectors`` as float16, or the columns of the codec.
    texts
        The text of each document in UTF-8, or None if the index keeps no texts.
    metadata
        The metadata of each document as JSON in UTF-8, empty if it has none.
    """

    doc_ids: list[str]
    lengths: npt.NDArray[np.int64]
    token_ids: Array
    columns: Mapping[str, Array]
    texts: list[bytes] | None
    metadata: list[bytes]

    def __len__(self) -> int:
        return len(self.doc_ids)

    @property
    def num_vectors(self) -> int:
        """The number of vectors of all documents together."""
        return len(self.token_ids)


def batches_of(documents: Iterable[Document], settings: Settings) -> Iterator[Batch]:
    """Check encoded documents and group them into batches of some 32,768 vectors or 5 seconds, rounded to float16.

    Raises
    ------
    InputError
        It names a document that does not fit the index.
    """
    pending: list[Document] = []
    num_vectors, started = 0, monotonic()
    for document in documents:
        check_document(document, settings)
        pending.append(document)
        num_vectors += len(document.encoded)
        is_full = num_vectors >= BATCH_VECTORS or len(pending) >= BATCH_VECTORS
        if is_full or monotonic() - started >= BATCH_SECONDS:
            yield _batch(pending, settings)
            pending, num_vectors, started = [], 0, monotonic()
    if pending:
        yield _batch(pending, settings)


def check_document(document: Document, settings: Settings) -> None:
    """Refuse a document that does not fit the index."""
    if document.encoded.dim != settings.dim:
        raise InputError(
            f"document {document.doc_id!r} has vectors of dim {document.encoded.dim}, the index of dim {settings.dim}; "
            "use one model for all"
        )
    if settings.texts and not isinstance(document.text, str):
        raise InputError(
            f"document {document.doc_id!r} has no text and the index keeps texts; give one, or create it with "
            "texts=False"
        )
    token_ids = document.encoded.token_ids
    if len(token_ids) and not (token_ids.min() >= 0 and token_ids.max() < settings.vocabulary_size):
        raise InputError(
            f"document {document.doc_id!r} has token ids from {token_ids.min()} to {token_ids.max()}, the index a "
            f"vocabulary of {settings.vocabulary_size}; give vocabulary_size when creating it"
        )


def _batch(documents: list[Document], settings: Settings) -> Batch:
    return Batch(
        doc_ids=[document.doc_id for document in documents],
        lengths=np.array([len(document.encoded) for document in documents], dtype=np.int64),
        token_ids=np.concatenate([document.encoded.token_ids for document in documents]),
        columns={"vectors": np.concatenate([document.encoded.vectors for document in documents]).astype(np.float16)},
        texts=[(item.text or "").encode("utf-8", "surrogatepass") for item in documents] if settings.texts else None,
        metadata=[metadata_json(document) for document in documents],
    )


def metadata_json(document: Document) -> bytes:
    """Write the metadata of a document as JSON, empty if it has none.

    Raises
    ------
    InputError
        It says what JSON cannot hold.
    """
    if not document.metadata:
        return b""
    try:
        # ASCII escapes lone surrogates, so that every string reads back as it was.
        return json.dumps(dict(document.metadata), allow_nan=False).encode("ascii")
    except RecursionError as error:
        problem = "is nested too deep to be written as JSON; make it flatter"
        raise InputError(f"the metadata of document {document.doc_id!r} {problem}") from error
    except (TypeError, ValueError) as error:
        problem = f"cannot be written as JSON: {error}"
        raise InputError(f"the metadata of document {document.doc_id!r} {problem}") from error
