"""A generation whose vectors are in shards: what feedback, filters and explanations read.

The process that has it opens the manifest, the codec, and of each segment the ids, tombstones, tokens, offsets,
document frequencies, texts and metadata. These are memory-mapped, so that a search reads a few pages of them. Vectors,
residuals and lists are opened by the shards alone.
"""

from __future__ import annotations

import copy
from uuid import uuid4

import numpy as np
import numpy.typing as npt

from colbert_prf.distributed.asking import Asking
from colbert_prf.distributed.candidates import ShardedScorer
from colbert_prf.distributed.division import divide
from colbert_prf.distributed.messages import AskedQuery, GenerationKey
from colbert_prf.distributed.transport import Transport
from colbert_prf.index.catalogue import Catalogue, CatalogueSegment
from colbert_prf.index.collection import DocumentVectors, NearTokens
from colbert_prf.index.snapshot import open_codec
from colbert_prf.search.filters import Filter, check_fields
from colbert_prf.storage.arrays import expand_ranges
from colbert_prf.types import EncodedQuery, Vectors

__all__ = ["ShardedCollection"]


class ShardedCollection(Catalogue[CatalogueSegment]):
    """One generation of an index, with its codec; :meth:`connect` tells where the shards are.

    Parameters
    ----------
    layout, manifest
        As in :class:`~colbert_prf.storage.snapshot.StoredSnapshot`.
    """

    asking: Asking

    def connect(self, transport: Transport, timeout: float) -> None:
        """Divide the segments among the shards of a transport, and have these open the generation."""
        key = GenerationKey(self.manifest.generation, self.manifest.digest)
        sizes = [segment.num_vectors for segment in self.manifest.segments]
        parts = tuple(divide(self.manifest, sizes, transport.num_shards))
        self.asking = Asking(transport, self.layout, key, parts, timeout)
        self._sums: dict[str, npt.NDArray[np.int64]] = {}
        self._kinds: list[dict[str, frozenset[int]]] | None = None
        _ = self.document_frequencies  # read once, for all searches
        self.asking.open()

    def without(self, lost: frozenset[int]) -> ShardedCollection:
        """The same, but some shards are not asked; numbers of the collection are still those of all."""
        if not lost:
            return self
        collection = copy.copy(self)
        collection.asking = self.asking.without(lost)
        return collection

    def _open_segments(self) -> list[CatalogueSegment]:
        self.codec = open_codec(self.layout, self.manifest.codec, self.manifest.settings)
        segments = [CatalogueSegment.open(self.layout, info) for info in self.manifest.segments]
        for segment in segments:
            segment.check_vocabulary(self.manifest.settings.vocabulary_size)
        return segments

    @property
    def on_disk(self) -> ShardedCollection:
        """The collection itself: it is an index folder."""
        return self

    @property
    def local(self) -> None:
        """None: shards have the segments open."""
        return

    @property
    def snapshot(self) -> ShardedCollection:
        """The collection itself."""
        return self

    def vectors_of(self, positions: npt.NDArray[np.int64]) -> DocumentVectors:
        """Fetch the vectors of several documents, with their tokens and codes."""
        lengths = self.lengths(positions)
        starts, num_vectors = np.cumsum(lengths) - lengths, int(lengths.sum())
        documents = np.repeat(np.arange(len(positions)), lengths)
        vectors = np.empty((num_vectors, self.codec.dim), np.float32)
        token_ids, codes = np.empty(num_vectors, np.int32), np.empty(num_vectors, np.int64)
        owners = np.searchsorted(self.asking.starts, positions, side="right") - 1
        numbers = {shard: np.flatnonzero(owners == shard) for shard in np.unique(owners).tolist()}
        questions = {shard: (positions[rows] - self.asking.starts[shard],) for shard, rows in numbers.items()}
        for shard, answer in self.asking.ask("vectors_of", questions).items():
            targets = expand_ranges(starts[numbers[shard]], lengths[numbers[shard]])
            vectors[targets], token_ids[targets], codes[targets] = answer.vectors, answer.token_ids, answer.codes
        token_positions = np.arange(num_vectors) - starts[documents]
        return DocumentVectors(positions, vectors, token_ids, documents, token_positions, codes)

    def nearest_tokens(self, vectors: Vectors, count: int) -> NearTokens:
        """Find the tokens of the ``count`` nearest document vectors of all shards, F_t(υ, r)."""
        shape = (len(vectors), count)
        nothing = NearTokens(np.full(shape, -1, np.int32), np.full(shape, -np.inf, np.float32))
        parts = [nothing, *self.asking.ask_all("nearest_tokens", vectors, count).values()]
        similarities = np.concatenate([part.similarities for part in parts], axis=1)
        token_ids = np.concatenate([part.token_ids for part in parts], axis=1)
        # Equally near vectors keep the order of the shards, which is that of their positions.
        order = np.argsort(-similarities, axis=1, kind="stable")[:, :count]
        return NearTokens(np.take_along_axis(token_ids, order, axis=1), np.take_along_axis(similarities, order, axis=1))

    def similarities(self, position: int, query: EncodedQuery) -> Vectors:
        """Multiply a document's vectors with those of a query, as the exact stage does."""
        shard, local_position = self.asking.owner(position)
        similarities: Vectors = self.asking.ask("similarities", {shard: (local_position, query)})[shard]
        return similarities

    @property
    def collection_frequencies(self) -> npt.NDArray[np.int64]:
        """The number of occurrences of each token in live documents; the first access reads all tokens."""
        return self._summed("collection_frequencies")

    @property
    def centroid_frequencies(self) -> npt.NDArray[np.int64]:
        """The number of live documents with each centroid; the first access reads all lists."""
        return self._summed("centroid_frequencies")

    def scorer_of(self, query: EncodedQuery, threads: int | None = None) -> ShardedScorer:
        """Compare documents of all shards with a query, on so many threads each."""
        return ShardedScorer(self.asking, AskedQuery(uuid4().hex, query, threads))

    def score(self, query: EncodedQuery) -> npt.NDArray[np.float32]:
        """Score every position exactly, on decoded vectors; minus infinity if deleted."""
        scores = np.full(self.num_positions, -np.inf, np.float32)
        for shard, answer in self.asking.ask_all("score", query).items():
            scores[self.asking.starts[shard] : self.asking.starts[shard + 1]] = answer
        return scores

    def scores_at(self, query: EncodedQuery, positions: npt.NDArray[np.int64]) -> npt.NDArray[np.float32]:
        """Score some documents, in any order."""
        ascending, rows = np.unique(positions, return_inverse=True)
        return self.scorer_of(query).scores(ascending)[rows]

    def check_fields(self, where: Filter) -> None:
        """Refuse a filter that does not fit the metadata of the collection."""
        if self._kinds is None:
            answers = self.asking.ask_all("field_kinds")
            kinds = [fields for answer in answers.values() for fields in answer]
            if self.asking.lost:
                return check_fields(where, kinds)
            self._kinds = kinds
        return check_fields(where, self._kinds)

    def _summed(self, name: str) -> npt.NDArray[np.int64]:
        """Frequencies of all shards together; with a shard lost they would be wrong."""
        if name not in self._sums:
            shards = [shard for shard, part in enumerate(self.asking.parts) if part.segments]
            answers = self.asking.ask("frequencies", dict.fromkeys(shards, (name,)))
            size = self.codec.num_centroids if name == "centroid_frequencies" else self._vocabulary_size
            self._sums[name] = sum(answers.values(), np.zeros(size, np.int64))
        return self._sums[name]

    @property
    def _vocabulary_size(self) -> int:
        return self.manifest.settings.vocabulary_size
