"""Some documents on their way to or from the disk, side by side in arrays."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from time import monotonic

import numpy as np
import numpy.typing as npt

from colbert_prf.errors import InputError
from colbert_prf.index.manifest import Settings
from colbert_prf.index.records import Record
from colbert_prf.storage.arrays import Array

__all__ = ["BATCH_VECTORS", "Batch", "batches_of"]

BATCH_VECTORS = 1 << 15
"""Vectors that go through the codec together: 16 MB as float32 at dim 128."""
BATCH_SECONDS = 5.0
"""Documents do not wait longer than this for others: a slow model must not keep a build from being resumed."""


@dataclass(frozen=True, eq=False)
class Batch:
    """Documents side by side.

    Parameters
    ----------
    doc_ids
        One for each document.
    lengths
        Vectors of each document, int64.
    token_ids
        The token of each vector, documents one after the other.
    columns
        For each vector a row: ``vectors`` as float16, or what the codec made of them.
    texts
        UTF-8, one for each document, or None where texts are not kept.
    metadata
        JSON in UTF-8, one for each document, empty where there is none.
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
        """Vectors of all documents together."""
        return len(self.token_ids)


def batches_of(records: Iterable[Record], settings: Settings) -> Iterator[Batch]:
    """Check records and put them side by side, vectors rounded to float16, some 32,768 vectors or 5 seconds at a time.

    Raises
    ------
    InputError
        Naming the document, if it does not fit the index.
    """
    waiting: list[Record] = []
    num_vectors, started = 0, monotonic()
    for record in records:
        check_record(record, settings)
        waiting.append(record)
        num_vectors += len(record.encoded)
        full = num_vectors >= BATCH_VECTORS or len(waiting) >= BATCH_VECTORS
        if full or monotonic() - started >= BATCH_SECONDS:
            yield _batch(waiting, settings)
            waiting, num_vectors, started = [], 0, monotonic()
    if waiting:
        yield _batch(waiting, settings)


def check_record(record: Record, settings: Settings) -> None:
    """Refuse a document that does not fit the index."""
    if record.encoded.dim != settings.dim:
        raise InputError(
            f"document {record.doc_id!r} has vectors of dim {record.encoded.dim}, the index of dim {settings.dim}; use "
            "one model for all"
        )
    if settings.texts and not isinstance(record.text, str):
        raise InputError(
            f"document {record.doc_id!r} has no text and the index keeps texts; give one, or create it with texts=False"
        )
    ids = record.encoded.token_ids
    if len(ids) and not (ids.min() >= 0 and ids.max() < settings.vocabulary_size):
        raise InputError(
            f"document {record.doc_id!r} has token ids from {ids.min()} to {ids.max()}, the index a vocabulary of "
            f"{settings.vocabulary_size}; give vocabulary_size when creating it"
        )


def _batch(records: list[Record], settings: Settings) -> Batch:
    return Batch(
        doc_ids=[record.doc_id for record in records],
        lengths=np.array([len(record.encoded) for record in records], dtype=np.int64),
        token_ids=np.concatenate([record.encoded.token_ids for record in records]),
        columns={"vectors": np.concatenate([record.encoded.vectors for record in records]).astype(np.float16)},
        texts=[(record.text or "").encode("utf-8", "surrogatepass") for record in records] if settings.texts else None,
        metadata=[_metadata(record) for record in records],
    )


def _metadata(record: Record) -> bytes:
    if not record.metadata:
        return b""
    try:
        # ASCII, so that a lone surrogate is escaped and every string comes back as it was.
        return json.dumps(dict(record.metadata), allow_nan=False).encode("ascii")
    except RecursionError as error:
        message = (
            f"the metadata of document {record.doc_id!r} is nested too deep to be written as JSON; make it flatter"
        )
        raise InputError(message) from error
    except (TypeError, ValueError) as error:
        raise InputError(f"the metadata of document {record.doc_id!r} cannot be written as JSON: {error}") from error
