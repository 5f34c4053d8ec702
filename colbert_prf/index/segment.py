"""Reading a segment: mapped arrays, the documents in them, and which of these are deleted."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from colbert_prf.errors import IndexFormatError
from colbert_prf.index.batch import BATCH_VECTORS, Batch
from colbert_prf.index.codec import Codec
from colbert_prf.index.manifest import DeletionInfo, SegmentInfo
from colbert_prf.index.segment_writer import document_frequencies, token_dtype
from colbert_prf.kernels.postings import decode_postings
from colbert_prf.storage.arrays import Array, rows_of
from colbert_prf.storage.blobs import blob_forms
from colbert_prf.storage.fields import Fields, field_forms
from colbert_prf.storage.forms import Form
from colbert_prf.storage.identifiers import identifier_forms
from colbert_prf.storage.layout import IndexLayout
from colbert_prf.storage.segment import StoredSegment
from colbert_prf.types import TokenIds, Vectors

if TYPE_CHECKING:
    from colbert_prf.kernels.exact import PackedVectors

__all__ = ["Segment", "packed_vectors"]


class Segment(StoredSegment):
    """A segment of an index, or a chunk of the spool of a build.

    Parameters
    ----------
    layout
        Of the index.
    info
        What the manifest, or the state of a build, says of it.
    codec
        What decodes it; None for a chunk of the spool.

    Attributes
    ----------
    token_ids : array
        Of shape (num_vectors,).
    offsets : array
        Document ``i`` owns the vectors ``offsets[i]:offsets[i + 1]``; int64 of shape (num_documents + 1,).
    lists, list_offsets : array
        Documents of each centroid, deleted ones included; see :func:`encode_postings`.
    has_token_lists : bool
        Whether it lists the documents of each token; segments of earlier releases do not.
    """

    DELETION_INFO = DeletionInfo
    info: SegmentInfo

    def __init__(self, layout: IndexLayout, info: SegmentInfo, codec: Codec | None) -> None:
        self.codec = codec
        super().__init__(
            layout, layout.folder(info.name) if codec else layout.chunk(info.name), info, _forms(info, codec)
        )
        arrays = self.arrays
        self._column_names = tuple(codec.columns) if codec else ("vectors",)
        self.token_ids = arrays["token_ids"]
        self.offsets: npt.NDArray[np.int64] = arrays["offsets"]
        self._metadata = self._blobs("metadata")
        if codec:
            self.lists: npt.NDArray[np.uint8] = arrays["lists"]
            self.list_offsets: npt.NDArray[np.int64] = arrays["list_offsets"]
        self.has_token_lists = "token_lists" in arrays
        self._check_ends()
        self._check_offsets()

    @cached_property
    def columns(self) -> dict[str, Array]:
        """What the codec made of each vector; see :attr:`Codec.columns`.

        Kernels take a code for a row of a table and do not look whether the row is there. So all codes are looked at
        once, on first use (0.15 ms for a million vectors), unless every number their dtype has is a code.
        """
        columns = {name: self.arrays[name] for name in self._column_names}
        if self.codec and self.codec.num_centroids <= np.iinfo(columns["codes"].dtype).max:
            largest = int(columns["codes"].max(initial=0))
            if largest >= self.codec.num_centroids:
                raise self._damaged("codes", f"a code is {largest}, there are {self.codec.num_centroids} centroids")
        return columns

    def metadata(self, position: int) -> dict[str, Any]:
        """The metadata of a document; empty where it has none."""
        raw = self._metadata[position] if self._metadata else b""
        try:
            metadata = json.loads(raw) if raw else {}
        except (ValueError, RecursionError) as error:
            raise self._damaged("metadata_blocks", f"the metadata at {position} is not JSON ({error})") from error
        if not isinstance(metadata, dict):
            raise self._damaged("metadata_blocks", f"the metadata at {position} is not an object")
        return metadata

    @cached_property
    def fields(self) -> Fields:
        """The metadata of all documents as columns; of a segment written without them, made once from the JSON."""
        if "field_names" in self.arrays:
            return Fields.opened(self.arrays, num_documents=len(self), folder=self.folder)
        return self.metadata_as_fields()

    def metadata_as_fields(self) -> Fields:
        """The metadata of all documents as columns, made from the JSON."""
        return Fields.of(self.metadata(position) if self._metadata else {} for position in range(len(self)))

    def vectors(self, start: int, end: int) -> Vectors:
        """The decoded vectors of the documents ``start:end``, one after the other."""
        return self.decode_rows(slice(int(self.offsets[start]), int(self.offsets[end])))

    def decode_rows(self, rows: slice | npt.NDArray[np.int64]) -> Vectors:
        """Some decoded vectors."""
        if self.codec is not None and not isinstance(rows, slice):
            return self.codec.decode(self.columns, rows)
        columns = {name: column[rows] for name, column in self.columns.items()}
        return self.codec.decode(columns) if self.codec else columns["vectors"].astype(np.float32)

    def tokens(self, rows: slice | npt.NDArray[Any]) -> TokenIds:
        """The tokens of some vectors; one that no document of the segment has is damage."""
        tokens = self.token_ids[rows]
        if tokens.size:
            self.check_token(int(tokens.max()))
        return tokens.astype(np.int32)

    def check_token(self, largest: int) -> None:
        """Refuse a token that no document of the segment has: it is damage."""
        num_known = len(self.arrays["frequencies"])
        if largest >= num_known:
            raise self._damaged("token_ids", f"a token is {largest}, the segment has none from {num_known} on")

    def check_vocabulary(self, size: int) -> None:
        """Refuse arrays that were written for another vocabulary."""
        expected, found = np.dtype(token_dtype(size)), self.token_ids.dtype
        if found != expected:
            raise self._damaged("token_ids", f"for a vocabulary of {size} it must be {expected}, found {found}")
        known = max(len(self.arrays["frequencies"]), len(self.deletion_arrays.get("frequencies", ())))
        if known > size:
            raise self._damaged("frequencies", f"it counts {known} tokens of a vocabulary of {size}")

    def documents_with(self, code: int) -> npt.NDArray[np.int64]:
        """The documents that have a vector with this code, ascending, deleted ones included."""
        block = self.lists[self.list_offsets[code] : self.list_offsets[code + 1]]
        return self._decoded(block, np.array([0, len(block)]))[0]

    def postings(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """The documents of all lists, deleted ones included, and where each list begins among them."""
        return self._decoded(self.lists, self.list_offsets)

    def documents_with_any(self, codes: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Whether each document has a vector with one of some codes, deleted ones included."""
        from colbert_prf.kernels.candidates import candidates

        try:
            return candidates(self.lists, self.list_offsets, codes, len(self))
        except ValueError as error:
            raise self._damaged("lists", str(error)) from error

    @cached_property
    def _listed_tokens(self) -> npt.NDArray[np.int64]:
        """The tokens that have a list, ascending: all that occur."""
        tokens = np.flatnonzero(self.arrays["frequencies"])
        if len(tokens) + 1 != len(self.arrays["token_list_offsets"]):
            found = len(self.arrays["token_list_offsets"]) - 1
            raise self._damaged("token_list_offsets", f"there are {found} lists for {len(tokens)} tokens")
        return tokens

    def token_sums(self, tokens: npt.NDArray[np.int64], values: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """For each document, deleted ones included, the sum of the values of those of some tokens it has.

        All are zero where the segment has no token lists.
        """
        from colbert_prf.kernels.candidates import list_sums

        if not self.has_token_lists:
            return np.zeros(len(self), np.float32)
        numbers = np.searchsorted(self._listed_tokens, tokens)
        known = numbers < np.searchsorted(self._listed_tokens, tokens, side="right")
        lists, list_offsets = self.arrays["token_lists"], self.arrays["token_list_offsets"]
        try:
            return list_sums(lists, list_offsets, numbers[known], values[known], len(self))
        except ValueError as error:
            raise self._damaged("token_lists", str(error)) from error

    def add_frequencies(self, total: npt.NDArray[np.int64]) -> None:
        """Add the document frequencies of the live documents."""
        for array, sign in ((self.arrays["frequencies"], 1), (self.deletion_arrays.get("frequencies"), -1)):
            if array is not None:
                total[: len(array)] += sign * array.astype(np.int64)

    def deletion_forms(self) -> dict[str, Form]:
        """Which documents are deleted, and in how many of them each token is."""
        return {**super().deletion_forms(), "frequencies": Form.of(np.uint32, shape=(None,))}

    def deletion_details(self, deleted: npt.NDArray[np.bool_]) -> tuple[dict[str, Array], dict[str, int]]:
        """In how many of the deleted documents each token is, and how many vectors they have."""
        size = len(self.arrays["frequencies"])
        total = np.zeros(size, dtype=np.uint32)
        for start, end in self.ranges():
            gone = deleted[start:end]
            if gone.any():
                lengths = np.diff(self.offsets[start : end + 1])
                tokens = self.tokens(slice(int(self.offsets[start]), int(self.offsets[end])))
                total += document_frequencies(tokens[np.repeat(gone, lengths)], lengths[gone], size)
        return {"frequencies": total}, {"num_vectors": int(np.diff(self.offsets)[deleted].sum())}

    def ranges(self) -> Iterator[tuple[int, int]]:
        """Runs of documents with some 32,768 vectors each."""
        start = 0
        while start < len(self):
            limit = self.offsets[start] + BATCH_VECTORS
            end = int(np.searchsorted(self.offsets, limit, side="right")) - 1
            end = min(max(end, start + 1), start + BATCH_VECTORS)
            yield start, end
            start = end

    def batches(self) -> Iterator[Batch]:
        """The live documents, as they are stored."""
        for start, end in self.ranges():
            live = np.flatnonzero(~self.deleted[start:end]) + start
            documents: list[int] = live.tolist()
            lengths = np.diff(self.offsets[start : end + 1])[live - start]
            rows = rows_of(self.offsets[live], lengths)
            yield Batch(
                doc_ids=[self.doc_ids[position] for position in documents],
                lengths=lengths,
                token_ids=self.token_ids[rows],
                columns={name: column[rows] for name, column in self.columns.items()},
                texts=[self._texts[position] for position in documents] if self._texts else None,
                metadata=[self._metadata[position] if self._metadata else b"" for position in documents],
            )

    def _check_ends(self) -> None:
        """What can be checked without reading: no offset of the ends leads outside of an array."""
        ends = {"offsets": self.info.num_vectors, "id_offsets": len(self.arrays["id_bytes"])}
        ends |= {f"{n}_offsets": len(self.arrays[f"{n}_blocks"]) for n in ("texts", "metadata") if self._blobs(n)}
        ends |= {"list_offsets": len(self.lists)} if self.codec else {}
        ends |= {"token_list_offsets": len(self.arrays["token_lists"])} if self.has_token_lists else {}
        for name, end in ends.items():
            if int(self.arrays[name][0]) != 0 or int(self.arrays[name][-1]) != end:
                found = f"expected offsets from 0 to {end}, found {self.arrays[name][0]} to {self.arrays[name][-1]}"
                raise IndexFormatError(found, path=IndexLayout.array(self.folder, name))

    def _decoded(
        self, lists: npt.NDArray[np.uint8], list_offsets: npt.NDArray[np.int64]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Some lists, whose documents are all there."""
        try:
            documents, starts = decode_postings(lists, list_offsets)
        except ValueError as error:
            raise self._damaged("lists", str(error)) from error
        if documents.max(initial=-1) >= len(self) or documents.min(initial=0) < 0:
            raise self._damaged("lists", f"a list names a document outside of 0 to {len(self) - 1}")
        return documents, starts

    def _check_offsets(self) -> None:
        """Those that kernels follow must not lead back: between sound ends, all lead inside."""
        for name in ("offsets", "list_offsets", "token_list_offsets"):
            if name in self.arrays and bool((self.arrays[name][1:] < self.arrays[name][:-1]).any()):
                raise self._damaged(name, "an offset is smaller than the one before it")


def packed_vectors(segment: Segment) -> PackedVectors:
    """The compressed vectors of a segment, as the kernels take them."""
    from colbert_prf.kernels.exact import PackedVectors

    columns = segment.columns
    return PackedVectors(columns["codes"], columns["residuals"], columns["scales"], segment.offsets)


def _forms(info: SegmentInfo, codec: Codec | None) -> dict[str, Form]:
    """The forms of the arrays of a segment, or without a codec of a chunk; texts and metadata where there are any."""
    num_documents, num_vectors = info.num_documents, info.num_vectors
    forms = {
        "offsets": Form.of(np.int64, shape=(num_documents + 1,)),
        "token_ids": Form.of(np.uint16, np.uint32, shape=(num_vectors,)),
        **identifier_forms(num_documents),
    }
    for name in ("texts", "metadata"):
        if f"{name}_blocks" in info.files:
            forms |= blob_forms(name, num_documents)
    if "field_names" in info.files:
        forms |= field_forms()
    if codec is None:
        return {**forms, "vectors": Form.of(np.float16, shape=(num_vectors, None))}
    columns = {name: Form.of(dtype, shape=(num_vectors, *tail)) for name, (dtype, tail) in codec.columns.items()}
    if "token_lists" in info.files or "token_list_offsets" in info.files:
        forms |= {
            "token_lists": Form.of(np.uint8, shape=(None,)),
            "token_list_offsets": Form.of(np.int64, shape=(None,)),
        }
    return {
        **forms,
        **columns,
        "lists": Form.of(np.uint8, shape=(None,)),
        "list_offsets": Form.of(np.int64, shape=(codec.num_centroids + 1,)),
        "frequencies": Form.of(np.uint16, np.uint32, shape=(None,)),
    }
