"""Deleting: a bitmap beside the segment, which itself never changes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from colbert_prf.index.manifest import DeletionInfo
from colbert_prf.index.segment import Segment
from colbert_prf.index.segment_writer import document_frequencies
from colbert_prf.storage.arrays import Array, write_array
from colbert_prf.storage.layout import IndexLayout

__all__ = ["deletion_frequencies", "write_deletions"]


def write_deletions(
    layout: IndexLayout, segment: Segment, deleted: npt.NDArray[np.bool_], *, generation: int, vocabulary_size: int
) -> DeletionInfo:
    """Write which documents of a segment are deleted, and in how many of them each token is.

    Parameters
    ----------
    layout
        Of the index; the folder of the generation's deletions must exist.
    segment
        The segment.
    deleted
        All its deleted documents, those of earlier generations too, of shape (num_documents,).
    generation
        That deletes them.
    vocabulary_size
        Of the index.
    """
    name = layout.deletions_name(generation)
    arrays: dict[str, Array] = {
        "deleted": np.packbits(deleted),
        "frequencies": deletion_frequencies(segment, deleted, vocabulary_size),
    }
    files = {
        key: write_array(layout.array(layout.folder(name), f"{segment.info.name}.{key}"), array)
        for key, array in arrays.items()
    }
    num_vectors = int(np.diff(segment.offsets)[deleted].sum())
    return DeletionInfo(name, int(deleted.sum()), num_vectors, files)


def deletion_frequencies(
    segment: Segment, deleted: npt.NDArray[np.bool_], vocabulary_size: int
) -> npt.NDArray[np.uint32]:
    """In how many of the deleted documents each token is, of shape (vocabulary_size,)."""
    total = np.zeros(vocabulary_size, dtype=np.uint32)
    for start, end in segment.ranges():
        if deleted[start:end].any():
            lengths = np.diff(segment.offsets[start : end + 1])
            kept = np.repeat(deleted[start:end], lengths)
            tokens = segment.token_ids[segment.offsets[start] : segment.offsets[end]][kept]
            total += document_frequencies(tokens, lengths[deleted[start:end]], vocabulary_size)
    return total
