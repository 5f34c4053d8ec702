"""What an index folder tells of its documents without their vectors: ids, tokens, texts, metadata and frequencies.

A process that searches by asking others opens no more than this.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from colbert_prf.index.manifest import DeletionInfo, Manifest, SegmentInfo
from colbert_prf.index.passages import Passages
from colbert_prf.index.segment_writer import token_dtype
from colbert_prf.storage.array_specs import ArraySpec
from colbert_prf.storage.arrays import ArrayInfo
from colbert_prf.storage.blobs import blob_specs
from colbert_prf.storage.identifiers import identifier_specs
from colbert_prf.storage.layout import IndexLayout
from colbert_prf.storage.metadata import metadata_specs
from colbert_prf.storage.segment import StoredSegment
from colbert_prf.storage.snapshot import StoredSnapshot
from colbert_prf.types import TokenIds

__all__ = ["Catalogue", "CatalogueSegment", "catalogue_specs"]


class CatalogueSegment(StoredSegment):
    """A segment without its vectors and lists.

    Parameters
    ----------
    layout, folder, info, specs
        As in :class:`~colbert_prf.storage.segment.StoredSegment`.

    Attributes
    ----------
    token_ids : array
        Of shape (num_vectors,).
    offsets : array
        Document ``i`` owns the vectors ``offsets[i]:offsets[i + 1]``; int64 of shape (num_documents + 1,).
    """

    DELETION_INFO = DeletionInfo
    info: SegmentInfo

    def __init__(self, layout: IndexLayout, folder: Path, info: SegmentInfo, specs: dict[str, ArraySpec]) -> None:
        super().__init__(layout, folder, info, specs)
        self.token_ids = self.arrays["token_ids"]
        self.offsets: npt.NDArray[np.int64] = self.arrays["offsets"]

    @classmethod
    def open(cls, layout: IndexLayout, info: SegmentInfo) -> CatalogueSegment:
        """Open these files of a segment alone; the others need not even exist here."""
        specs = catalogue_specs(info)
        files = {name: file for name, file in info.files.items() if name in specs}
        segment = cls(layout, layout.folder(info.name), replace(info, files=files), specs)
        segment.info = info
        return segment

    def tokens(self, rows: slice | npt.NDArray[Any]) -> TokenIds:
        """Read the tokens of some vectors, and check that they occur in the segment."""
        tokens, num_tokens = self.token_ids[rows], len(self.arrays["frequencies"])
        if tokens.size and tokens.max() >= num_tokens:
            raise self._damaged("token_ids", f"a token is {tokens.max()}, the segment has none from {num_tokens} on")
        return tokens.astype(np.int32)

    def check_vocabulary(self, size: int) -> None:
        """Refuse arrays that were written for a vocabulary of another size."""
        expected, dtype = np.dtype(token_dtype(size)), self.token_ids.dtype
        if dtype != expected:
            raise self._damaged("token_ids", f"for a vocabulary of {size} it must be {expected}, found {dtype}")
        num_tokens = max(len(self.arrays["frequencies"]), len(self.deletion_arrays.get("frequencies", ())))
        if num_tokens > size:
            raise self._damaged("frequencies", f"it counts {num_tokens} tokens of a vocabulary of {size}")

    def add_frequencies(self, total: npt.NDArray[np.int64]) -> None:
        """Add the document frequencies among the live documents to those of other segments."""
        for array, sign in ((self.arrays["frequencies"], 1), (self.deletion_arrays.get("frequencies"), -1)):
            if array is not None:
                total[: len(array)] += sign * array.astype(np.int64)

    def deletion_specs(self) -> dict[str, ArraySpec]:
        """Specify the tombstones and the document frequencies among the deleted documents."""
        return {**super().deletion_specs(), "frequencies": ArraySpec.of(np.uint32, shape=(None,))}


def catalogue_specs(info: SegmentInfo) -> dict[str, ArraySpec]:
    """Specify the arrays of a catalogue; those of texts, metadata and its columns only if the files exist."""
    specs = {
        "offsets": ArraySpec.of(np.int64, shape=(info.num_documents + 1,)),
        "token_ids": ArraySpec.of(np.uint16, np.uint32, shape=(info.num_vectors,)),
        "frequencies": ArraySpec.of(np.uint16, np.uint32, shape=(None,)),
        **identifier_specs(info.num_documents),
        **metadata_specs(info.files, info.num_documents),
    }
    return specs | (blob_specs("texts", info.num_documents) if "texts_blocks" in info.files else {})


SegmentType = TypeVar("SegmentType", bound=CatalogueSegment)


class Catalogue(StoredSnapshot[SegmentType]):
    """One generation of an index, as far as its catalogue goes."""

    MANIFEST = Manifest
    manifest: Manifest

    def array_files(self) -> dict[Path, ArrayInfo]:
        """Return every array file of the generation, with the manifest's description of it."""
        folder = self.layout.folder(self.manifest.codec.name)
        codec = {self.layout.array(folder, name): info for name, info in self.manifest.codec.files.items()}
        return codec | super().array_files()

    @cached_property
    def special_ids(self) -> frozenset[int]:
        """Token ids that carry no word."""
        return frozenset(self.manifest.settings.special_ids)

    @property
    def passages(self) -> Passages | None:
        """How texts were split into passages; None if they were not."""
        return self.manifest.settings.passages

    def token_ids(self, position: int) -> TokenIds:
        """Read the token of each vector of a document, of shape (num_tokens,)."""
        segment, local_position = self.locate(position)
        start, end = segment.offsets[local_position : local_position + 2].tolist()
        return segment.tokens(slice(start, end))

    def lengths(self, positions: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the number of vectors of each of several documents."""
        lengths = np.zeros(len(positions), np.int64)
        for segment, rows, local_positions in self.by_segment(positions):
            lengths[rows] = segment.offsets[local_positions + 1] - segment.offsets[local_positions]
        return lengths

    @cached_property
    def document_frequencies(self) -> npt.NDArray[np.int64]:
        """The number of live documents with each token, of shape (vocabulary_size,)."""
        total = np.zeros(self.manifest.settings.vocabulary_size, dtype=np.int64)
        for segment in self.segments:
            segment.add_frequencies(total)
        return total
