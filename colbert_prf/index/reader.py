"""Reading an open index."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from colbert_prf.errors import InputError
from colbert_prf.index.catalogue import Catalogue
from colbert_prf.index.codec import Codec
from colbert_prf.index.info import IndexInfo, describe
from colbert_prf.index.manifest import Settings
from colbert_prf.index.segment import Segment
from colbert_prf.index.snapshot import Snapshot
from colbert_prf.storage.index import SnapshotReader, StoredIndex
from colbert_prf.types import EncodedQuery, TokenIds, Vectors

__all__ = ["CatalogueReader", "IndexReader"]


CatalogueType = TypeVar("CatalogueType", bound=Catalogue[Any])


class CatalogueReader(SnapshotReader[CatalogueType]):
    """Reads what the catalogue of a generation tells."""

    def info(self) -> IndexInfo:
        """Describe the index in numbers."""
        return describe(self._snapshot)

    @property
    def _settings(self) -> Settings:
        return self._snapshot.manifest.settings

    @property
    def num_vectors(self) -> int:
        """The number of vectors of documents that are not deleted."""
        return self._snapshot.manifest.num_vectors

    @property
    def dim(self) -> int:
        """Components of a vector."""
        return self._settings.dim

    @property
    def bits(self) -> int:
        """Bits per component."""
        return self._settings.bits

    @property
    def vocabulary_size(self) -> int:
        """One more than the largest token id."""
        return self._settings.vocabulary_size

    @property
    def special_ids(self) -> frozenset[int]:
        """Token ids that carry no word."""
        return frozenset(self._settings.special_ids)

    def document_frequency(self, token_ids: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Count the live documents with each of several tokens; 0 for one that is not in the vocabulary."""
        tokens = np.asarray(token_ids)
        if tokens.size and tokens.dtype.kind not in "iu":
            raise InputError(f"token ids are whole numbers, found {token_ids!r:.80}")
        tokens = tokens.astype(np.int64)
        in_vocabulary = (tokens >= 0) & (tokens < self.vocabulary_size)
        frequencies = self._snapshot.document_frequencies[np.where(in_vocabulary, tokens, 0)]
        return np.where(in_vocabulary, frequencies, 0)

    def token_ids(self, document: str | int) -> TokenIds:
        """Read the token of each vector of a document, by its id or position, of shape (num_tokens,)."""
        return self._snapshot.token_ids(self._position(document))


class IndexReader(CatalogueReader[Snapshot], StoredIndex[Snapshot]):
    """Reads one generation of an index."""

    @property
    def codec(self) -> Codec:
        """The codec that compresses the vectors."""
        return self._snapshot.codec

    @property
    def segments(self) -> list[Segment]:
        """The segments, in the order of positions."""
        return list(self._snapshot.segments)

    def vectors(self, document: str | int) -> Vectors:
        """Decode the vectors of a document, by its id or position, of shape (num_tokens, dim)."""
        return self._snapshot.vectors(self._position(document))

    def score(self, query: EncodedQuery) -> npt.NDArray[np.float32]:
        """Score every position exactly on decoded vectors, of shape (num_positions,); minus infinity if deleted."""
        return self._snapshot.score(query)
