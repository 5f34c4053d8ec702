"""Creating an index from a stream, in bounded memory, so that it can be interrupted and resumed.

The codec must be trained before anything can be compressed, and the stream is read once. So encoded documents are
spooled as float16 vectors in chunks under ``building/``; when the stream ends, or the spool is full, the codec is
trained on a sample of the spool and the spool compressed into segments; from then on a segment's worth is spooled at a
time.
``build.json`` says what is whole, and is replaced after every chunk and every segment.

Memory: the sample three times over (at most 2^21 vectors, 1 GB at dim 128; for 10,000 passages 100 MB, with one or two
bits 200), or a batch and what a segment writer holds (some 300 MB), whatever the corpus; plus 16 bytes per document, to
refuse an id given twice. Disk: besides the index at most 2^25 spooled vectors, 9 GB at dim 128.
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
from colbert_prf.errors import IndexMismatchError, InputError
from colbert_prf.index.batch import batches_of
from colbert_prf.index.build_state import BuildState
from colbert_prf.index.codec import Codec, sample_size_for
from colbert_prf.index.manifest import Manifest, SegmentInfo, Settings
from colbert_prf.index.records import Record, encode_records
from colbert_prf.index.sampling import sample_vectors
from colbert_prf.index.segment import Segment
from colbert_prf.index.segment_writer import SEGMENT_VECTORS, compress, write_chunks, write_codec, write_segments
from colbert_prf.index.snapshot import Snapshot, open_codec
from colbert_prf.progress import progress_bar
from colbert_prf.storage.identifiers import SeenIds
from colbert_prf.storage.layout import IndexLayout
from colbert_prf.storage.store import Intake, Store

__all__ = ["BuildOptions", "Builder", "create_index"]

SPOOL_VECTORS = 1 << 25
GENERATION = 1

Thing = TypeVar("Thing")


@dataclass(frozen=True)
class BuildOptions:
    """How an index is built; none of it is kept.

    Parameters
    ----------
    codec
        To use instead of training one.
    resume
        Continue an interrupted build; the records must begin with the documents already done, which are skipped.
    progress
        Whether bars may be shown.
    total
        The number of documents, if known: for the time left, and for the size of the codec where the spool is too small
        for all.
    seed
        Of the sample and of k-means.
    """

    codec: Codec | None
    resume: bool
    progress: bool
    total: int | None
    seed: int


def create_index(
    path: str | os.PathLike[str],
    settings: Settings,
    records: Iterable[Record],
    *,
    encoder: Encoder | None,
    options: BuildOptions,
) -> None:
    """Build an index; its manifest appears when everything else is on the disk.

    Parameters
    ----------
    path
        A folder that is not there, or empty, or with ``options.resume`` that of an interrupted build.
    settings
        Of the index to be.
    records
        The documents, read once.
    encoder
        What makes vectors of texts; None if the records have vectors.
    options
        How.

    Raises
    ------
    InputError
        If no index has such settings, or the codec is not for such an index.
    StorageError
        If the folder cannot be made, or be written to.
    """
    if (fault := settings.fault) is not None:
        raise InputError(fault)
    codec = options.codec
    if codec is not None and (codec.bits, codec.dim) != (settings.bits, settings.dim):
        raise InputError(
            f"the codec is for {codec.bits} bits and dim {codec.dim}, the index for {settings.bits} bits and dim "
            f"{settings.dim}"
        )
    if options.seed < 0:
        raise InputError(f"seed must be at least 0, found {options.seed}")
    store = Store(path, Snapshot)
    with store.creating(resume=options.resume):
        if store.layout.manifest.exists():  # killed after the manifest and before the last line of this function
            shutil.rmtree(store.layout.building)
            return
        builder = None
        try:
            builder = Builder(store.layout, settings, options)
            builder.run(records, encoder)
        except Exception:
            begun = builder.state.chunks or builder.state.segments if builder else store.layout.build_state.exists()
            if not begun:  # nothing worth resuming
                shutil.rmtree(store.layout.building, ignore_errors=True)
                store.layout.remove_unused(())
            raise
        store.publish(builder.manifest())
        shutil.rmtree(store.layout.building)


class Builder:
    """A build under way.

    Parameters
    ----------
    layout
        Of the folder.
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
        given = write_codec(layout, self.codec, generation=GENERATION) if self.codec else None
        self._save(codec=given)

    def run(self, records: Iterable[Record], encoder: Encoder | None) -> None:
        """Read, encode, spool and compress everything that is not yet done."""
        intake, progress = Intake(), self.options.progress
        verb = "Encoding" if encoder else "Reading"
        with progress_bar(verb, total=self.options.total, shown=progress) as advance:
            advance(self.state.num_documents)
            new = intake.checked(self._skip(iter(records), intake.seen))
            batches = batches_of(_counted(encode_records(new, encoder), lambda record: advance(1)), self.settings)
            self._compress_if_full()
            for chunk in write_chunks(self.layout, self.settings, batches, first=self.state.next_chunk):
                self._save(chunks=(*self.state.chunks, chunk), next_chunk=self.state.next_chunk + 1)
                self._compress_if_full()
        waiting = sum(chunk.num_documents for chunk in self.state.chunks)
        with progress_bar("Compressing", total=waiting, shown=progress) as advance:
            self._compress(expected=self.state.num_spooled, advance=advance)

    def manifest(self) -> Manifest:
        """What the index consists of, when :meth:`run` has ended."""
        assert self.state.codec is not None
        return Manifest(GENERATION, self.state.segments, self.settings, self.state.codec)

    def _expected(self) -> int:
        """Vectors of the whole corpus, guessed before its end: by the number of documents, else four times as many."""
        documents, total = sum(chunk.num_documents for chunk in self.state.chunks), self.options.total
        return int(self.state.num_spooled * max(1.0, total / documents if total else 4.0))

    def _compress_if_full(self) -> None:
        if self.state.num_spooled >= (SEGMENT_VECTORS if self.state.codec else SPOOL_VECTORS):
            self._compress(expected=self._expected(), advance=_ignore)

    def _compress(self, *, expected: int, advance: Callable[[int], object]) -> None:
        """Turn the spool into segments, a segment's worth of chunks at a time."""
        codec = self._trained(expected)
        while group := _first_chunks(self.state.chunks):
            chunks = (Segment(self.layout, info, None) for info in group)
            batches = (compress(batch, codec) for chunk in chunks for batch in chunk.batches())
            first = len(self.state.segments)
            counted = _counted(batches, lambda batch: advance(len(batch)))
            written = write_segments(self.layout, self.settings, codec, counted, generation=GENERATION, first=first)
            self._save(segments=(*self.state.segments, *written), chunks=self.state.chunks[len(group) :])
            for info in group:
                shutil.rmtree(self.layout.chunk(info.name))

    def _trained(self, expected: int) -> Codec:
        if self.codec is None:
            chunks = [Segment(self.layout, info, None) for info in self.state.chunks]
            bits, seed = self.settings.bits, self.options.seed
            sample = sample_vectors(chunks, sample_size_for(expected, bits), dim=self.settings.dim, seed=seed)
            self.codec = Codec.train(sample, num_vectors_expected=expected, bits=bits, seed=seed)
            self._save(codec=write_codec(self.layout, self.codec, generation=GENERATION))
        return self.codec

    def _skip(self, records: Iterator[Record], seen: SeenIds) -> Iterator[Record]:
        """Pass over the documents already done, which must be the first of the stream."""
        segments = (Segment(self.layout, info, self.codec) for info in self.state.segments)
        chunks = (Segment(self.layout, info, None) for info in self.state.chunks)
        for number, doc_id in enumerate(chain.from_iterable(part.doc_ids for part in chain(segments, chunks))):
            record = next(records, None)
            if record is None or record.doc_id != doc_id:
                found = "nothing" if record is None else repr(record.doc_id)
                raise IndexMismatchError(
                    f"the interrupted build had {doc_id!r} as document {number}, now it is {found}; resume with the "
                    "same documents in the same order, or remove the folder and start again",
                    path=self.layout.path,
                )
            seen.add(doc_id)
        return records

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


def _first_chunks(chunks: tuple[SegmentInfo, ...]) -> list[SegmentInfo]:
    """As many chunks as fill one segment, and at least one."""
    sizes = np.cumsum([chunk.num_vectors for chunk in chunks])
    return list(chunks[: max(1, int(np.searchsorted(sizes, SEGMENT_VECTORS, side="right")))])


def _counted(things: Iterable[Thing], report: Callable[[Thing], object]) -> Iterator[Thing]:
    for thing in things:
        yield thing
        report(thing)


def _ignore(count: int) -> None:
    """Advance no bar: the one for encoding is on the screen."""
