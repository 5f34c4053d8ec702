"""Segments of an index: memory-mapped arrays, and what they say about documents, vectors and tokens."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np
import numpy.typing as npt

from colbert_prf.index.batch import BATCH_VECTORS, Batch
from colbert_prf.index.catalogue import CatalogueSegment
from colbert_prf.index.codec import Codec
from colbert_prf.index.manifest import SegmentInfo
from colbert_prf.index.segment_writer import document_frequencies
from colbert_prf.kernels import candidates, packed
from colbert_prf.kernels.postings import decode_postings
from colbert_prf.storage.array_specs import ArraySpec
from colbert_prf.storage.arrays import Array, expand_ranges
from colbert_prf.storage.blobs import blob_specs
from colbert_prf.storage.identifiers import identifier_specs
from colbert_prf.storage.layout import IndexLayout
from colbert_prf.storage.metadata import metadata_specs
from colbert_prf.types import Vectors

__all__ = ["Segment"]

CHECKED_OFFSETS = ("offsets", "list_offsets", "token_list_offsets")
"""Kernels follow these, so all of them are checked when a segment is opened; of others only the first and the last."""


class Segment(CatalogueSegment):
    """A segment of an index, or a spooled chunk of a build.

    Parameters
    ----------
    layout
        The layout of the index.
    info
        The description in the manifest, or in the state of the build.
    codec
        The codec that decodes the vectors; None for a chunk.

    Attributes
    ----------
    token_ids : array
        Of shape (num_vectors,).
    offsets : array
        Document ``i`` owns the vectors ``offsets[i]:offsets[i + 1]``; int64 of shape (num_documents + 1,).
    lists, list_offsets : array
        The documents of each centroid, deleted ones included; see :func:`encode_postings`.
    has_token_lists : bool
        Whether the segment lists the documents of each token; segments of earlier releases do not.
    """

    def __init__(self, layout: IndexLayout, info: SegmentInfo, codec: Codec | None) -> None:
        self.codec = codec
        folder = layout.folder(info.name) if codec else layout.chunk(info.name)
        super().__init__(layout, folder, info, _specs(info, codec))
        arrays = self.arrays
        self._column_names = tuple(codec.columns) if codec else ("vectors",)
        if codec:
            self.lists: npt.NDArray[np.uint8] = arrays["lists"]
            self.list_offsets: npt.NDArray[np.int64] = arrays["list_offsets"]
        self.has_token_lists = "token_lists" in arrays
        self._check_offsets()

    @cached_property
    def columns(self) -> dict[str, Array]:
        """The columns of the codec, with a row for each vector; see :attr:`Codec.columns`.

        Kernels use a code as the row of a table and check no bounds. So all codes are checked on first use (0.15 ms for
        a million vectors), unless every number of their dtype is a code.
        """
        columns = {name: self.arrays[name] for name in self._column_names}
        if self.codec and self.codec.num_centroids <= np.iinfo(columns["codes"].dtype).max:
            largest = int(columns["codes"].max(initial=0))
            if largest >= self.codec.num_centroids:
                raise self._damaged("codes", f"a code is {largest}, there are {self.codec.num_centroids} centroids")
        return columns

    def vectors(self, start: int, end: int) -> Vectors:
        """Decode the vectors of the documents ``start:end``, one document after the other."""
        return self.decode_rows(slice(int(self.offsets[start]), int(self.offsets[end])))

    def decode_rows(self, rows: slice | npt.NDArray[np.int64]) -> Vectors:
        """Decode some vectors."""
        if self.codec is not None and not isinstance(rows, slice):
            return self.codec.decode(self.columns, rows)
        columns = {name: column[rows] for name, column in self.columns.items()}
        return self.codec.decode(columns) if self.codec else columns["vectors"].astype(np.float32)

    def postings(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Decode the documents of all lists, deleted ones included, and where each list begins among them."""
        try:
            documents, starts = decode_postings(self.lists, self.list_offsets)
        except ValueError as error:
            raise self._damaged("lists", str(error)) from error
        if documents.max(initial=-1) >= len(self) or documents.min(initial=0) < 0:
            raise self._damaged("lists", f"a list names a document outside of 0 to {len(self) - 1}")
        return documents, starts

    def documents_with_any(self, codes: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Tell for each document, deleted ones included, whether it has a vector with any of several codes."""
        try:
            return candidates.candidates(self.lists, self.list_offsets, codes, len(self))
        except ValueError as error:
            raise self._damaged("lists", str(error)) from error

    @cached_property
    def _listed_tokens(self) -> npt.NDArray[np.int64]:
        """The tokens that have a list, ascending: all that occur in the segment."""
        tokens = np.flatnonzero(self.arrays["frequencies"])
        num_lists = len(self.arrays["token_list_offsets"]) - 1
        if len(tokens) != num_lists:
            raise self._damaged("token_list_offsets", f"there are {num_lists} lists for {len(tokens)} tokens")
        return tokens

    def token_sums(self, tokens: npt.NDArray[np.int64], values: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """Sum for each document, deleted ones included, the values of those of several tokens that it has.

        All sums are zero if the segment has no token lists.
        """
        if not self.has_token_lists:
            return np.zeros(len(self), np.float32)
        numbers = np.searchsorted(self._listed_tokens, tokens)
        listed = numbers < np.searchsorted(self._listed_tokens, tokens, side="right")
        lists, list_offsets = self.arrays["token_lists"], self.arrays["token_list_offsets"]
        try:
            return candidates.list_sums(lists, list_offsets, numbers[listed], values[listed], len(self))
        except ValueError as error:
            raise self._damaged("token_lists", str(error)) from error

    def deletion_statistics(self, deleted: npt.NDArray[np.bool_]) -> tuple[dict[str, Array], dict[str, int]]:
        """Count for each token the deleted documents that have it, and the vectors of all deleted documents."""
        num_tokens = len(self.arrays["frequencies"])
        frequencies = np.zeros(num_tokens, dtype=np.uint32)
        for start, end in self.ranges():
            mask = deleted[start:end]
            if mask.any():
                lengths = np.diff(self.offsets[start : end + 1])
                tokens = self.tokens(slice(int(self.offsets[start]), int(self.offsets[end])))
                frequencies += document_frequencies(tokens[np.repeat(mask, lengths)], lengths[mask], num_tokens)
        return {"frequencies": frequencies}, {"num_vectors": int(np.diff(self.offsets)[deleted].sum())}

    def packed_vectors(self) -> packed.PackedVectors:
        """Return the compressed vectors as the kernels take them."""
        columns = self.columns
        return packed.PackedVectors(columns["codes"], columns["residuals"], columns["scales"], self.offsets)

    def ranges(self) -> Iterator[tuple[int, int]]:
        """Yield the ends of ranges of documents with some 32,768 vectors each."""
        start = 0
        while start < len(self):
            limit = self.offsets[start] + BATCH_VECTORS
            end = int(np.searchsorted(self.offsets, limit, side="right")) - 1
            end = min(max(end, start + 1), start + BATCH_VECTORS)
            yield start, end
            start = end

    def batches(self) -> Iterator[Batch]:
        """Yield the live documents as they are stored."""
        for start, end in self.ranges():
            live = np.flatnonzero(~self.deleted[start:end]) + start
            positions: list[int] = live.tolist()
            lengths = np.diff(self.offsets[start : end + 1])[live - start]
            rows = expand_ranges(self.offsets[live], lengths)
            yield Batch(
                doc_ids=[self.doc_ids[position] for position in positions],
                lengths=lengths,
                token_ids=self.token_ids[rows],
                columns={name: column[rows] for name, column in self.columns.items()},
                texts=[self._texts[position] for position in positions] if self._texts else None,
                metadata=[self.metadata_json(position) for position in positions],
            )

    def _check_offsets(self) -> None:
        """Refuse offsets that lead outside of an array or, if kernels follow them, that fall."""
        ends = {"offsets": self.info.num_vectors, "id_offsets": len(self.arrays["id_bytes"])}
        ends |= {f"{n}_offsets": len(self.arrays[f"{n}_blocks"]) for n in ("texts", "metadata") if self._blobs(n)}
        ends |= {"list_offsets": len(self.lists)} if self.codec else {}
        ends |= {"token_list_offsets": len(self.arrays["token_lists"])} if self.has_token_lists else {}
        for name, end in ends.items():
            offsets = self.arrays[name]
            if int(offsets[0]) != 0 or int(offsets[-1]) != end:
                raise self._damaged(name, f"expected offsets from 0 to {end}, found {offsets[0]} to {offsets[-1]}")
            if name in CHECKED_OFFSETS and bool((offsets[1:] < offsets[:-1]).any()):
                raise self._damaged(name, "an offset is smaller than the one before it")


def _specs(info: SegmentInfo, codec: Codec | None) -> dict[str, ArraySpec]:
    """Specify the arrays of a segment, or without a codec of a chunk; texts and metadata only if the files exist."""
    num_documents, num_vectors = info.num_documents, info.num_vectors
    specs = {
        "offsets": ArraySpec.of(np.int64, shape=(num_documents + 1,)),
        "token_ids": ArraySpec.of(np.uint16, np.uint32, shape=(num_vectors,)),
        **identifier_specs(num_documents),
        **metadata_specs(info.files, num_documents),
    }
    if "texts_blocks" in info.files:
        specs |= blob_specs("texts", num_documents)
    if codec is None:
        return {**specs, "vectors": ArraySpec.of(np.float16, shape=(num_vectors, None))}
    for name, (dtype, row_shape) in codec.columns.items():
        specs[name] = ArraySpec.of(dtype, shape=(num_vectors, *row_shape))
    if "token_lists" in info.files or "token_list_offsets" in info.files:
        specs["token_lists"] = ArraySpec.of(np.uint8, shape=(None,))
        specs["token_list_offsets"] = ArraySpec.of(np.int64, shape=(None,))
    return {
        **specs,
        "lists": ArraySpec.of(np.uint8, shape=(None,)),
        "list_offsets": ArraySpec.of(np.int64, shape=(codec.num_centroids + 1,)),
        "frequencies": ArraySpec.of(np.uint16, np.uint32, shape=(None,)),
    }
