"""Reading a segment of a lexical index: mapped arrays, and which of its documents are deleted."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from colbert_prf.baselines.lexical.manifest import LexicalSegmentInfo
from colbert_prf.errors import IndexFormatError
from colbert_prf.storage.arrays import check_array, open_array
from colbert_prf.storage.blobs import Blobs, blob_forms
from colbert_prf.storage.forms import Form, check_forms
from colbert_prf.storage.identifiers import Identifiers, identifier_forms
from colbert_prf.storage.layout import IndexLayout

__all__ = ["LexicalSegment", "Postings"]


class Postings(NamedTuple):
    """The live documents of a term, ascending, and how often it is in each."""

    positions: npt.NDArray[np.int64]
    frequencies: npt.NDArray[np.int64]


class LexicalSegment:
    """An immutable run of documents; positions count from 0 within it.

    Parameters
    ----------
    layout
        Of the lexical index.
    info
        What the manifest says of it.
    """

    def __init__(self, layout: IndexLayout, info: LexicalSegmentInfo) -> None:
        self.info = info
        self.folder = layout.folder(info.name)
        check_forms(info.files, _forms(info), self.folder)
        arrays = {name: open_array(layout.array(self.folder, name), item) for name, item in info.files.items()}
        self.arrays = arrays
        self.offsets: npt.NDArray[np.int64] = arrays["offsets"]
        self.terms: npt.NDArray[np.int32] = arrays["terms"]
        self.frequencies: npt.NDArray[np.int32] = arrays["frequencies"]
        self.lengths: npt.NDArray[np.int64] = arrays["lengths"]
        self.checksums: npt.NDArray[np.uint32] = arrays["checksums"]
        self.doc_ids = Identifiers(arrays, folder=self.folder)
        self.vocabulary = Identifiers(arrays, folder=self.folder, prefix="term_")
        self._posting_offsets = arrays["posting_offsets"]
        self._posting_documents = arrays["posting_documents"]
        self._posting_frequencies = arrays["posting_frequencies"]
        self._texts = self._blobs()
        self.deleted = self._read_deleted(layout)
        self._has_deleted = bool(self.deleted.any())

    def __len__(self) -> int:
        return self.info.num_documents

    def postings(self, term: str) -> Postings:
        """The live documents of a term."""
        number = self.vocabulary.find(term)
        if number is None:
            return Postings(np.empty(0, np.int64), np.empty(0, np.int64))
        rows = slice(int(self._posting_offsets[number]), int(self._posting_offsets[number + 1]))
        positions = self._posting_documents[rows].astype(np.int64)
        frequencies = self._posting_frequencies[rows].astype(np.int64)
        if len(positions) and positions[-1] >= len(self):
            path = IndexLayout.array(self.folder, "posting_documents")
            raise IndexFormatError(f"position {positions[-1]} of {len(self)} documents: damaged", path=path)
        if self._has_deleted:
            live = ~self.deleted[positions]
            return Postings(positions[live], frequencies[live])
        return Postings(positions, frequencies)

    def term_frequencies(self, position: int) -> dict[str, int]:
        """The terms of a document and how often each is in it."""
        rows = slice(int(self.offsets[position]), int(self.offsets[position + 1]))
        terms, frequencies = self.terms[rows].tolist(), self.frequencies[rows].tolist()
        return {self.vocabulary[term]: frequency for term, frequency in zip(terms, frequencies, strict=True)}

    def text(self, position: int) -> str | None:
        """The text of a document, where texts are kept."""
        return self._texts.text(position) if self._texts is not None else None

    def check(self, layout: IndexLayout) -> None:
        """Compare every file with its checksum."""
        for name, info in self.info.files.items():
            check_array(layout.array(self.folder, name), info)

    def _blobs(self) -> Blobs | None:
        if "texts_blocks" not in self.arrays:
            return None
        path = IndexLayout.array(self.folder, "texts_blocks")
        return Blobs(self.arrays["texts_blocks"], self.arrays["texts_offsets"], count=len(self), path=path)

    def _read_deleted(self, layout: IndexLayout) -> npt.NDArray[np.bool_]:
        deletions = self.info.deletions
        if deletions is None:
            return np.zeros(len(self), dtype=np.bool_)
        folder = layout.folder(deletions.name)
        check_forms(deletions.files, {"deleted": Form.of(np.uint8, shape=(-(-len(self) // 8),))}, folder)
        path = layout.array(folder, self.info.name)
        check_array(path, deletions.files["deleted"])
        packed = open_array(path, deletions.files["deleted"])
        return np.unpackbits(packed, count=len(self)).astype(np.bool_)


def _forms(info: LexicalSegmentInfo) -> dict[str, Form]:
    """The forms of the arrays of a segment; of texts where there are any."""
    count, num_pairs, num_terms = info.num_documents, _length(info, "terms"), _length(info, "term_id_order")
    forms = {
        "offsets": Form.of(np.int64, shape=(count + 1,)),
        "terms": Form.of(np.int32, shape=(num_pairs,)),
        "frequencies": Form.of(np.int32, shape=(num_pairs,)),
        "lengths": Form.of(np.int64, shape=(count,)),
        "checksums": Form.of(np.uint32, shape=(count,)),
        "posting_offsets": Form.of(np.int64, shape=(num_terms + 1,)),
        "posting_documents": Form.of(np.uint32, shape=(num_pairs,)),
        "posting_frequencies": Form.of(np.int32, shape=(num_pairs,)),
        **identifier_forms(count),
        **identifier_forms(num_terms, prefix="term_"),
    }
    return {**forms, **blob_forms("texts", count)} if "texts_blocks" in info.files else forms


def _length(info: LexicalSegmentInfo, name: str) -> int:
    """The length of an array that other arrays go by; any, if it is missing."""
    return next(iter(info.files[name].shape), 0) if name in info.files else 0
