"""Writing a segment: batches go straight to disk; what has to be known of all documents is written last."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from types import TracebackType

import numpy as np
import numpy.typing as npt

from colbert_prf.index.batch import Batch
from colbert_prf.index.codec import Codec
from colbert_prf.index.manifest import SegmentInfo, Settings
from colbert_prf.kernels.postings import encode_postings
from colbert_prf.storage.arrays import Array, ArrayInfo, ArrayWriter, write_array
from colbert_prf.storage.blobs import BlobWriter
from colbert_prf.storage.durable import sync_folder
from colbert_prf.storage.fields import Fields
from colbert_prf.storage.identifiers import identifier_arrays
from colbert_prf.storage.layout import IndexLayout

__all__ = ["SegmentWriter", "document_frequencies", "token_dtype"]


def token_dtype(vocabulary_size: int) -> type[np.uint16] | type[np.uint32]:
    """Two bytes for a token id where the vocabulary allows, else four."""
    return np.uint16 if vocabulary_size <= 1 << 16 else np.uint32


class SegmentWriter:
    """Writes the folder of a segment; nobody reads it before a manifest names it.

    Without a codec it writes a chunk of the spool: float16 vectors, no inverted lists, no document frequencies.

    It holds the ids and metadata of its documents and the codes of its vectors, so memory is bounded by the size of a
    segment.

    Parameters
    ----------
    folder
        To be made; what a killed writer left there is removed.
    settings
        Of the index.
    codec
        Whose columns the batches have; None for float16 vectors.
    """

    def __init__(self, folder: Path, settings: Settings, codec: Codec | None) -> None:
        self.num_documents = 0
        self.num_vectors = 0
        self._folder = folder
        self._settings = settings
        self._codec = codec
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        columns = codec.columns if codec else {"vectors": (np.float16, (settings.dim,))}
        self._columns = {name: self._writer(name, dtype, tail) for name, (dtype, tail) in columns.items()}
        self._columns["token_ids"] = self._writer("token_ids", token_dtype(settings.vocabulary_size), ())
        self._texts = BlobWriter(folder, "texts") if settings.texts else None
        self._metadata: BlobWriter | None = None
        self._metadata_blobs: list[bytes] = []
        self._doc_ids: list[str] = []
        self._lengths: list[npt.NDArray[np.int64]] = []
        self._codes: list[Array] = []
        self._frequencies = np.zeros(settings.vocabulary_size, dtype=np.uint32)

    def append(self, batch: Batch) -> None:
        """Add documents."""
        for name, rows in {**batch.columns, "token_ids": batch.token_ids}.items():
            self._columns[name].append(rows)
        if self._texts is not None:
            assert batch.texts is not None, "an index that keeps texts gets texts"
            for text in batch.texts:
                self._texts.append(text)
        self._append_metadata(batch)
        self._doc_ids += batch.doc_ids
        self._lengths.append(batch.lengths)
        if self._codec:
            self._metadata_blobs += batch.metadata
            self._codes.append(batch.columns["codes"])
            self._frequencies += document_frequencies(batch.token_ids, batch.lengths, self._settings.vocabulary_size)
        self.num_documents += len(batch)
        self.num_vectors += batch.num_vectors

    def finish(self) -> SegmentInfo:
        """Write the rest and wait for the disk."""
        files = {name: writer.finish() for name, writer in self._columns.items()}
        for blobs in (self._texts, self._metadata):
            files |= blobs.finish() if blobs else {}
        offsets = np.cumsum(np.concatenate([[0], *self._lengths]), dtype=np.int64)
        arrays = {"offsets": offsets, **identifier_arrays(self._doc_ids)}
        if self._codec:
            lists = np.concatenate(self._codes) if self._codes else np.empty(0, dtype=np.uint16)
            arrays["lists"], arrays["list_offsets"] = encode_postings(lists, offsets, self._codec.num_centroids)
            arrays["frequencies"] = _shortest(self._frequencies)
            if self._metadata:
                fields = Fields.of(json.loads(blob) if blob else {} for blob in self._metadata_blobs)
                files |= fields.write(self._folder)
        files |= {name: self._write(name, array) for name, array in arrays.items()}
        sync_folder(self._folder)
        sync_folder(self._folder.parent)
        return SegmentInfo(self._folder.name, self.num_documents, self.num_vectors, files)

    def __enter__(self) -> SegmentWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for writer in (*self._columns.values(), self._texts, self._metadata):
            if writer is not None:
                writer.close()
        if kind is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _append_metadata(self, batch: Batch) -> None:
        """Write metadata from the first document on that has any, with nothing for those before it."""
        if self._metadata is None and any(batch.metadata):
            self._metadata = BlobWriter(self._folder, "metadata")
            for _ in range(self.num_documents):
                self._metadata.append(b"")
        if self._metadata is not None:
            for blob in batch.metadata:
                self._metadata.append(blob)

    def _writer(self, name: str, dtype: npt.DTypeLike, tail: tuple[int, ...]) -> ArrayWriter:
        return ArrayWriter(IndexLayout.array(self._folder, name), dtype, tail)

    def _write(self, name: str, array: Array) -> ArrayInfo:
        return write_array(IndexLayout.array(self._folder, name), array)


def document_frequencies(
    token_ids: Array, lengths: npt.NDArray[np.int64], vocabulary_size: int
) -> npt.NDArray[np.uint32]:
    """In how many documents each token is, of shape (vocabulary_size,).

    Examples
    --------
    >>> document_frequencies(np.array([1, 1, 2, 1]), np.array([2, 0, 2]), 4).tolist()
    [0, 2, 1, 0]
    """
    documents = np.repeat(np.arange(len(lengths), dtype=np.int64), lengths)
    pairs = np.unique(documents * vocabulary_size + token_ids)
    return np.bincount(pairs % vocabulary_size, minlength=vocabulary_size).astype(np.uint32)


def _shortest(frequencies: npt.NDArray[np.uint32]) -> Array:
    """Without the zeros at the end, and in two bytes where that is enough."""
    used = frequencies[: int(frequencies.nonzero()[0].max(initial=-1)) + 1]
    return used.astype(np.uint16 if used.max(initial=0) < 1 << 16 else np.uint32)
