"""Encoded documents held in memory and scored exactly: the definition every other index is tested against."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import tee
from typing import Any

import numpy as np
import numpy.typing as npt

from colbert_prf.encoder import Encoder
from colbert_prf.errors import InputError
from colbert_prf.index.collection import DocumentVectors, NearTokens
from colbert_prf.index.records import Documents, text_records
from colbert_prf.kernels.maxsim import maxsim
from colbert_prf.kernels.neighbours import nearest_rows
from colbert_prf.progress import progress_bar
from colbert_prf.storage.arrays import rows_of
from colbert_prf.storage.fields import Fields
from colbert_prf.types import EncodedDocument, EncodedQuery, Vectors

__all__ = ["MemoryIndex"]


class MemoryIndex:
    """Documents as float32 vectors in memory; right for tests, for demonstrations, and up to some 10,000 passages.

    Parameters
    ----------
    doc_ids
        One per document, each different.
    documents
        Their vectors, all of the same dim.
    texts
        Their texts, if hits should carry them.
    metadata
        What filters look at: a mapping for each document, empty where it has none.
    encoder
        What encodes a query given as text.

    Examples
    --------
    >>> index = MemoryIndex.create([("a", "Goldfish grow all their life."), ("b", "Bank rates fell.")])
    >>> index.num_documents, index.dim
    (2, 96)
    """

    def __init__(
        self,
        doc_ids: Sequence[str],
        documents: Sequence[EncodedDocument],
        *,
        texts: Sequence[str] | None = None,
        metadata: Sequence[Mapping[str, Any]] | None = None,
        encoder: Encoder | None = None,
    ) -> None:
        _check(doc_ids, documents, texts)
        if metadata is not None and len(metadata) != len(documents):
            raise InputError(f"found the metadata of {len(metadata)} documents for {len(documents)}; give one for each")
        self._metadata = [dict(item) for item in metadata] if metadata is not None else None
        self.doc_ids = list(doc_ids)
        self.texts = list(texts) if texts is not None else None
        self.encoder = encoder
        self.offsets = np.cumsum([0, *map(len, documents)], dtype=np.int64)
        self.token_ids = np.concatenate([document.token_ids for document in documents])
        self.vectors = np.concatenate([document.vectors for document in documents])

    @classmethod
    def create(cls, documents: Documents, *, encoder: Encoder | None = None, progress: bool = True) -> MemoryIndex:
        """Encode documents, showing a progress bar on a terminal.

        Parameters
        ----------
        documents
            Tuples (doc_id, text) or (doc_id, text, metadata).
        encoder
            The embedded model if left out.
        progress
            Whether a bar may be shown.
        """
        encoder = encoder or Encoder.load()
        records = list(text_records(documents))
        texts = [record.text or "" for record in records]
        with progress_bar("Encoding", total=len(records), shown=progress) as advance:
            encoded = list(encoder.encode_documents(texts, progress=advance))
        metadata = [record.metadata or {} for record in records]
        return cls([record.doc_id for record in records], encoded, texts=texts, metadata=metadata, encoder=encoder)

    @classmethod
    def create_from_vectors(
        cls, encoded: Iterable[tuple[str, EncodedDocument]], *, encoder: Encoder | None = None
    ) -> MemoryIndex:
        """Take vectors made elsewhere, as pairs of id and encoded document."""
        first, second = tee(encoded)
        return cls([doc_id for doc_id, _ in first], [document for _, document in second], encoder=encoder)

    @property
    def num_documents(self) -> int:
        """How many documents there are."""
        return len(self.doc_ids)

    @property
    def num_vectors(self) -> int:
        """How many vectors they have together."""
        return len(self.vectors)

    @property
    def dim(self) -> int:
        """Components of a vector."""
        return int(self.vectors.shape[1])

    @property
    def num_positions(self) -> int:
        """As many as there are documents."""
        return len(self.doc_ids)

    @property
    def on_disk(self) -> None:
        """Nothing of it is."""
        return

    @property
    def snapshot(self) -> MemoryIndex:
        """Itself: an index in memory never changes."""
        return self

    @property
    def special_ids(self) -> frozenset[int]:
        """Tokens that are no words, if the encoder is known."""
        return self.encoder.special_ids if self.encoder else frozenset()

    @property
    def live(self) -> npt.NDArray[np.bool_]:
        """All documents are, of shape (num_positions,)."""
        return np.ones(self.num_positions, np.bool_)

    @cached_property
    def document_frequencies(self) -> npt.NDArray[np.int64]:
        """In how many documents each token is, of shape (largest token + 1,)."""
        documents = np.repeat(np.arange(self.num_positions), np.diff(self.offsets))
        size = int(self.token_ids.max(initial=0)) + 1
        return np.bincount(np.unique(documents * size + self.token_ids) % size, minlength=size)

    @cached_property
    def collection_frequencies(self) -> npt.NDArray[np.int64]:
        """How often each token occurs, of shape (largest token + 1,)."""
        return np.bincount(self.token_ids)

    def find(self, doc_id: str) -> int | None:
        """The position of a document, if it is there."""
        return self.doc_ids.index(doc_id) if doc_id in self.doc_ids else None

    def positions(self, doc_ids: Iterable[str]) -> npt.NDArray[np.int64]:
        """The positions of documents; an unknown id is an :class:`InputError` that names it."""
        known = {doc_id: position for position, doc_id in enumerate(self.doc_ids)}
        wanted = list(doc_ids)
        if unknown := [doc_id for doc_id in wanted if doc_id not in known]:
            raise InputError(f"the index has no document {unknown[0]!r}")
        return np.array([known[doc_id] for doc_id in wanted], dtype=np.int64)

    def doc_id(self, position: int) -> str:
        """The id of a document."""
        return self.doc_ids[position]

    def doc_ids_of(self, positions: npt.NDArray[np.int64]) -> list[str]:
        """The ids of some documents."""
        return [self.doc_ids[position] for position in positions.tolist()]

    def text(self, document: str | int) -> str | None:
        """The text of a document, by its id or position, where texts are kept."""
        position = int(self.positions([document])[0]) if isinstance(document, str) else document
        return self.texts[position] if self.texts else None

    def metadata(self, document: str | int) -> dict[str, Any]:
        """The metadata of a document, by its id or position; empty where it has none."""
        position = int(self.positions([document])[0]) if isinstance(document, str) else document
        return self._metadata[position] if self._metadata else {}

    @cached_property
    def fields(self) -> list[Fields]:
        """The metadata as columns: those of one segment."""
        return [Fields.of(self._metadata or ({} for _ in self.doc_ids))]

    @property
    def passages(self) -> None:
        """Texts in memory are never split."""
        return

    def lengths(self, positions: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """How many vectors some documents have."""
        return np.asarray(self.offsets[positions + 1] - self.offsets[positions])

    def vectors_of(self, positions: npt.NDArray[np.int64]) -> DocumentVectors:
        """The vectors and tokens of some documents."""
        lengths, starts = self.lengths(positions), self.offsets[positions]
        rows, documents = rows_of(starts, lengths), np.repeat(np.arange(len(positions)), lengths)
        codes = np.full(len(rows), -1)
        return DocumentVectors(
            positions, self.vectors[rows], self.token_ids[rows], documents, rows - starts[documents], codes
        )

    def nearest_tokens(self, vectors: Vectors, count: int) -> NearTokens:
        """The tokens of the ``count`` document vectors nearest to each vector: F_t(υ, r), comparing with all."""
        rows, similarities = nearest_rows(vectors, self.vectors, count)
        return NearTokens(np.where(rows < 0, -1, self.token_ids[rows]).astype(np.int32), similarities)

    def similarities(self, position: int, query: EncodedQuery) -> Vectors:
        """The products of a document's vectors with those of a query."""
        return self.vectors[self.offsets[position] : self.offsets[position + 1]] @ query.vectors.T

    def score(self, query: EncodedQuery) -> npt.NDArray[np.float32]:
        """Score every document, of shape (num_documents,); one without vectors scores minus infinity."""
        return maxsim(query.vectors, query.weights, self.vectors, self.offsets)


def _check(doc_ids: Sequence[str], documents: Sequence[EncodedDocument], texts: Sequence[str] | None) -> None:
    if not documents:
        raise InputError("an index needs at least one document, found none")
    if len(doc_ids) != len(documents) or (texts is not None and len(texts) != len(documents)):
        raise InputError(
            f"an index needs one id per document, found {len(doc_ids)} ids, {len(documents)} documents"
            + (f" and {len(texts)} texts" if texts is not None else "")
        )
    seen: set[str] = set()
    for doc_id in doc_ids:
        if doc_id in seen:
            raise InputError(f"the document id {doc_id!r} was given twice; ids must differ")
        seen.add(doc_id)
    if len(dims := {document.dim for document in documents}) > 1:
        raise InputError(f"all documents must have vectors of one dim, found {sorted(dims)}; use one model for all")
