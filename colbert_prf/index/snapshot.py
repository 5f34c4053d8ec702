"""One generation of an index, open for reading; it stays what it is whatever writers do."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from colbert_prf.errors import IndexFormatError, InputError
from colbert_prf.index.arrays import check_array, open_array
from colbert_prf.index.codec import ARRAYS, Codec
from colbert_prf.index.layout import IndexLayout
from colbert_prf.index.manifest import CodecInfo, Manifest, Settings
from colbert_prf.index.segment import Segment
from colbert_prf.kernels.maxsim import maxsim
from colbert_prf.types import EncodedQuery, TokenIds, Vectors

__all__ = ["Snapshot", "open_codec"]


class Snapshot:
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
        self.segments = [Segment(layout, info, self.codec) for info in manifest.segments]
        self.starts = np.cumsum([0, *map(len, self.segments)], dtype=np.int64)

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

    def find(self, doc_id: str) -> int | None:
        """The position of a live document."""
        for start, segment in zip(self.starts, self.segments, strict=False):
            place = segment.doc_ids.find(doc_id)
            if place is not None and not segment.deleted[place]:
                return int(start) + place
        return None

    def positions(self, doc_ids: Iterable[str]) -> npt.NDArray[np.int64]:
        """The positions of live documents, in the order of the ids."""
        found = []
        for doc_id in doc_ids:
            if not isinstance(doc_id, str):
                raise InputError(f"a document id is a string, found {doc_id!r}")
            place = self.find(doc_id)
            if place is None:
                raise InputError(f"the index has no document {doc_id!r}")
            found.append(place)
        return np.array(found, dtype=np.int64)

    def place(self, position: int) -> tuple[Segment, int]:
        """The segment of a position and the position within it."""
        if not 0 <= position < self.starts[-1]:
            raise InputError(f"position {position} is not in the index, whose positions go from 0 to {self.starts[-1]}")
        number = int(np.searchsorted(self.starts, position, side="right")) - 1
        return self.segments[number], int(position - self.starts[number])

    def doc_id(self, position: int) -> str:
        """The id of a document."""
        segment, place = self.place(position)
        return segment.doc_ids[place]

    def doc_ids_of(self, positions: npt.NDArray[np.int64]) -> list[str]:
        """The ids of some documents."""
        numbers = np.searchsorted(self.starts, positions, side="right") - 1
        names = np.empty(len(positions), dtype=object)
        for number in np.unique(numbers):
            here = numbers == number
            names[here] = self.segments[number].doc_ids.many(positions[here] - self.starts[number])
        doc_ids: list[str] = names.tolist()
        return doc_ids

    def text(self, position: int) -> str | None:
        """The text of a document, where texts are kept."""
        segment, place = self.place(position)
        return segment.text(place)

    def metadata(self, position: int) -> dict[str, Any]:
        """The metadata of a document; empty where it has none."""
        segment, place = self.place(position)
        return segment.metadata(place)

    def vectors(self, position: int) -> Vectors:
        """The decoded vectors of a document, of shape (num_tokens, dim)."""
        segment, place = self.place(position)
        return segment.vectors(place, place + 1)

    def token_ids(self, position: int) -> TokenIds:
        """The token of each vector of a document, of shape (num_tokens,)."""
        segment, place = self.place(position)
        return segment.tokens(slice(int(segment.offsets[place]), int(segment.offsets[place + 1])))

    @property
    def num_positions(self) -> int:
        """One more than the largest position; deleted documents keep theirs until a merge."""
        return int(self.starts[-1])

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
    """Open a codec, checking every byte of it: it is small, and everything depends on it."""
    arrays = {}
    for name, item in info.files.items():
        path = layout.array(layout.folder(info.name), name)
        check_array(path, item)
        arrays[name] = open_array(path, item)
    if missing := sorted(set(ARRAYS) - arrays.keys()):
        raise IndexFormatError(f"the codec lacks {missing[0]}", path=layout.folder(info.name))
    return Codec(settings.bits, arrays, dim=settings.dim, trained_for=info.trained_for)
