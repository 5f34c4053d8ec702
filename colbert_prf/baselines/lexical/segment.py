"""Reading a segment of a lexical index: mapped arrays, and which of its documents are deleted."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from colbert_prf.storage.array_specs import ArraySpec
from colbert_prf.storage.blobs import blob_specs
from colbert_prf.storage.identifiers import Identifiers, identifier_specs
from colbert_prf.storage.layout import IndexLayout
from colbert_prf.storage.manifest import SegmentInfo
from colbert_prf.storage.metadata import metadata_specs
from colbert_prf.storage.segment import StoredSegment

__all__ = ["LexicalSegment", "Postings"]


class Postings(NamedTuple):
    """The live documents of a term, ascending, and how often it is in each."""

    positions: npt.NDArray[np.int64]
    frequencies: npt.NDArray[np.int64]


class LexicalSegment(StoredSegment):
    """A segment of a lexical index: terms by document, and documents by term.

    Parameters
    ----------
    layout
        Of the lexical index.
    info
        What the manifest says of it.
    """

    def __init__(self, layout: IndexLayout, info: SegmentInfo) -> None:
        super().__init__(layout, layout.folder(info.name), info, _specs(info))
        arrays = self.arrays
        self.offsets: npt.NDArray[np.int64] = arrays["offsets"]
        self.terms: npt.NDArray[np.int32] = arrays["terms"]
        self.frequencies: npt.NDArray[np.int32] = arrays["frequencies"]
        self.lengths: npt.NDArray[np.int64] = arrays["lengths"]
        self.checksums: npt.NDArray[np.uint32] = arrays["checksums"]
        self.vocabulary = Identifiers(arrays, folder=self.folder, prefix="term_")
        self._posting_offsets = arrays["posting_offsets"]
        self._posting_documents = arrays["posting_documents"]
        self._posting_frequencies = arrays["posting_frequencies"]
        self._has_deleted = bool(self.deleted.any())

    def postings(self, term: str) -> Postings:
        """The live documents of a term."""
        number = self.vocabulary.find(term)
        if number is None:
            return Postings(np.empty(0, np.int64), np.empty(0, np.int64))
        rows = slice(int(self._posting_offsets[number]), int(self._posting_offsets[number + 1]))
        positions = self._posting_documents[rows].astype(np.int64)
        frequencies = self._posting_frequencies[rows].astype(np.int64)
        if (largest := int(positions.max(initial=-1))) >= len(self):
            raise self._damaged("posting_documents", f"position {largest} of {len(self)} documents")
        if self._has_deleted:
            live = ~self.deleted[positions]
            return Postings(positions[live], frequencies[live])
        return Postings(positions, frequencies)

    def term_frequencies(self, position: int) -> dict[str, int]:
        """The terms of a document and how often each is in it."""
        rows = slice(int(self.offsets[position]), int(self.offsets[position + 1]))
        terms, num_terms = self.terms[rows], len(self.vocabulary)
        if terms.min(initial=0) < 0 or terms.max(initial=-1) >= num_terms:
            raise self._damaged("terms", f"a term of document {position} is not among the {num_terms}")
        frequencies = self.frequencies[rows].tolist()
        return {self.vocabulary[term]: frequency for term, frequency in zip(terms.tolist(), frequencies, strict=True)}


def _specs(info: SegmentInfo) -> dict[str, ArraySpec]:
    """Specify the arrays of a segment; texts only if the files exist."""
    count, num_pairs, num_terms = info.num_documents, _length(info, "terms"), _length(info, "term_id_order")
    specs = {
        "offsets": ArraySpec.of(np.int64, shape=(count + 1,)),
        "terms": ArraySpec.of(np.int32, shape=(num_pairs,)),
        "frequencies": ArraySpec.of(np.int32, shape=(num_pairs,)),
        "lengths": ArraySpec.of(np.int64, shape=(count,)),
        "checksums": ArraySpec.of(np.uint32, shape=(count,)),
        "posting_offsets": ArraySpec.of(np.int64, shape=(num_terms + 1,)),
        "posting_documents": ArraySpec.of(np.uint32, shape=(num_pairs,)),
        "posting_frequencies": ArraySpec.of(np.int32, shape=(num_pairs,)),
        **identifier_specs(count),
        **identifier_specs(num_terms, prefix="term_"),
        **metadata_specs(info.files, count),
    }
    return {**specs, **blob_specs("texts", count)} if "texts_blocks" in info.files else specs


def _length(info: SegmentInfo, name: str) -> int:
    """The length of an array that other arrays go by; any, if it is missing."""
    return next(iter(info.files[name].shape), 0) if name in info.files else 0
