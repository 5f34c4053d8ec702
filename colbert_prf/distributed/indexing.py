"""Building and growing an index on a cluster: one driver plans, checks and publishes, workers write segments.

The driver reads the corpus once, checks it and writes it as slices (:mod:`colbert_prf.distributed.slices`). Workers
encode a sample, on which the driver trains the codec. Then each slice becomes a segment under a name given by its
content. The driver compares every segment with its checksums, and publishes one manifest that names them in the order
of the corpus. Until then the folder is an interrupted build, and ``resume`` goes on with the segments that are
complete.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable
from functools import partial
from itertools import count, takewhile
from operator import length_hint
from pathlib import Path
from time import monotonic

from colbert_prf.distributed.cluster import WorkerCheck, connected, shared_folder
from colbert_prf.distributed.crew import Crew
from colbert_prf.distributed.encoding import Job, Task
from colbert_prf.distributed.sampling import average_vectors, num_sampled_documents, sampled_positions
from colbert_prf.distributed.segments import segment_tasks, written_segments
from colbert_prf.distributed.slices import PASSAGES_PER_SEGMENT, Slice, write_slices
from colbert_prf.encoder import Encoder
from colbert_prf.errors import IndexMismatchError, InputError, require_positive
from colbert_prf.index import Index, Passages
from colbert_prf.index import builder as single_machine
from colbert_prf.index.builder import GENERATION, Builder, BuildOptions
from colbert_prf.index.codec import DEFAULT_BITS, Codec
from colbert_prf.index.documents import Document, TextDocuments, documents_of_texts
from colbert_prf.index.manifest import SegmentInfo, Settings
from colbert_prf.index.model import settings_for
from colbert_prf.index.snapshot import Snapshot
from colbert_prf.progress import progress_bar
from colbert_prf.storage.layout import IndexLayout
from colbert_prf.storage.store import IdCheck

__all__ = ["add_documents", "create_index"]

SAVE_SECONDS, SAVE_SHARE = 5.0, 0.02
"""The state of a build is written at most so often, and takes at most this share of the time: that of a billion
passages is large."""


def create_index(
    path: str | os.PathLike[str],
    documents: TextDocuments,
    *,
    address: str | None = None,
    workers: int | None = None,
    passages_per_segment: int = PASSAGES_PER_SEGMENT,
    encoder: Encoder | None = None,
    bits: int = DEFAULT_BITS,
    texts: bool = True,
    passages: Passages | None = None,
    resume: bool = False,
    progress: bool = True,
    codec: Codec | None = None,
    total: int | None = None,
    seed: int = 0,
) -> Index:
    """Encode documents on a Ray cluster and index them; the index is like any other.

    Segments have the same bytes on any number of workers, and the bytes that one machine writes with the same codec,
    as long as all processors compute alike.

    Parameters
    ----------
    path
        A new folder on storage that all machines mount under one path.
    documents
        As in :meth:`Index.create`; only the driver reads them.
    address
        ``HOST:PORT`` of the cluster, or ``auto``; a local one if left out. See :func:`~.cluster.connected`.
    workers
        The most worker processes, which share the CPUs of the cluster; one for each CPU if left out.
    passages_per_segment
        The documents that a worker encodes at once, and does again if it is lost.
    encoder, bits, texts, passages, resume, progress, codec, total, seed
        As in :meth:`Index.create`.

    Raises
    ------
    ClusterError
        If the cluster cannot be reached, or its machines are not alike.
    StorageError
        If the folder cannot be written to, by the driver or a worker, or a segment is damaged.
    InputError
        It names a document, or a setting, that cannot be used.
    """
    require_positive(workers=workers, passages_per_segment=passages_per_segment)
    encoder = encoder or Encoder.load()
    settings = settings_for(encoder, bits, texts, passages)
    options = BuildOptions(codec, resume, progress, total or length_hint(documents) or None, seed)
    with connected(address) as ray:
        make_builder = partial(ClusterBuilder, Crew.of(ray, workers), passages_per_segment)
        checked = documents_of_texts(documents)
        single_machine.create_index(
            path, settings, checked, encoder=encoder, options=options, make_builder=make_builder
        )
    return Index(path, encoder=encoder)


def add_documents(
    index: Index,
    documents: TextDocuments,
    *,
    replacing: bool = False,
    address: str | None = None,
    workers: int | None = None,
    passages_per_segment: int = PASSAGES_PER_SEGMENT,
    progress: bool = True,
) -> None:
    """Encode documents on a Ray cluster and add them to an index, all of them or none.

    The driver is the one writer of the index: it holds the lock, checks ids and publishes.

    Parameters
    ----------
    index
        An index on storage that all machines mount under one path.
    documents
        As in :meth:`Index.add`.
    replacing
        Whether a document replaces the one with its id, as in :meth:`Index.upsert`; otherwise it is refused.
    address, workers, passages_per_segment, progress
        As in :func:`create_index`.
    """
    require_positive(workers=workers, passages_per_segment=passages_per_segment)
    with connected(address) as ray:
        write = partial(_write_added, Crew.of(ray, workers), passages_per_segment, progress)
        index.add_with(write, documents, replacing=replacing)


class ClusterBuilder(Builder):
    """A build whose segments are written by the workers of a cluster.

    Parameters
    ----------
    crew
        The workers.
    size
        The number of documents of a slice.
    layout, settings, options
        As in :class:`~colbert_prf.index.builder.Builder`.
    """

    def __init__(self, crew: Crew, size: int, layout: IndexLayout, settings: Settings, options: BuildOptions) -> None:
        super().__init__(_absolute(layout), settings, options)
        for left in [*self.layout.attempts(), *self.layout.building.glob("sample-*")]:  # by an interrupted build
            shutil.rmtree(left, ignore_errors=True)
        self._sample: dict[int, SegmentInfo] = {}
        self._crew = crew
        self._size = size
        self._next_save = 0.0

    @property
    def is_begun(self) -> bool:
        """Whether a codec has been trained, or a worker has finished a segment."""
        has_trained = self.options.codec is None and self.state.codec is not None
        return has_trained or any(self.layout.building.glob("segment-*.json"))

    def run(self, documents: Iterable[Document], encoder: Encoder | None) -> None:
        """Slice, sample, train, and have every slice encoded that is not yet done."""
        assert encoder is not None, "a cluster encodes texts"
        self._refuse_other_build()
        with shared_folder(self.layout.building) as check:
            self._crew.check(self._job(check, None))
            slices = self._slices(documents)
            codec = self.codec or self._train(slices, encoder, check)
            self._encode(slices, codec, check)

    def _slices(self, documents: Iterable[Document]) -> list[Slice]:
        with progress_bar("Reading", total=self.options.total, shown=self.options.progress) as advance:
            slices = []
            for part in write_slices(self.layout, IdCheck().checked(documents), self._size):
                slices.append(part)
                advance(part.num_documents)
        if not slices:
            raise InputError("an index needs at least one document, found none")
        return slices

    def _train(self, slices: list[Slice], encoder: Encoder, check: WorkerCheck) -> Codec:
        """Have a sample encoded and train the codec on it."""
        average = average_vectors(self.layout, slices, self.settings, encoder)
        num_documents = _num_documents(slices)
        num_sampled = num_sampled_documents(num_documents, average, self.settings.bits)
        drawn = sampled_positions(slices, num_sampled, seed=self.options.seed)
        tasks = [
            Task(part.number, len(positions), part.digest, f"sample-{part.digest}", positions)
            for part, positions in drawn
        ]
        with progress_bar("Encoding a sample", total=num_sampled, shown=self.options.progress) as advance:
            self._sample = dict(self._crew.run(self._job(check, None), tasks, advance))
        infos = [info for _, info in sorted(self._sample.items())]
        num_vectors = sum(info.num_vectors for info in infos)
        return self._trained_codec(infos, round(num_vectors * num_documents / num_sampled))

    def _encode(self, slices: list[Slice], codec: Codec, check: WorkerCheck) -> None:
        """Have the segments written that are not there yet, and note all of them in the state."""
        assert self.state.codec is not None
        tasks = segment_tasks(slices, self.settings, self.state.codec, generation=GENERATION, sample=self._sample)
        segments: dict[int, SegmentInfo] = {}
        try:
            with progress_bar("Encoding", total=_num_documents(slices), shown=self.options.progress) as advance:
                for number, info in written_segments(self._crew, self._job(check, codec), tasks, codec, advance):
                    segments[number] = info
                    if monotonic() >= self._next_save:
                        self._save_segments(segments)
        finally:
            self._save_segments(segments)

    def _job(self, check: WorkerCheck, codec: Codec | None) -> Job:
        info = self.state.codec if codec else None
        return Job(self.layout, self.settings, info, split=True, check=check)

    def _save_segments(self, segments: dict[int, SegmentInfo]) -> None:
        """Write the segments before the first gap to the state, from which one machine can go on as well."""
        started = monotonic()
        done = takewhile(segments.__contains__, count())
        self._save(segments=tuple(segments[number] for number in done))
        self._next_save = monotonic() + max(SAVE_SECONDS, (monotonic() - started) / SAVE_SHARE)

    def _refuse_other_build(self) -> None:
        if self.state.chunks or not all(re.search("-[0-9a-f]{16}$", info.name) for info in self.state.segments):
            raise IndexMismatchError(
                "one machine has begun this build; continue it without a cluster, or remove the folder",
                path=self.layout.path,
            )


def _write_added(
    crew: Crew, size: int, progress: bool, snapshot: Snapshot, documents: Iterable[Document]
) -> list[SegmentInfo]:
    """Write documents, split into passages already, as segments of the next generation."""
    layout, manifest = _absolute(snapshot.layout), snapshot.manifest
    layout.building.mkdir()
    try:
        with shared_folder(layout.building) as check:
            job = Job(layout, manifest.settings, manifest.codec, split=False, check=check)
            crew.check(job)
            slices = list(write_slices(layout, documents, size))
            generation = manifest.generation + 1
            tasks = segment_tasks(slices, manifest.settings, manifest.codec, generation=generation)
            with progress_bar("Encoding", total=_num_documents(slices), shown=progress) as advance:
                segments = dict(written_segments(crew, job, tasks, snapshot.codec, advance))
        return [info for _, info in sorted(segments.items())]
    finally:
        shutil.rmtree(layout.building, ignore_errors=True)


def _absolute(layout: IndexLayout) -> IndexLayout:
    """Make the path one that workers understand, whose working folder is another."""
    return IndexLayout(Path(layout.path).resolve())


def _num_documents(slices: list[Slice]) -> int:
    return sum(part.num_documents for part in slices)
