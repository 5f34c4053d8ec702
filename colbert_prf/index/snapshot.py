"""One generation of an index, open for reading; it stays what it is whatever writers do."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from colbert_prf.errors import IndexFormatError
from colbert_prf.index.codec import Codec, codec_fault, codec_forms
from colbert_prf.index.collection import DocumentVectors, NearTokens
from colbert_prf.index.manifest import CodecInfo, Manifest, Settings
from colbert_prf.index.nearest_tokens import nearest_tokens
from colbert_prf.index.passages import Passages
from colbert_prf.index.segment import Segment, packed_vectors
from colbert_prf.kernels.maxsim import maxsim
from colbert_prf.storage.arrays import ArrayInfo, check_array, open_array, rows_of
from colbert_prf.storage.fields import Fields
from colbert_prf.storage.forms import check_forms
from colbert_prf.storage.layout import IndexLayout
from colbert_prf.storage.snapshot import StoredSnapshot
from colbert_prf.types import EncodedQuery, TokenIds, Vectors

__all__ = ["Snapshot", "open_codec"]


class Snapshot(StoredSnapshot[Segment]):
    """One generation of an index, with its codec."""

    MANIFEST = Manifest
    manifest: Manifest

    def _open_segments(self) -> list[Segment]:
        self.codec = open_codec(self.layout, self.manifest.codec, self.manifest.settings)
        segments = [Segment(self.layout, info, self.codec) for info in self.manifest.segments]
        for segment in segments:
            segment.check_vocabulary(self.manifest.settings.vocabulary_size)
        return segments

    def array_files(self) -> dict[Path, ArrayInfo]:
        """Every array file of the generation, with what the manifest says of it."""
        folder = self.layout.folder(self.manifest.codec.name)
        codec = {self.layout.array(folder, name): info for name, info in self.manifest.codec.files.items()}
        return codec | super().array_files()

    @property
    def on_disk(self) -> Snapshot:
        """Itself; see :class:`~colbert_prf.index.collection.Collection`."""
        return self

    @property
    def snapshot(self) -> Snapshot:
        """Itself."""
        return self

    @property
    def num_documents(self) -> int:
        """How many live documents there are."""
        return self.manifest.num_documents

    @cached_property
    def special_ids(self) -> frozenset[int]:
        """Tokens that are no words."""
        return frozenset(self.manifest.settings.special_ids)

    def metadata(self, position: int) -> dict[str, Any]:
        """The metadata of a document; empty where it has none."""
        segment, place = self.place(position)
        return segment.metadata(place)

    @property
    def fields(self) -> list[Fields]:
        """The metadata as columns, for each segment in the order of positions, deleted documents included."""
        return [segment.fields for segment in self.segments]

    @property
    def passages(self) -> Passages | None:
        """How texts were split, where they were."""
        return self.manifest.settings.passages

    def vectors(self, position: int) -> Vectors:
        """The decoded vectors of a document, of shape (num_tokens, dim)."""
        segment, place = self.place(position)
        return segment.vectors(place, place + 1)

    def token_ids(self, position: int) -> TokenIds:
        """The token of each vector of a document, of shape (num_tokens,)."""
        segment, place = self.place(position)
        return segment.tokens(slice(int(segment.offsets[place]), int(segment.offsets[place + 1])))

    def lengths(self, positions: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """How many vectors some documents have."""
        lengths = np.zeros(len(positions), np.int64)
        for segment, numbers, documents in self._by_segment(positions):
            lengths[numbers] = segment.offsets[documents + 1] - segment.offsets[documents]
        return lengths

    def vectors_of(self, positions: npt.NDArray[np.int64]) -> DocumentVectors:
        """The decoded vectors of some documents, with their tokens and codes."""
        lengths = self.lengths(positions)
        starts, total = np.cumsum(lengths) - lengths, int(lengths.sum())
        documents = np.repeat(np.arange(len(positions)), lengths)
        vectors = np.empty((total, self.codec.dim), np.float32)
        token_ids, codes = np.empty(total, np.int32), np.empty(total, np.int64)
        for segment, numbers, places in self._by_segment(positions):
            rows, targets = (rows_of(first, lengths[numbers]) for first in (segment.offsets[places], starts[numbers]))
            vectors[targets], token_ids[targets] = segment.decode_rows(rows), segment.tokens(rows)
            codes[targets] = segment.columns["codes"][rows]
        return DocumentVectors(positions, vectors, token_ids, documents, np.arange(total) - starts[documents], codes)

    def nearest_tokens(self, vectors: Vectors, count: int) -> NearTokens:
        """The tokens of the ``count`` document vectors nearest to each vector: F_t(υ, r), through the codec."""
        return nearest_tokens(self.codec, self.segments, vectors, count)

    def similarities(self, position: int, query: EncodedQuery) -> Vectors:
        """The products of a document's vectors with those of a query, as its score is computed from them."""
        from colbert_prf.kernels.exact import similarities_definition

        if self.codec.bits == 16:
            return self.vectors(position) @ query.vectors.T
        segment, place = self.place(position)
        vectors, table = self.codec.pad(query.vectors), self.codec.scores(query.vectors)
        return similarities_definition(vectors, table, self.codec.residuals, packed_vectors(segment), place)

    def _by_segment(
        self, positions: npt.NDArray[np.int64]
    ) -> Iterator[tuple[Segment, npt.NDArray[np.int64], npt.NDArray[np.int64]]]:
        """Each segment that has some of the positions, their numbers, and their places in the segment."""
        owners = np.searchsorted(self.starts, positions, side="right") - 1
        for owner in np.unique(owners).tolist():
            numbers = np.flatnonzero(owners == owner)
            yield self.segments[owner], numbers, positions[numbers] - self.starts[owner]

    @cached_property
    def document_frequencies(self) -> npt.NDArray[np.int64]:
        """In how many live documents each token is, of shape (vocabulary_size,)."""
        total = np.zeros(self.manifest.settings.vocabulary_size, dtype=np.int64)
        for segment in self.segments:
            segment.add_frequencies(total)
        return total

    @cached_property
    def collection_frequencies(self) -> npt.NDArray[np.int64]:
        """How often each token occurs in live documents, of shape (vocabulary_size,); read from all tokens, once."""
        size = self.manifest.settings.vocabulary_size
        total = np.zeros(size, dtype=np.int64)
        for segment in self.segments:
            live = np.repeat(~segment.deleted, np.diff(segment.offsets))
            total += np.bincount(segment.tokens(live), minlength=size)
        return total

    @cached_property
    def centroid_frequencies(self) -> npt.NDArray[np.int64]:
        """In how many live documents each centroid is, of shape (num_centroids,); read from all lists, once."""
        total = np.zeros(self.codec.num_centroids, dtype=np.int64)
        for segment in self.segments:
            documents, starts = segment.postings()
            live = np.concatenate([[0], np.cumsum(~segment.deleted[documents])])
            total += np.diff(live[starts])
        return total

    def score(self, query: EncodedQuery) -> npt.NDArray[np.float32]:
        """Score every position exactly, on decoded vectors, of shape (num_positions,); minus infinity if deleted."""
        scores = np.full(self.starts[-1], -np.inf, dtype=np.float32)
        for first, segment in zip(self.starts, self.segments, strict=False):
            for start, end in segment.ranges():
                offsets = segment.offsets[start : end + 1] - segment.offsets[start]
                part = maxsim(query.vectors, query.weights, segment.vectors(start, end), offsets)
                scores[first + start : first + end] = part
        scores[~self.live] = -np.inf
        return scores


def open_codec(layout: IndexLayout, info: CodecInfo, settings: Settings) -> Codec:
    """Open a codec, checking the settings and every byte of it: it is small, and everything depends on it."""
    if (fault := settings.fault) is not None:
        raise IndexFormatError(f"{fault}: damaged or forged", path=layout.manifest)
    folder = layout.folder(info.name)
    check_forms(info.files, codec_forms(settings.dim, info.num_centroids), folder)
    arrays = {}
    for name, item in info.files.items():
        path = layout.array(folder, name)
        check_array(path, item)
        arrays[name] = open_array(path, item)
    if (wrong := codec_fault(arrays, settings.dim)) is not None:
        raise IndexFormatError(f"{wrong[1]}: damaged or forged", path=layout.array(folder, wrong[0]))
    return Codec(settings.bits, arrays, dim=settings.dim, trained_for=info.trained_for)
