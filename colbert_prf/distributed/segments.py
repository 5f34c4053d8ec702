"""Segments of slices: named by their content, written by workers, checked by the driver."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence

from colbert_prf.distributed.crew import Crew
from colbert_prf.distributed.encoding import Job, Task
from colbert_prf.distributed.slices import Slice
from colbert_prf.errors import IndexFormatError
from colbert_prf.index.codec import Codec
from colbert_prf.index.manifest import FORMAT_VERSION, CodecInfo, SegmentInfo, Settings
from colbert_prf.index.segment import Segment
from colbert_prf.storage.json_form import read_json, write_json
from colbert_prf.storage.layout import IndexLayout

__all__ = ["segment_tasks", "written_segments"]

KIND = "colbert-prf finished segment"


def segment_tasks(
    slices: Sequence[Slice],
    settings: Settings,
    codec: CodecInfo,
    *,
    generation: int,
    sample: Mapping[int, SegmentInfo] | None = None,
) -> list[Task]:
    """Name the segment of each slice by all that its bytes depend on: the texts, the model, the settings, the codec.

    Parameters
    ----------
    slices
        The slices.
    settings
        The settings of the index, with its model.
    codec
        The codec that compresses.
    generation
        The generation that will name the segments in its manifest.
    sample
        For the number of a slice, the chunk of its documents that are encoded already.
    """

    def name(part: Slice) -> str:
        return IndexLayout.content_name(generation=generation, digest=_digest(part.digest, settings, codec))

    chunks = sample or {}
    return [
        Task(part.number, part.num_documents, part.digest, name(part), sample=chunks.get(part.number))
        for part in slices
    ]


def written_segments(
    crew: Crew, job: Job, tasks: Sequence[Task], codec: Codec, advance: Callable[[int], object]
) -> Iterator[tuple[int, SegmentInfo]]:
    """Yield the segment of each task, in any order; those that are complete are not written again.

    ``advance`` is told of documents as in :meth:`Crew.run`.

    Raises
    ------
    IndexFormatError
        It names a file of a segment whose bytes are not those that a worker wrote.
    """
    remaining = []
    for task in tasks:
        if (info := _finished(job.layout, task, codec)) is not None:
            advance(task.num_documents)
            yield task.number, info
        else:
            remaining.append(task)
    for number, info in crew.run(job, remaining, advance):
        _check(job.layout, info, codec)
        write_json(job.layout.finished(info.name), info, kind=KIND, version=FORMAT_VERSION)
        yield number, info


def _finished(layout: IndexLayout, task: Task, codec: Codec) -> SegmentInfo | None:
    """Read and check the segment of a task that an interrupted build has done; None if it has not."""
    path = layout.finished(task.name)
    if not path.exists():
        return None
    info = read_json(path, SegmentInfo, kind=KIND, version=FORMAT_VERSION)
    _check(layout, info, codec)
    return info


def _check(layout: IndexLayout, info: SegmentInfo, codec: Codec) -> None:
    """Compare a segment with its checksums; a damaged one is taken away, so that a resumed build writes it again."""
    try:
        Segment(layout, info, codec).check()
    except IndexFormatError as error:
        layout.finished(info.name).unlink(missing_ok=True)
        shutil.rmtree(layout.folder(info.name), ignore_errors=True)
        raise IndexFormatError(
            "a worker wrote this segment, and the driver reads other bytes: look at the storage, and continue with "
            f"--resume, which writes it again ({error})",
            path=error.path,
        ) from error


def _digest(slice_digest: str, settings: Settings, codec: CodecInfo) -> str:
    content = (FORMAT_VERSION, slice_digest, settings, codec.num_centroids, sorted(codec.files.items()))
    return hashlib.blake2b(repr(content).encode(), digest_size=8).hexdigest()
