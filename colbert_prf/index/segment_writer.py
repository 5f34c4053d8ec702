"""Writing a stream of batches as segments of bounded size.

Batches go straight to disk; arrays that depend on all documents of a segment are written last.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from time import monotonic
from types import TracebackType

import numpy as np
import numpy.typing as npt

from colbert_prf.index.batch import Batch
from colbert_prf.index.codec import Codec
from colbert_prf.index.manifest import CodecInfo, SegmentInfo, Settings
from colbert_prf.kernels.postings import encode_postings
from colbert_prf.storage.arrays import Array, ArrayWriter, write_arrays
from colbert_prf.storage.blobs import BlobWriter
from colbert_prf.storage.durable import sync_folder
from colbert_prf.storage.identifiers import identifier_arrays
from colbert_prf.storage.layout import IndexLayout
from colbert_prf.storage.metadata import MetadataWriter

__all__ = [
    "CHUNK_VECTORS",
    "SEGMENT_VECTORS",
    "SegmentWriter",
    "compress",
    "document_frequencies",
    "token_dtype",
    "token_postings",
    "write_chunks",
    "write_codec",
    "write_segments",
]

SEGMENT_VECTORS = 1 << 22
"""The vectors of a full segment: some 50,000 passages, 160 MB at 2 bits."""
CHUNK_VECTORS = 1 << 18
"""The vectors of a full chunk of the spool: some 3,000 passages, 67 MB."""
CHUNK_SECONDS, CHUNK_SHARE = 5.0, 0.02
"""A chunk is also closed after so many seconds, or after this share of the time of the build if that is more. So an
interrupted build loses at most seconds or 2 % of its work, and a slow one has hundreds of chunks, not thousands."""


def write_segments(
    layout: IndexLayout, settings: Settings, codec: Codec, batches: Iterable[Batch], *, generation: int, first: int = 0
) -> Iterator[SegmentInfo]:
    """Write batches as segments, and yield each segment as soon as it is on the disk.

    Parameters
    ----------
    layout
        The layout of the index.
    settings
        The settings of the index.
    codec
        The codec whose columns the batches have.
    batches
        Read as needed.
    generation
        The generation that will name the segments in its manifest.
    first
        The number of the first segment.
    """

    def folder(number: int) -> Path:
        return layout.folder(layout.segment_name(generation=generation, number=first + number))

    return _write_parts(folder, settings, codec, batches, SEGMENT_VECTORS)


def write_chunks(
    layout: IndexLayout, settings: Settings, batches: Iterable[Batch], *, first: int = 0
) -> Iterator[SegmentInfo]:
    """Write batches of float16 vectors as spooled chunks, and yield each chunk as soon as it is on the disk."""
    start = chunk_start = monotonic()

    def is_due() -> bool:
        nonlocal chunk_start
        now = monotonic()
        due = now - chunk_start >= max(CHUNK_SECONDS, CHUNK_SHARE * (now - start))
        chunk_start = now if due else chunk_start
        return due

    def folder(number: int) -> Path:
        return layout.chunk(layout.chunk_name(first + number))

    return _write_parts(folder, settings, None, batches, CHUNK_VECTORS, is_due)


def _write_parts(
    folder: Callable[[int], Path],
    settings: Settings,
    codec: Codec | None,
    batches: Iterable[Batch],
    limit: int,
    is_due: Callable[[], bool] = lambda: False,
) -> Iterator[SegmentInfo]:
    """Write parts of at most ``limit`` vectors; a part that is due is closed before the next batch is read."""
    remaining = (batch for batch in batches if len(batch))
    batch = next(remaining, None)
    number = 0
    while batch is not None:
        with SegmentWriter(folder(number), settings, codec) as writer:
            while batch is not None and (not writer.num_documents or writer.num_vectors + batch.num_vectors <= limit):
                writer.append(batch)
                batch = None if is_due() else next(remaining, None)
            info = writer.finish()
        yield info
        number += 1
        batch = next(remaining, None) if batch is None else batch


def compress(batch: Batch, codec: Codec) -> Batch:
    """Replace the float16 vectors of a batch by the columns of a codec."""
    return replace(batch, columns=codec.encode(batch.columns["vectors"].astype(np.float32)))


def write_codec(layout: IndexLayout, codec: Codec, *, generation: int) -> CodecInfo:
    """Write a codec to a folder of its own."""
    name = layout.codec_name(generation)
    folder = layout.folder(name)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    files = write_arrays(folder, codec.arrays)
    sync_folder(folder)
    sync_folder(layout.path)
    return CodecInfo(name, codec.num_centroids, codec.trained_for, files)


def token_dtype(vocabulary_size: int) -> type[np.uint16] | type[np.uint32]:
    """Return the dtype of token ids: two bytes if the vocabulary allows, otherwise four."""
    return np.uint16 if vocabulary_size <= 1 << 16 else np.uint32


class SegmentWriter:
    """Writes the folder of a segment, which nobody reads before a manifest names it.

    Without a codec it writes a chunk of the spool: float16 vectors, no inverted lists, no document frequencies.

    The writer holds the ids and metadata of the documents and the codes and tokens of the vectors, so the size of a
    segment bounds its memory.

    Parameters
    ----------
    folder
        A new folder; what a killed writer left there is removed.
    settings
        The settings of the index.
    codec
        The codec whose columns the batches have; None for float16 vectors.
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
        self._columns = {name: self._writer(name, dtype, row_shape) for name, (dtype, row_shape) in columns.items()}
        self._columns["token_ids"] = self._writer("token_ids", token_dtype(settings.vocabulary_size), ())
        self._texts = BlobWriter(folder, "texts") if settings.texts else None
        self._metadata = MetadataWriter(folder, columns=codec is not None)
        self._doc_ids: list[str] = []
        self._lengths: list[npt.NDArray[np.int64]] = []
        self._codes: list[Array] = []
        self._tokens: list[Array] = []
        self._frequencies = np.zeros(settings.vocabulary_size, dtype=np.uint32)

    def append(self, batch: Batch) -> None:
        """Add the documents of a batch."""
        for name, rows in {**batch.columns, "token_ids": batch.token_ids}.items():
            self._columns[name].append(rows)
        if self._texts is not None:
            assert batch.texts is not None, "an index that keeps texts gets texts"
            for text in batch.texts:
                self._texts.append(text)
        for blob in batch.metadata:
            self._metadata.append(blob)
        self._doc_ids += batch.doc_ids
        self._lengths.append(batch.lengths)
        if self._codec:
            self._codes.append(batch.columns["codes"])
            self._tokens.append(batch.token_ids.astype(token_dtype(self._settings.vocabulary_size)))
            self._frequencies += document_frequencies(batch.token_ids, batch.lengths, self._settings.vocabulary_size)
        self.num_documents += len(batch)
        self.num_vectors += batch.num_vectors

    def finish(self) -> SegmentInfo:
        """Write the arrays that depend on all documents, and wait for the disk."""
        files = {name: writer.finish() for name, writer in self._columns.items()}
        files |= self._texts.finish() if self._texts else {}
        files |= self._metadata.finish()
        offsets = np.cumsum(np.concatenate([[0], *self._lengths]), dtype=np.int64)
        arrays = {"offsets": offsets, **identifier_arrays(self._doc_ids)}
        if self._codec:
            codes, tokens = (
                np.concatenate(parts) if parts else np.empty(0, dtype=np.uint16)
                for parts in (self._codes, self._tokens)
            )
            arrays["lists"], arrays["list_offsets"] = encode_postings(codes, offsets, self._codec.num_centroids)
            arrays["frequencies"] = _shortest(self._frequencies)
            arrays["token_lists"], arrays["token_list_offsets"] = token_postings(tokens, offsets, arrays["frequencies"])
        files |= write_arrays(self._folder, arrays)
        sync_folder(self._folder)
        sync_folder(self._folder.parent)
        return SegmentInfo(self._folder.name, self.num_documents, files, num_vectors=self.num_vectors)

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

    def _writer(self, name: str, dtype: npt.DTypeLike, row_shape: tuple[int, ...]) -> ArrayWriter:
        return ArrayWriter(IndexLayout.array(self._folder, name), dtype, row_shape)


