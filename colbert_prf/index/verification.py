"""Checking a whole index: every byte against its checksum, then every array against the others."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from colbert_prf.errors import IndexFormatError
from colbert_prf.index.deletions import deletion_frequencies
from colbert_prf.index.segment import Segment
from colbert_prf.index.segment_writer import document_frequencies
from colbert_prf.index.snapshot import Snapshot
from colbert_prf.kernels.postings import encode_postings
from colbert_prf.storage.arrays import Array, ArrayInfo, check_array
from colbert_prf.storage.identifiers import SeenIds
from colbert_prf.storage.layout import IndexLayout
from colbert_prf.storage.positions import Positions

__all__ = ["Verification", "array_files", "check_segment", "verify_live_ids", "verify_snapshot"]


@dataclass(frozen=True)
class Verification:
    """What was checked and found right."""

    generation: int
    num_files: int
    num_bytes: int
    num_documents: int
    num_vectors: int


def verify_snapshot(snapshot: Snapshot) -> Verification:
    """Check everything.

    Raises
    ------
    IndexFormatError
        Naming the first file that is not as it was written, or contradicts another.
    """
    files = array_files(snapshot)
    for path, info in files.items():
        check_array(path, info)
    for segment in snapshot.segments:
        _verify_offsets(segment)
        segment.doc_ids.check()
        _verify_codes(segment, snapshot)
        _verify_deletions(segment, snapshot)
        _verify_blobs(segment, texts=snapshot.manifest.settings.texts)
        _verify_fields(segment)
    verify_live_ids(snapshot)
    manifest = snapshot.manifest
    num_bytes = snapshot.layout.manifest.stat().st_size + sum(info.num_bytes for info in files.values())
    return Verification(manifest.generation, len(files) + 1, num_bytes, manifest.num_documents, manifest.num_vectors)


def array_files(snapshot: Snapshot) -> dict[Path, ArrayInfo]:
    """Every array file of a generation, with what the manifest says of it."""
    layout, codec = snapshot.layout, snapshot.manifest.codec
    files = {layout.array(layout.folder(codec.name), name): info for name, info in codec.files.items()}
    for segment in snapshot.segments:
        files |= _segment_files(segment, layout)
    return files


def check_segment(segment: Segment, layout: IndexLayout) -> None:
    """Compare every file of a segment with its checksum: before it is written anew, for what is wrong in it would get
    a new checksum and never be found.
    """
    for path, info in _segment_files(segment, layout).items():
        check_array(path, info)


def _segment_files(segment: Segment, layout: IndexLayout) -> dict[Path, ArrayInfo]:
    files = {layout.array(segment.folder, name): info for name, info in segment.info.files.items()}
    return files | dict(segment.deletion_files(layout).values())


def _verify_offsets(segment: Segment) -> None:
    for name in ("offsets", "id_offsets", "list_offsets", "texts_offsets", "metadata_offsets"):
        array = segment.arrays.get(name)
        if array is not None:
            _expect(bool((array[1:] >= array[:-1]).all()), segment, name, "offsets must not fall")


def verify_live_ids(snapshot: Positions[Any]) -> None:
    """Refuse an id that two segments have and neither has deleted; within a segment :meth:`Identifiers.check` looks."""
    if len(snapshot.segments) < 2:
        return
    seen = SeenIds()
    for segment in snapshot.segments:
        for position in np.flatnonzero(~segment.deleted).tolist():
            if not seen.add(segment.doc_ids[position]):
                message = f"the id {segment.doc_ids[position]!r} is in a segment before this one as well"
                raise IndexFormatError(message, path=IndexLayout.array(segment.folder, "id_bytes"))


def _verify_codes(segment: Segment, snapshot: Snapshot) -> None:
    size = snapshot.manifest.settings.vocabulary_size
    codes = segment.columns["codes"]
    _expect(int(segment.token_ids.max(initial=0)) < size, segment, "token_ids", "a token is not in the vocabulary")
    lists, list_offsets = encode_postings(codes, segment.offsets, snapshot.codec.num_centroids)
    same = np.array_equal(lists, segment.lists) and np.array_equal(list_offsets, segment.list_offsets)
    _expect(same, segment, "lists", "the lists are not those of the codes")
    total = np.zeros(size, dtype=np.int64)
    for start, end in segment.ranges():
        tokens = segment.token_ids[segment.offsets[start] : segment.offsets[end]]
        total += document_frequencies(tokens, np.diff(segment.offsets[start : end + 1]), size)
    stored = segment.arrays["frequencies"]
    _expect(_equal_but_zeros(total, stored), segment, "frequencies", "the frequencies are not those of the tokens")


def _verify_deletions(segment: Segment, snapshot: Snapshot) -> None:
    deletions = segment.info.deletions
    if deletions is None:
        return
    num_vectors = int(np.diff(segment.offsets)[segment.deleted].sum())
    counts = (int(segment.deleted.sum()), num_vectors) == (deletions.num_documents, deletions.num_vectors)
    size = snapshot.manifest.settings.vocabulary_size
    total = deletion_frequencies(segment, segment.deleted, size)
    files = segment.deletion_files(snapshot.layout)
    if not counts:
        raise IndexFormatError("the manifest has another number of deleted documents", path=files["deleted"][0])
    if not _equal_but_zeros(total.astype(np.int64), segment.deletion_arrays["frequencies"]):
        raise IndexFormatError("the frequencies are not those of the deleted documents", path=files["frequencies"][0])


def _verify_blobs(segment: Segment, *, texts: bool) -> None:
    found = "texts_blocks" in segment.arrays
    _expect(found == texts, segment, "texts_blocks", f"the settings say texts={texts}, the segment has texts: {found}")
    for position in range(len(segment)):
        segment.text(position)
        segment.metadata(position)


def _verify_fields(segment: Segment) -> None:
    if "field_names" not in segment.arrays:
        return
    expected = segment.metadata_as_fields()
    for name, array in expected.arrays().items():
        same = np.array_equal(array, segment.arrays[name])
        _expect(same, segment, name, "the columns are not those of the metadata")
    same = list(expected.strings) == list(segment.fields.strings)
    _expect(same, segment, "field_strings_blocks", "the strings are not those of the metadata")


def _equal_but_zeros(total: Array, stored: Array) -> bool:
    return bool((total[: len(stored)] == stored).all()) and not total[len(stored) :].any()


def _expect(condition: bool, segment: Segment, name: str, message: str) -> None:
    if not condition:
        raise IndexFormatError(message, path=segment.folder / f"{name}.npy")
