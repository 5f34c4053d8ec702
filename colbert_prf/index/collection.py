"""What search and feedback read of documents, wherever these are: the protocol of an index on disk and in memory."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from colbert_prf.storage.fields import Fields
from colbert_prf.types import EncodedQuery, TokenIds, Vectors

if TYPE_CHECKING:
    from colbert_prf.index.passages import Passages
    from colbert_prf.index.snapshot import Snapshot

__all__ = ["Collection", "DocumentVectors", "NearTokens"]


class DocumentVectors(NamedTuple):
    """The vectors of some documents, side by side.

    ``positions`` (num_documents,) are those of the documents. For each vector: ``vectors`` (n, dim), ``token_ids``
    (n,), in ``documents`` (n,) the number of its document, in the order they were given, in ``places`` (n,) its place
    in that document, and in ``codes`` (n,) the centroid of the codec, -1 where there is no codec.
    ``weights`` (num_documents,) say how much each document counts; None where all count the same.
    """

    positions: npt.NDArray[np.int64]
    vectors: Vectors
    token_ids: TokenIds
    documents: npt.NDArray[np.int64]
    places: npt.NDArray[np.int64]
    codes: npt.NDArray[np.int64]
    weights: npt.NDArray[np.float64] | None = None

    def only(self, rows: npt.NDArray[np.int64]) -> DocumentVectors:
        """Some of the vectors."""
        _, vectors, token_ids, documents, places, codes, weights = self
        return DocumentVectors(
            self.positions, vectors[rows], token_ids[rows], documents[rows], places[rows], codes[rows], weights
        )


class NearTokens(NamedTuple):
    """The tokens of the nearest document vectors and how near these are, both of shape (num_vectors, count).

    Where there are no more, the token is -1 and the similarity minus infinity.
    """

    token_ids: TokenIds
    similarities: npt.NDArray[np.float32]


class Collection(Protocol):
    """Documents in one state: nothing here changes, whatever writers do meanwhile.

    A document has a position from 0 to ``num_positions`` - 1; a deleted one keeps its position.
    """

    @property
    def num_documents(self) -> int:
        """How many documents there are, N."""

    @property
    def num_positions(self) -> int:
        """One more than the largest position."""

    @property
    def special_ids(self) -> frozenset[int]:
        """Tokens that are no words."""

    @property
    def live(self) -> npt.NDArray[np.bool_]:
        """Whether there is a document at each position, of shape (num_positions,)."""

    @property
    def document_frequencies(self) -> npt.NDArray[np.int64]:
        """In how many documents each token is, of shape (vocabulary_size,) or less."""

    @property
    def collection_frequencies(self) -> npt.NDArray[np.int64]:
        """How often each token occurs, of shape (vocabulary_size,) or less."""

    @property
    def on_disk(self) -> Snapshot | None:
        """The generation of an index folder this is, with its codec and segments; None in memory."""

    @property
    def snapshot(self) -> Collection:
        """Itself: so that whatever takes an :class:`~colbert_prf.Index` takes a collection."""

    @property
    def fields(self) -> list[Fields]:
        """The metadata as columns, part by part in the order of positions, deleted documents included."""

    @property
    def passages(self) -> Passages | None:
        """How texts were split, where they were."""

    def find(self, doc_id: str) -> int | None:
        """The position of a document, if it is there."""

    def positions(self, doc_ids: Iterable[str]) -> npt.NDArray[np.int64]:
        """The positions of documents; an unknown or deleted one is an :class:`InputError`."""

    def doc_id(self, position: int) -> str:
        """The id of a document."""

    def doc_ids_of(self, positions: npt.NDArray[np.int64]) -> list[str]:
        """The ids of some documents."""

    def text(self, position: int) -> str | None:
        """The text of a document, where texts are kept."""

    def metadata(self, position: int) -> dict[str, Any]:
        """The metadata of a document; empty where it has none."""

    def lengths(self, positions: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """How many vectors some documents have."""

    def vectors_of(self, positions: npt.NDArray[np.int64]) -> DocumentVectors:
        """The vectors and tokens of some documents."""

    def nearest_tokens(self, vectors: Vectors, count: int) -> NearTokens:
        """The tokens of the ``count`` document vectors nearest to each vector (num_vectors, dim): F_t(υ, r).

        Nearest first, by inner product; of equally near vectors the one of the lower position comes first.
        """

    def similarities(self, position: int, query: EncodedQuery) -> Vectors:
        """The products of a document's vectors with those of a query, of shape (num_tokens, num_query_vectors)."""

    def score(self, query: EncodedQuery) -> npt.NDArray[np.float32]:
        """Weighted MaxSim of every document, of shape (num_positions,); minus infinity where there is none."""