def document_frequencies(
    token_ids: Array, lengths: npt.NDArray[np.int64], vocabulary_size: int
) -> npt.NDArray[np.uint32]:
    """Count the documents with each token, of shape (vocabulary_size,).

    Examples
    --------
    >>> document_frequencies(np.array([1, 1, 2, 1]), np.array([2, 0, 2]), 4).tolist()
    [0, 2, 1, 0]
    """
    documents = np.repeat(np.arange(len(lengths), dtype=np.int64), lengths)
    pairs = np.unique(documents * vocabulary_size + token_ids)
    return np.bincount(pairs % vocabulary_size, minlength=vocabulary_size).astype(np.uint32)


def token_postings(
    token_ids: Array, offsets: npt.NDArray[np.int64], frequencies: Array
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """List the documents of each token that occurs at all; see :func:`encode_postings`.

    Parameters
    ----------
    token_ids
        The token of each vector, of shape (num_vectors,).
    offsets
        Document ``i`` owns the vectors ``offsets[i]:offsets[i + 1]``.
    frequencies
        The number of documents with each token; the lists are those of tokens with at least one, in this order.

    Examples
    --------
    >>> lists, list_offsets = token_postings(np.array([3, 3, 2]), np.array([0, 2, 3]), np.array([0, 0, 1, 1]))
    >>> lists.tolist(), list_offsets.tolist()
    ([1, 0], [0, 1, 2])
    """
    occurs = frequencies > 0
    ranks = np.cumsum(occurs, dtype=np.uint32) - np.uint32(1)
    return encode_postings(ranks[token_ids], offsets, int(occurs.sum()))


def _shortest(frequencies: npt.NDArray[np.uint32]) -> Array:
    """Drop the zeros at the end, and use two bytes for each number if they suffice."""
    used = frequencies[: int(frequencies.nonzero()[0].max(initial=-1)) + 1]
    return used.astype(np.uint16 if used.max(initial=0) < 1 << 16 else np.uint32)
