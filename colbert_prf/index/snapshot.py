"""Snapshots of an index: one generation, open for reading; writers never change it."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import numpy.typing as npt

from colbert_prf.errors import IndexFormatError
from colbert_prf.index.catalogue import Catalogue
from colbert_prf.index.codec import Codec, codec_fault, codec_specs
from colbert_prf.index.collection import DocumentVectors, NearTokens
from colbert_prf.index.manifest import CodecInfo, Settings
from colbert_prf.index.nearest_tokens import nearest_tokens
from colbert_prf.index.segment import Segment
from colbert_prf.kernels import packed
from colbert_prf.kernels.maxsim import maxsim
from colbert_prf.storage.array_specs import check_specs
from colbert_prf.storage.arrays import check_array, expand_ranges, open_array
from colbert_prf.storage.layout import IndexLayout
from colbert_prf.types import EncodedQuery, Vectors
from colbert_prf.types.encoded import check_query

__all__ = ["Snapshot", "open_codec"]


class Snapshot(Catalogue[Segment]):
    """One generation of an index, with its codec."""

    def _open_segments(self) -> list[Segment]:
        self.codec = open_codec(self.layout, self.manifest.codec, self.manifest.settings)
        segments = [Segment(self.layout, info, self.codec) for info in self.manifest.segments]
        for segment in segments:
            segment.check_vocabulary(self.manifest.settings.vocabulary_size)
        return segments

    @property
    def on_disk(self) -> Snapshot:
        """The snapshot itself; see :class:`~colbert_prf.index.collection.Collection`."""
        return self

    @property
    def local(self) -> Snapshot:
        """The snapshot itself: its segments are open here."""
        return self

    @property
    def snapshot(self) -> Snapshot:
        """The snapshot itself."""
        return self

    def vectors(self, position: int) -> Vectors:
        """Decode the vectors of a document, of shape (num_tokens, dim)."""
        segment, local_position = self.locate(position)
        return segment.vectors(local_position, local_position + 1)

    def vectors_of(self, positions: npt.NDArray[np.int64]) -> DocumentVectors:
        """Decode the vectors of several documents, with their tokens and codes."""
        lengths = self.lengths(positions)
        starts, num_vectors = np.cumsum(lengths) - lengths, int(lengths.sum())
        documents = np.repeat(np.arange(len(positions)), lengths)
        vectors = np.empty((num_vectors, self.codec.dim), np.float32)
        token_ids, codes = np.empty(num_vectors, np.int32), np.empty(num_vectors, np.int64)
        for segment, numbers, local_positions in self.by_segment(positions):
            rows = expand_ranges(segment.offsets[local_positions], lengths[numbers])
            targets = expand_ranges(starts[numbers], lengths[numbers])
            vectors[targets], token_ids[targets] = segment.decode_rows(rows), segment.tokens(rows)
            codes[targets] = segment.columns["codes"][rows]
        token_positions = np.arange(num_vectors) - starts[documents]
        return DocumentVectors(positions, vectors, token_ids, documents, token_positions, codes)

    def nearest_tokens(self, vectors: Vectors, count: int) -> NearTokens:
        """Find the tokens of the ``count`` nearest document vectors, F_t(υ, r), through the centroids of the codec."""
        return nearest_tokens(self.codec, self.segments, vectors, count)

    def similarities(self, position: int, query: EncodedQuery) -> Vectors:
        """Multiply a document's vectors with those of a query, as the exact stage does."""
        if self.codec.bits == 16:
            return self.vectors(position) @ query.vectors.T
        segment, local_position = self.locate(position)
        vectors, scores = self.codec.pad(query.vectors), self.codec.scores(query.vectors)
        stored = segment.packed_vectors()
        return packed.similarities_definition(vectors, scores, self.codec.residuals, stored, local_position)

    @cached_property
    def collection_frequencies(self) -> npt.NDArray[np.int64]:
        """The number of occurrences of each token in live documents, of shape (vocabulary_size,).

        The first access reads all tokens.
        """
        vocabulary_size = self.manifest.settings.vocabulary_size
        total = np.zeros(vocabulary_size, dtype=np.int64)
        for segment in self.segments:
            live = np.repeat(~segment.deleted, np.diff(segment.offsets))
            total += np.bincount(segment.tokens(live), minlength=vocabulary_size)
        return total

    @cached_property
    def centroid_frequencies(self) -> npt.NDArray[np.int64]:
        """The number of live documents with each centroid, of shape (num_centroids,).

        The first access reads all lists.
        """
        total = np.zeros(self.codec.num_centroids, dtype=np.int64)
        for segment in self.segments:
            documents, starts = segment.postings()
            num_live = np.concatenate([[0], np.cumsum(~segment.deleted[documents])])
            total += np.diff(num_live[starts])
        return total

    def score(self, query: EncodedQuery) -> npt.NDArray[np.float32]:
        """Score every position exactly, on decoded vectors, of shape (num_positions,); minus infinity if deleted."""
        check_query(query, self.codec.dim)
        scores = np.full(self.num_positions, -np.inf, dtype=np.float32)
        for first, segment in zip(self.starts, self.segments, strict=False):
            for start, end in segment.ranges():
                offsets, vectors = (
                    segment.offsets[start : end + 1] - segment.offsets[start],
                    segment.vectors(start, end),
                )
                scores[first + start : first + end] = maxsim(query.vectors, query.weights, vectors, offsets)
        scores[~self.live] = -np.inf
        return scores

    def scores_at(self, query: EncodedQuery, positions: npt.NDArray[np.int64]) -> npt.NDArray[np.float32]:
        """Score some documents, in any order."""
        return self.score(query)[positions]


def open_codec(layout: IndexLayout, info: CodecInfo, settings: Settings) -> Codec:
    """Open a codec, and check the settings and every byte of it, because it is small and everything depends on it."""
    if (fault := settings.fault) is not None:
        raise IndexFormatError(f"{fault}: damaged or forged", path=layout.manifest)
    folder = layout.folder(info.name)
    check_specs(info.files, codec_specs(settings.dim, info.num_centroids), folder)
    arrays = {}
    for name, file in info.files.items():
        path = layout.array(folder, name)
        check_array(path, file)
        arrays[name] = open_array(path, file)
    if (array_fault := codec_fault(arrays, settings.dim)) is not None:
        name, problem = array_fault
        raise IndexFormatError(f"{problem}: damaged or forged", path=layout.array(folder, name))
    return Codec(settings.bits, arrays, dim=settings.dim, trained_for=info.trained_for)
