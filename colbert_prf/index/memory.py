"""An index in memory, with exact scores: the definition that every other index is tested against."""

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
from colbert_prf.index.documents import Document, TextDocuments, documents_of_texts, documents_of_vectors
from colbert_prf.kernels.maxsim import maxsim
from colbert_prf.progress import progress_bar
from colbert_prf.storage.arrays import expand_ranges
from colbert_prf.storage.fields import Fields
from colbert_prf.storage.snapshot import position_below, positions_of
from colbert_prf.storage.store import IdCheck
from colbert_prf.types import EncodedDocument, EncodedQuery, Vectors
from colbert_prf.types.encoded import check_query

__all__ = ["MemoryIndex"]


class MemoryIndex:
    """Documents as float32 vectors in memory: for tests, for demonstrations, and for up to some 10,000 passages.

    Parameters
    ----------
    doc_ids
        The id of each document, all different.
    documents
        The vectors of each document, all of the same dim.
    texts
        The text of each document, if hits should have texts.
    metadata
        The metadata of each document, for filters: a mapping, empty if the document has none.
    encoder
        Encodes queries that are given as text.

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
        checked = _checked(doc_ids, documents, texts, metadata)
        self._metadata = [dict(document.metadata or {}) for document in checked] if metadata is not None else None
        self.doc_ids = [document.doc_id for document in checked]
        self.texts = list(texts) if texts is not None else None
        self.encoder = encoder
        self.offsets = np.cumsum([0, *map(len, documents)], dtype=np.int64)
        self.token_ids = np.concatenate([document.token_ids for document in documents])
        self.vectors = np.concatenate([document.vectors for document in documents])

    @classmethod
    def create(cls, documents: TextDocuments, *, encoder: Encoder | None = None, progress: bool = True) -> MemoryIndex:
        """Encode documents, with a progress bar on a terminal.

        Parameters
        ----------
        documents
            Tuples (doc_id, text) or (doc_id, text, metadata).
        encoder
            The embedded model if left out.
        progress
            Whether a progress bar may be shown.
        """
        encoder = encoder or Encoder.load()
        checked = list(documents_of_texts(documents))
        texts = [document.text or "" for document in checked]
        with progress_bar("Encoding", total=len(checked), shown=progress) as advance:
            encoded = list(encoder.encode_documents(texts, progress=advance))
        metadata = [document.metadata or {} for document in checked]
        doc_ids = [document.doc_id for document in checked]
        return cls(doc_ids, encoded, texts=texts, metadata=metadata, encoder=encoder)

    @classmethod
    def create_from_vectors(
        cls, encoded: Iterable[tuple[str, EncodedDocument]], *, encoder: Encoder | None = None
    ) -> MemoryIndex:
        """Make an index of vectors that were made elsewhere, given as pairs of id and encoded document."""
        if not isinstance(encoded, Iterable):
            raise InputError(f"give pairs (doc_id, EncodedDocument), found {encoded!r:.80}")
        ids, documents = tee(encoded)
        return cls([doc_id for doc_id, _ in ids], [document for _, document in documents], encoder=encoder)

    @property
    def num_documents(self) -> int:
        """The number of documents: N."""
        return len(self.doc_ids)

    @property
    def num_vectors(self) -> int:
        """The number of vectors of all documents together."""
        return len(self.vectors)

    @property
    def dim(self) -> int:
        """Components of a vector."""
        return int(self.vectors.shape[1])

    @property
    def num_positions(self) -> int:
        """The number of positions, which is that of documents."""
        return len(self.doc_ids)

    @property
    def on_disk(self) -> None:
        """None: the index is in memory."""
        return

    @property
    def local(self) -> None:
        """None: there are no segments."""
        return

    @property
    def snapshot(self) -> MemoryIndex:
        """The index itself, because it never changes."""
        return self

    @property
    def special_ids(self) -> frozenset[int]:
        """Token ids that carry no word, if the encoder is known."""
        return self.encoder.special_ids if self.encoder else frozenset()

    @property
    def live(self) -> npt.NDArray[np.bool_]:
        """True for every position: no document is deleted."""
        return np.ones(self.num_positions, np.bool_)

    @cached_property
    def document_frequencies(self) -> npt.NDArray[np.int64]:
        """The number of documents with each token, of shape (largest token + 1,)."""
        documents = np.repeat(np.arange(self.num_positions), np.diff(self.offsets))
        num_tokens = int(self.token_ids.max(initial=0)) + 1
        return np.bincount(np.unique(documents * num_tokens + self.token_ids) % num_tokens, minlength=num_tokens)

    @cached_property
    def collection_frequencies(self) -> npt.NDArray[np.int64]:
        """The number of occurrences of each token, of shape (largest token + 1,)."""
        return np.bincount(self.token_ids)

    @cached_property
    def _positions_by_id(self) -> dict[str, int]:
        return {doc_id: position for position, doc_id in enumerate(self.doc_ids)}

    def find(self, doc_id: str) -> int | None:
        """Find the position of a document; None if there is none of this id."""
        if not isinstance(doc_id, str):
            raise InputError(f"a document id is a string, found {doc_id!r:.80}")
        return self._positions_by_id.get(doc_id)

    def positions(self, doc_ids: Iterable[str]) -> npt.NDArray[np.int64]:
        """Find the positions of documents; an :class:`InputError` names an unknown id."""
        return positions_of(doc_ids, self.find)

    def doc_id(self, position: int) -> str:
        """Read the id of a document."""
        return self.doc_ids[self._position(position)]

    def doc_ids_of(self, positions: npt.NDArray[np.int64]) -> list[str]:
        """Read the ids of several documents."""
        return [self.doc_ids[position] for position in positions.tolist()]

    def text(self, document: str | int) -> str | None:
        """Read the text of a document, by its id or position; None if no texts are kept."""
        position = self._position(document)
        return self.texts[position] if self.texts else None

    def metadata(self, document: str | int) -> dict[str, Any]:
        """Read the metadata of a document, by its id or position; empty if it has none."""
        position = self._position(document)
        return self._metadata[position] if self._metadata else {}

    def _position(self, document: str | int) -> int:
        if isinstance(document, str):
            return int(self.positions([document])[0])
        return position_below(self.num_positions, document)

    @cached_property
    def fields(self) -> list[Fields]:
        """The metadata as columns, those of a single segment."""
        return [Fields.of(self._metadata or ({} for _ in self.doc_ids))]

    @property
    def passages(self) -> None:
        """None: an index in memory never splits texts."""
        return

    def lengths(self, positions: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the number of vectors of each of several documents."""
        return np.asarray(self.offsets[positions + 1] - self.offsets[positions])

    def vectors_of(self, positions: npt.NDArray[np.int64]) -> DocumentVectors:
        """Read the vectors and tokens of several documents."""
        lengths, starts = self.lengths(positions), self.offsets[positions]
        rows, documents = expand_ranges(starts, lengths), np.repeat(np.arange(len(positions)), lengths)
        codes = np.full(len(rows), -1)
        return DocumentVectors(
            positions, self.vectors[rows], self.token_ids[rows], documents, rows - starts[documents], codes
        )

    def nearest_tokens(self, vectors: Vectors, count: int) -> NearTokens:
        """Find the tokens of the ``count`` nearest document vectors, F_t(υ, r), by comparing with all of them."""
        products = vectors @ self.vectors.T
        order = np.argsort(-products, axis=1, kind="stable")[:, :count]
        shape, num_nearest = (len(vectors), count), order.shape[1]
        near = NearTokens(np.full(shape, -1, np.int32), np.full(shape, -np.inf, np.float32))
        near.token_ids[:, :num_nearest] = self.token_ids[order]
        near.similarities[:, :num_nearest] = np.take_along_axis(products, order, axis=1)
        return near

    def similarities(self, position: int, query: EncodedQuery) -> Vectors:
        """Multiply a document's vectors with those of a query."""
        return self.vectors[self.offsets[position] : self.offsets[position + 1]] @ query.vectors.T

    def score(self, query: EncodedQuery) -> npt.NDArray[np.float32]:
        """Score every document, of shape (num_documents,); one without vectors gets minus infinity."""
        check_query(query, self.dim)
        return maxsim(query.vectors, query.weights, self.vectors, self.offsets)

    def scores_at(self, query: EncodedQuery, positions: npt.NDArray[np.int64]) -> npt.NDArray[np.float32]:
        """Score some documents, in any order."""
        return self.score(query)[positions]


def _checked(
    doc_ids: Sequence[str],
    documents: Sequence[EncodedDocument],
    texts: Sequence[str] | None,
    metadata: Sequence[Mapping[str, Any]] | None,
) -> list[Document]:
    for name, values in (("ids", doc_ids), ("texts", texts), ("metadata", metadata)):
        if values is not None and len(values) != len(documents):
            raise InputError(f"found {len(values)} {name} of {len(documents)} documents; give one for each")
    nothing = [None] * len(documents)
    contents = (nothing if texts is None else texts, nothing if metadata is None else metadata)
    checked = list(IdCheck().checked(documents_of_vectors(zip(doc_ids, documents, *contents, strict=True))))
    if not checked:
        raise InputError("an index needs at least one document, found none")
    if len(dims := {document.dim for document in documents}) > 1:
        raise InputError(f"all documents must have vectors of one dim, found {sorted(dims)}; use one model for all")
    if not min(dims):
        raise InputError("documents must have the shape (num_tokens, dim), even without tokens; found dim 0")
    return checked
