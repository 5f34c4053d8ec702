"""Writing a stream of batches as segments of bounded size."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from time import monotonic

import numpy as np

from colbert_prf.index.batch import Batch
from colbert_prf.index.codec import Codec
from colbert_prf.index.manifest import CodecInfo, SegmentInfo, Settings
from colbert_prf.index.segment_writer import SegmentWriter
from colbert_prf.storage.arrays import write_array
from colbert_prf.storage.durable import sync_folder
from colbert_prf.storage.layout import IndexLayout

__all__ = ["CHUNK_VECTORS", "SEGMENT_VECTORS", "compress", "write_chunks", "write_codec", "write_segments"]

SEGMENT_VECTORS = 1 << 22
"""Vectors of a full segment: some 50,000 passages, 160 MB at 2 bits."""
CHUNK_VECTORS = 1 << 18
"""Vectors of a full chunk of the spool: some 3,000 passages, 67 MB."""
CHUNK_SECONDS, CHUNK_SHARE = 5.0, 0.02
"""A chunk is also closed after so many seconds, or so much of the time the build has taken, whichever is more. So an
interrupted build loses at most seconds or 2 % of its work, and a slow one has hundreds of chunks, not thousands."""


def write_segments(
    layout: IndexLayout, settings: Settings, codec: Codec, batches: Iterable[Batch], *, generation: int, first: int = 0
) -> Iterator[SegmentInfo]:
    """Write batches that have the codec's columns, and give each segment as soon as it is on the disk.

    Parameters
    ----------
    layout
        Of the index.
    settings
        Of the index.
    codec
        Whose columns the batches have.
    batches
        Read as needed.
    generation
        That will name the segments in its manifest.
    first
        The number of the first segment.
    """

    def folder(number: int) -> Path:
        return layout.folder(layout.segment_name(generation=generation, number=first + number))

    return _write_parts(folder, settings, codec, batches, SEGMENT_VECTORS)


def write_chunks(
    layout: IndexLayout, settings: Settings, batches: Iterable[Batch], *, first: int = 0
) -> Iterator[SegmentInfo]:
    """Write batches of float16 vectors to the spool of a build, and give each chunk as soon as it is on the disk."""
    begun = last = monotonic()

    def is_due() -> bool:
        nonlocal last
        now = monotonic()
        due = now - last >= max(CHUNK_SECONDS, CHUNK_SHARE * (now - begun))
        last = now if due else last
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
    """Write parts of at most so many vectors; one that is due is closed before the next batch is waited for."""
    waiting = (batch for batch in batches if len(batch))
    batch = next(waiting, None)
    number = 0
    while batch is not None:
        with SegmentWriter(folder(number), settings, codec) as writer:
            while batch is not None and (not writer.num_documents or writer.num_vectors + batch.num_vectors <= limit):
                writer.append(batch)
                batch = None if is_due() else next(waiting, None)
            info = writer.finish()
        yield info
        number += 1
        batch = next(waiting, None) if batch is None else batch


def compress(batch: Batch, codec: Codec) -> Batch:
    """Replace float16 vectors by what the codec makes of them."""
    return replace(batch, columns=codec.encode(batch.columns["vectors"].astype(np.float32)))


def write_codec(layout: IndexLayout, codec: Codec, *, generation: int) -> CodecInfo:
    """Write a codec as the arrays of a folder of its own."""
    name = layout.codec_name(generation)
    folder = layout.folder(name)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    files = {key: write_array(layout.array(folder, key), array) for key, array in codec.arrays.items()}
    sync_folder(folder)
    sync_folder(layout.path)
    return CodecInfo(name, codec.num_centroids, codec.trained_for, files)
