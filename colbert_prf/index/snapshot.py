"""One generation of an index, open for reading; it stays what it is whatever writers do."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from colbert_prf.errors import IndexFormatError
from colbert_prf.index.codec import Codec, codec_fault, codec_forms
from colbert_prf.index.manifest import CodecInfo, Manifest, Settings
from colbert_prf.index.segment import Segment
from colbert_prf.kernels.maxsim import maxsim
from colbert_prf.storage.arrays import check_array, open_array
from colbert_prf.storage.fields import Fields
from colbert_prf.storage.forms import check_forms
from colbert_prf.storage.layout import IndexLayout
from colbert_prf.storage.positions import Positions
from colbert_prf.types import EncodedQuery, TokenIds, Vectors

__all__ = ["Snapshot", "open_codec"]


class Snapshot(Positions[Segment]):
    """Every array of one generation, mapped: files a later writer removes stay readable until the last reader goes.

    Parameters
    ----------
    layout
        Of the index.
    manifest
        The generation.
    """

    def __init__(self, layout: IndexLayout, manifest: Manifest) -> None:
        self.layout = layout
        self.manifest = manifest
        self.codec = open_codec(layout, manifest.codec, manifest.settings)
        super().__init__([Segment(layout, info, self.codec) for info in manifest.segments])
        for segment in self.segments:
            segment.check_vocabulary(manifest.settings.vocabulary_size)

    @classmethod
    def open(cls, layout: IndexLayout) -> Snapshot:
        """Open the newest generation.

        Between reading the manifest and mapping its files, a writer may have replaced the one and removed the others;
        then the next generation is opened.
        """
        manifest = Manifest.read(layout.manifest)
        while True:
            try:
                return cls(layout, manifest)
            except (IndexFormatError, FileNotFoundError):  # noqa: PERF203 - the loop is the point
                newest = Manifest.read(layout.manifest)
                if newest.generation == manifest.generation:
                    raise
                manifest = newest

    def metadata(self, position: int) -> dict[str, Any]:
        """The metadata of a document; empty where it has none."""
        segment, place = self.place(position)
        return segment.metadata(place)

    @property
    def fields(self) -> list[Fields]:
        """The metadata as columns, for each segment in the order of positions, deleted documents included."""
        return [segment.fields for segment in self.segments]

    def vectors(self, position: int) -> Vectors:
        """The decoded vectors of a document, of shape (num_tokens, dim)."""
        segment, place = self.place(position)
        return segment.vectors(place, place + 1)

    def token_ids(self, position: int) -> TokenIds:
        """The token of each vector of a document, of shape (num_tokens,)."""
        segment, place = self.place(position)
        return segment.tokens(slice(int(segment.offsets[place]), int(segment.offsets[place + 1])))

    @cached_property
    def live(self) -> npt.NDArray[np.bool_]:
        """Whether the document at each position is live, of shape (num_positions,)."""
        return ~np.concatenate([np.empty(0, dtype=np.bool_), *(segment.deleted for segment in self.segments)])

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
