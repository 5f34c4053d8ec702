"""The protocol that search and feedback read documents through, on disk and in memory alike."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from colbert_prf.storage.fields import Fields
from colbert_prf.types import EncodedQuery, TokenIds, Vectors

if TYPE_CHECKING:
    from colbert_prf.index.codec import Codec
    from colbert_prf.index.passages import Passages
    from colbert_prf.index.snapshot import Snapshot

__all__ = ["Collection", "CompressedCollection", "DocumentVectors", "NearTokens"]


class DocumentVectors(NamedTuple):
    """The vectors of several documents, side by side.

    ``positions`` (num_documents,) are those of the documents, in the given order. ``vectors`` (n, dim) have their
    ``token_ids`` (n,), in ``documents`` (n,) the number of their document in this order, in ``token_positions`` (n,)
    their position in that document, and in ``codes`` (n,) their centroid in the codec, -1 if there is no codec.
    ``weights`` (num_documents,) say how much each document counts; None if all count the same.
    """

    positions: npt.NDArray[np.int64]
    vectors: Vectors
    token_ids: TokenIds
    documents: npt.NDArray[np.int64]
    token_positions: npt.NDArray[np.int64]
    codes: npt.NDArray[np.int64]
    weights: npt.NDArray[np.float64] | None = None

    def only(self, rows: npt.NDArray[np.int64]) -> DocumentVectors:
        """Return some of the vectors."""
        return self._replace(
            vectors=self.vectors[rows],
            token_ids=self.token_ids[rows],
            documents=self.documents[rows],
            token_positions=self.token_positions[rows],
            codes=self.codes[rows],
        )


class NearTokens(NamedTuple):
    """The tokens of the nearest document vectors and their similarities, both of shape (num_vectors, count).

    If there are fewer document vectors, the last tokens are -1 and their similarities minus infinity.
    """

    token_ids: TokenIds
    similarities: npt.NDArray[np.float32]


class Collection(Protocol):
    """Documents in one state, which no writer changes.

    A document has a position from 0 to ``num_positions`` - 1; a deleted one keeps its position.
    """

    @property
    def num_documents(self) -> int:
        """The number of documents that are not deleted: N."""

    @property
    def num_positions(self) -> int:
        """One more than the largest position."""

    @property
    def special_ids(self) -> frozenset[int]:
        """Token ids that carry no word."""

    @property
    def live(self) -> npt.NDArray[np.bool_]:
        """Whether the document at each position is live, of shape (num_positions,)."""

    @property
    def document_frequencies(self) -> npt.NDArray[np.int64]:
        """The number of live documents with each token, of shape (vocabulary_size,) or less."""

    @property
    def collection_frequencies(self) -> npt.NDArray[np.int64]:
        """The number of occurrences of each token, of shape (vocabulary_size,) or less."""

    @property
    def on_disk(self) -> CompressedCollection | None:
        """The collection itself if it is a generation of an index folder, whose vectors have a codec; else None."""

    @property
    def local(self) -> Snapshot | None:
        """The collection itself if this process has its segments open, to search them; else None."""

    @property
    def snapshot(self) -> Collection:
        """The collection itself, so that what takes an :class:`~colbert_prf.Index` takes a collection too."""

    @property
    def fields(self) -> list[Fields]:
        """The metadata as columns, one for each segment in the order of positions, deleted documents included."""

    @property
    def passages(self) -> Passages | None:
        """How texts were split into passages; None if they were not."""

    def find(self, doc_id: str) -> int | None:
        """Find the position of a live document; None if there is none of this id."""

    def positions(self, doc_ids: Iterable[str]) -> npt.NDArray[np.int64]:
        """Find the positions of live documents; an :class:`InputError` names an unknown id."""

    def doc_id(self, position: int) -> str:
        """Read the id of a document."""

    def doc_ids_of(self, positions: npt.NDArray[np.int64]) -> list[str]:
        """Read the ids of several documents."""

    def text(self, position: int) -> str | None:
        """Read the text of a document; None if no texts are kept."""

    def metadata(self, position: int) -> dict[str, Any]:
        """Read the metadata of a document; empty if it has none."""

    def lengths(self, positions: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the number of vectors of each of several documents."""

    def vectors_of(self, positions: npt.NDArray[np.int64]) -> DocumentVectors:
        """Read the vectors and tokens of several documents."""

    def nearest_tokens(self, vectors: Vectors, count: int) -> NearTokens:
        """Find the tokens of the ``count`` document vectors nearest to each vector (num_vectors, dim): F_t(υ, r).

        The nearest by inner product come first; of equally near vectors, those of lower positions come first.
        """

    def similarities(self, position: int, query: EncodedQuery) -> Vectors:
        """Multiply a document's vectors with those of a query: (num_tokens, num_query_vectors)."""

    def score(self, query: EncodedQuery) -> npt.NDArray[np.float32]:
        """Score every document by weighted MaxSim, of shape (num_positions,); deleted ones get minus infinity."""

    def scores_at(self, query: EncodedQuery, positions: npt.NDArray[np.int64]) -> npt.NDArray[np.float32]:
        """Score some documents, in any order."""


class CompressedCollection(Collection, Protocol):
    """A collection whose vectors have centroids."""

    @property
    def codec(self) -> Codec:
        """What compresses the vectors."""

    @property
    def centroid_frequencies(self) -> npt.NDArray[np.int64]:
        """The number of live documents with each centroid, of shape (num_centroids,)."""
