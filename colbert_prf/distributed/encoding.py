"""A worker of a cluster: it encodes and compresses a slice, and writes it as one segment that nobody sees yet.

The bytes of a segment depend on its slice, the model, the codec and the settings alone, and so does its name. A task
that is done twice, because its worker was lost or only seemed to be, writes the same bytes: whoever gives its attempt
the name first wins, and the other is removed.
"""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from colbert_prf.distributed.cluster import WorkerCheck
from colbert_prf.distributed.sampling import encode_others, encoded_sample
from colbert_prf.distributed.slices import read_slice
from colbert_prf.distributed.tally import tallied
from colbert_prf.encoder import Encoder
from colbert_prf.errors import ClusterError, ColbertPrfError, IndexMismatchError, MissingExtraError, ModelError
from colbert_prf.index.batch import Batch, batches_of
from colbert_prf.index.documents import Document, split_documents
from colbert_prf.index.manifest import CodecInfo, SegmentInfo, Settings
from colbert_prf.index.model import load_model
from colbert_prf.index.segment_writer import SegmentWriter, compress
from colbert_prf.index.snapshot import open_codec
from colbert_prf.storage.durable import sync_folder
from colbert_prf.storage.files import storage_errors
from colbert_prf.storage.layout import IndexLayout

__all__ = ["Job", "Outcome", "SliceEncoder", "Task"]

MOST_ATTEMPTS = 4
"""Ray gives the task of a dead worker to another; a task that kills every worker must end."""


@dataclass(frozen=True)
class Job:
    """What is the same for all tasks.

    Parameters
    ----------
    layout
        The layout of the index, in the shared folder.
    settings
        The settings of the index.
    codec
        The codec that compresses; None to write float16 vectors, as chunks of a spool.
    split
        Whether the documents are split into passages, as the settings say; otherwise they are passages already.
    check
        How a worker makes sure that it is like the driver.
    threads
        The number of texts that a worker encodes at once; the crew chooses it.
    tally
        The actor that is told how far a worker is; None if nobody looks.
    """

    layout: IndexLayout
    settings: Settings
    codec: CodecInfo | None
    split: bool
    check: WorkerCheck
    threads: int = 1
    tally: Any = None


@dataclass(frozen=True)
class Task:
    """A slice, and the segment that it becomes.

    Parameters
    ----------
    number
        Of the slice.
    num_documents
        The documents that are encoded.
    digest
        Of the slice.
    name
        The folder that is written.
    positions
        The documents of the slice that are encoded; all if left out.
    sample
        The chunk with those documents of the slice that are encoded already.
    """

    number: int
    num_documents: int
    digest: str
    name: str
    positions: tuple[int, ...] | None = None
    sample: SegmentInfo | None = None


@dataclass(frozen=True)
class Outcome:
    """What became of a task: a segment, or an error that all other tasks would meet as well."""

    number: int
    result: SegmentInfo | ColbertPrfError


class SliceEncoder:
    """Encodes slices, one after the other; Ray Data makes one for each worker.

    Errors of this package are returned, not raised, so that they reach the user as they are, and so that Ray does not
    try again what cannot succeed.

    Parameters
    ----------
    job
        What to do with the slices.

    Attributes
    ----------
    fault : ColbertPrfError or None
        Why this worker cannot work; None if it can.
    """

    def __init__(self, job: Job) -> None:
        self._job = job
        self.fault: ColbertPrfError | None = None
        try:
            job.check.run()
            self._encoder = _load_model(job)
            self._codec = open_codec(job.layout, job.codec, job.settings) if job.codec else None
        except ColbertPrfError as error:
            self.fault = error

    def __call__(self, rows: dict[str, Any]) -> dict[str, Any]:
        """Do the tasks in the column ``task``, and return the column ``outcome``."""
        outcomes = np.empty(len(rows["task"]), dtype=object)
        for row, task in enumerate(rows["task"]):
            outcomes[row] = self.outcome(task)
        return {"outcome": outcomes}

    def outcome(self, task: Task) -> Outcome:
        """Do a task."""
        if self.fault is not None:
            return Outcome(task.number, self.fault)
        try:
            with storage_errors(self._job.layout.path, f"encode on {socket.gethostname()}"):
                return Outcome(task.number, self._write(task))
        except ColbertPrfError as error:
            return Outcome(task.number, error)

    def _write(self, task: Task) -> SegmentInfo:
        layout, settings = self._job.layout, self._job.settings
        folder = layout.folder(task.name) if self._codec else layout.chunk(task.name)
        if len(attempts := layout.attempts(task.name)) >= MOST_ATTEMPTS:
            raise ClusterError(
                f"{len(attempts)} workers died while they encoded slice {task.number}; give each more memory (fewer "
                "workers, or fewer passages per segment), look at Ray's logs, and continue with --resume"
            )
        attempt = layout.attempt(task.name, f"{socket.gethostname()}-{os.getpid()}")
        if self._codec is None:
            settings = replace(settings, texts=False)
        with SegmentWriter(attempt, settings, self._codec) as writer:
            for batch in self._batches(task):
                writer.append(batch)
            info = replace(writer.finish(), name=task.name)
        try:
            attempt.rename(folder)
        except OSError:  # another attempt was faster, or its worker ended before it could say so
            if not folder.is_dir():
                raise
            shutil.rmtree(attempt, ignore_errors=True)
        sync_folder(folder.parent)
        return info

    def _batches(self, task: Task) -> Iterator[Batch]:
        job, codec = self._job, self._codec
        documents: Iterable[Document] = read_slice(job.layout, task.digest, task.positions)
        if job.tally is not None:
            documents = tallied(documents, job.tally.add.remote)
        passages = split_documents(documents, job.settings.passages if job.split else None, self._encoder)
        encoded = encoded_sample(job.layout, task.sample) if task.sample else {}
        batches = batches_of(encode_others(passages, encoded, self._encoder), job.settings)
        return (compress(batch, codec) for batch in batches) if codec else batches


def _load_model(job: Job) -> Encoder:
    """Open the driver's model on a worker, where it may be missing or another."""
    try:
        encoder = load_model(job.layout, job.settings, threads=job.threads)
    except (ModelError, IndexMismatchError, MissingExtraError) as error:
        raise ClusterError(
            f"the worker {socket.gethostname()} cannot use the model of the driver: {error}; put the same model under "
            "the same path on all machines"
        ) from error
    assert encoder is not None, "a cluster encodes texts, and for those an index has a model"
    return encoder
