"""Building an index from a stream of documents, in bounded memory, so that a build can be interrupted and resumed.

The codec must be trained before anything can be compressed, and the stream is read once. So encoded documents are
first spooled as float16 vectors, in chunks under ``building/``. When the stream ends or the spool is full, the codec is
trained on a sample of the spool, and the spool is compressed into segments. From then on a build spools one segment at
a time. ``build.json`` lists what is complete; it is replaced after every chunk and every segment.

Memory: three times the sample (at most 2^21 vectors, 1 GB at dim 128; for 10,000 passages 100 MB, with two bits 200),
or a batch and what a segment writer holds (some 300 MB), whatever the size of the corpus; plus 16 bytes per document,
to refuse an id given twice. Disk: the index and at most 2^25 spooled vectors, 9 GB at dim 128.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain
from typing import TypeVar

import numpy as np

from colbert_prf.encoder import Encoder
from colbert_prf.errors import IndexMismatchError, InputError, whole_number
from colbert_prf.index.batch import batches_of
from colbert_prf.index.build_state import BuildState
from colbert_prf.index.codec import Codec, sample_size_for
from colbert_prf.index.documents import Document, encode_documents
from colbert_prf.index.manifest import Manifest, SegmentInfo, Settings
from colbert_prf.index.sampling import sample_vectors
from colbert_prf.index.segment import Segment
from colbert_prf.index.segment_writer import SEGMENT_VECTORS, compress, write_chunks, write_codec, write_segments
from colbert_prf.index.snapshot import Snapshot, open_codec
from colbert_prf.progress import progress_bar
from colbert_prf.storage.identifiers import SeenIds
from colbert_prf.storage.layout import IndexLayout
from colbert_prf.storage.store import IdCheck, Store

__all__ = ["BuildOptions", "Builder", "create_index"]

SPOOL_VECTORS = 1 << 25
GENERATION = 1

Item = TypeVar("Item")


@dataclass(frozen=True)
class BuildOptions:
    """How an index is built; the index keeps none of it.

    Parameters
    ----------
    codec
        A codec to use instead of training one.
    resume
        Continue an interrupted build; the documents must begin with those already done, which are skipped.
    progress
        Whether progress bars may be shown.
    total
        The number of documents, if known: for the time left, and for the size of the codec if the spool cannot hold
        all documents.
    seed
        The seed of the sample and of k-means.
    """

    codec: Codec | None
    resume: bool
    progress: bool
    total: int | None
    seed: int


def create_index(
    path: str | os.PathLike[str],
    settings: Settings,
    documents: Iterable[Document],
    *,
    encoder: Encoder | None,
    options: BuildOptions,
    make_builder: Callable[[IndexLayout, Settings, BuildOptions], Builder] | None = None,
) -> None:
    """Build an index; its manifest appears when everything else is on the disk.

    Parameters
    ----------
    path
        A new or empty folder, or with ``options.resume`` that of an interrupted build.
    settings
        The settings of the index.
    documents
        Read once.
    encoder
        The encoder of the texts; None if the documents have vectors.
    options
        How to build.
    make_builder
        Makes what builds; :class:`Builder` if left out.

    Raises
    ------
    InputError
        If no index can have these settings, or an option does not suit them.
    StorageError
        If the folder cannot be made, or be written to.
    """
    _check(settings, options)
    store = Store(path, Snapshot)
    with store.creating(resume=options.resume):
        if store.layout.manifest.exists():  # killed after the manifest and before the last line of this function
            shutil.rmtree(store.layout.building)
            return
        builder = None
        try:
            builder = (make_builder or Builder)(store.layout, settings, options)
            builder.run(documents, encoder)
        except Exception:
            is_begun = builder.is_begun if builder else store.layout.build_state.exists()
            if not is_begun:  # nothing worth resuming
                shutil.rmtree(store.layout.building, ignore_errors=True)
                store.layout.remove_unused(())
            raise
        store.publish(builder.manifest())
        shutil.rmtree(store.layout.building)


def _check(settings: Settings, options: BuildOptions) -> None:
    if (fault := settings.fault) is not None:
        raise InputError(fault)
    codec = options.codec
    if not isinstance(codec, Codec | None):
        raise InputError(f"codec must be the codec of another index, such as index.codec, found {codec!r:.80}")
    if codec is not None and (codec.bits, codec.dim) != (settings.bits, settings.dim):
        raise InputError(
            f"the codec is for {codec.bits} bits and dim {codec.dim}, the index for {settings.bits} bits and dim "
            f"{settings.dim}"
        )
    whole_number("seed", options.seed, least=0)
    if options.total is not None:
        whole_number("total", options.total, least=0)


class Builder:
    """A build in progress.

    Parameters
    ----------
    layout
        The layout of the folder.
    settings, options
        As in :func:`create_index`.
    """

    def __init__(self, layout: IndexLayout, settings: Settings, options: BuildOptions) -> None:
        self.layout = layout
        self.settings = settings
        self.options = options
        self.codec = options.codec
        if layout.build_state.exists():
            self.state = BuildState.read(layout, settings)
            self.codec = self._stored_codec()
            return
        layout.building.mkdir(exist_ok=True)
        layout.remove_unused(())
        self.state = BuildState(settings)
        self._save(codec=write_codec(layout, self.codec, generation=GENERATION) if self.codec else None)

    def run(self, documents: Iterable[Document], encoder: Encoder | None) -> None:
        """Read, encode, spool and compress all documents that are not yet done."""
        id_check, progress = IdCheck(), self.options.progress
        verb = "Encoding" if encoder else "Reading"
        with progress_bar(verb, total=self.options.total, shown=progress) as advance:
            advance(self.state.num_documents)
            remaining = id_check.checked(self._skip_done(iter(documents), id_check.seen))
            encoded = _counted(encode_documents(remaining, encoder), lambda document: advance(1))
            batches = batches_of(encoded, self.settings)
            self._compress_if_full()
            for chunk in write_chunks(self.layout, self.settings, batches, first=self.state.next_chunk):
                self._save(chunks=(*self.state.chunks, chunk), next_chunk=self.state.next_chunk + 1)
                self._compress_if_full()
        num_spooled = sum(chunk.num_documents for chunk in self.state.chunks)
        with progress_bar("Compressing", total=num_spooled, shown=progress) as advance:
            self._compress(num_vectors_expected=self.state.num_spooled, advance=advance)

    @property
    def is_begun(self) -> bool:
        """Whether there is anything that a resumed build need not do again."""
        return bool(self.state.chunks or self.state.segments)

    def manifest(self) -> Manifest:
        """Make the manifest of the index, after :meth:`run`."""
        assert self.state.codec is not None
        return Manifest(GENERATION, self.state.segments, self.settings, self.state.codec)

    def _compress_if_full(self) -> None:
        if self.state.num_spooled >= (SEGMENT_VECTORS if self.state.codec else SPOOL_VECTORS):
            self._compress(num_vectors_expected=self._expected_vectors(), advance=_ignore)

    def _expected_vectors(self) -> int:
        """Estimate the vectors of the whole corpus: by the number of documents, or four times those read so far."""
        num_documents, total = sum(chunk.num_documents for chunk in self.state.chunks), self.options.total
        return int(self.state.num_spooled * max(1.0, total / num_documents if total else 4.0))

    def _compress(self, *, num_vectors_expected: int, advance: Callable[[int], object]) -> None:
        """Compress the spool into segments, one segment's chunks at a time."""
        codec = self._trained_codec(self.state.chunks, num_vectors_expected)
        while infos := _chunks_of_a_segment(self.state.chunks):
            chunks = (Segment(self.layout, info, None) for info in infos)
            batches = (compress(batch, codec) for chunk in chunks for batch in chunk.batches())
            counted = _counted(batches, lambda batch: advance(len(batch)))
            segments = write_segments(
                self.layout, self.settings, codec, counted, generation=GENERATION, first=len(self.state.segments)
            )
            self._save(segments=(*self.state.segments, *segments), chunks=self.state.chunks[len(infos) :])
            for info in infos:
                shutil.rmtree(self.layout.chunk(info.name))

    def _trained_codec(self, infos: Iterable[SegmentInfo], num_vectors_expected: int) -> Codec:
        """Train the codec on some chunks, unless there is one."""
        if self.codec is None:
            chunks = [Segment(self.layout, info, None) for info in infos]
            bits, seed = self.settings.bits, self.options.seed
            sample_size = sample_size_for(num_vectors_expected, bits)
            sample = sample_vectors(chunks, sample_size, dim=self.settings.dim, seed=seed)
            self.codec = Codec.train(sample, num_vectors_expected=num_vectors_expected, bits=bits, seed=seed)
            self._save(codec=write_codec(self.layout, self.codec, generation=GENERATION))
        return self.codec

    def _skip_done(self, documents: Iterator[Document], seen: SeenIds) -> Iterator[Document]:
        """Skip the documents already done, which must be the first of the stream."""
        segments = (Segment(self.layout, info, self.codec) for info in self.state.segments)
        chunks = (Segment(self.layout, info, None) for info in self.state.chunks)
        for number, doc_id in enumerate(chain.from_iterable(part.doc_ids for part in chain(segments, chunks))):
            document = next(documents, None)
            if document is None or document.doc_id != doc_id:
                given = "nothing" if document is None else repr(document.doc_id)
                raise IndexMismatchError(
                    f"the interrupted build had {doc_id!r} as document {number}, now it is {given}; resume with the "
                    "same documents in the same order, or remove the folder and start again",
                    path=self.layout.path,
                )
            seen.add(doc_id)
        return documents

    def _stored_codec(self) -> Codec | None:
        if self.state.codec is None:
            return self.codec
        stored = open_codec(self.layout, self.state.codec, self.settings)
        if self.codec is not None and not np.array_equal(stored.centroids, self.codec.centroids):
            raise IndexMismatchError("the interrupted build had another codec; give the same", path=self.layout.path)
        return stored

    def _save(self, **changes: object) -> None:
        self.state = replace(self.state, **changes)  # type: ignore[arg-type]
        self.state.write(self.layout)


def _chunks_of_a_segment(chunks: tuple[SegmentInfo, ...]) -> list[SegmentInfo]:
    """Return as many of the first chunks as fill one segment, and at least one."""
    sizes = np.cumsum([chunk.num_vectors for chunk in chunks])
    return list(chunks[: max(1, int(np.searchsorted(sizes, SEGMENT_VECTORS, side="right")))])


def _counted(items: Iterable[Item], report: Callable[[Item], object]) -> Iterator[Item]:
    for item in items:
        yield item
        report(item)


def _ignore(count: int) -> None:
    """Advance no bar, because the bar of the encoder is on the screen."""
