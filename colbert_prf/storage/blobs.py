"""Blobs: texts and metadata as byte strings in compressed blocks, each readable on its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
import zstandard

from colbert_prf.errors import IndexFormatError
from colbert_prf.storage.array_specs import ArraySpec
from colbert_prf.storage.arrays import Array, ArrayInfo, ArrayWriter, write_array
from colbert_prf.storage.layout import IndexLayout

__all__ = ["BlobWriter", "Blobs", "blob_specs"]

BLOBS_PER_BLOCK = 32
"""Fixed, so that a division finds the block of a blob; 32 passages of 400 bytes compress 2.2-fold and open in 30 µs."""


def blob_specs(name: str, num_blobs: int) -> dict[str, ArraySpec]:
    """Specify the arrays that keep a number of blobs."""
    num_blocks = -(-num_blobs // BLOBS_PER_BLOCK)
    return {
        f"{name}_blocks": ArraySpec.of(np.uint8, shape=(None,)),
        f"{name}_offsets": ArraySpec.of(np.int64, shape=(num_blocks + 1,)),
    }


class BlobWriter:
    """Writes blobs one after the other, as the arrays ``NAME_blocks`` and ``NAME_offsets``.

    Parameters
    ----------
    folder
        The folder of the arrays.
    name
        The common part of their names.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self.name = name
        self._folder = folder
        self._blocks = ArrayWriter(IndexLayout.array(folder, f"{name}_blocks"), np.uint8)
        self._offsets = [0]
        self._pending: list[bytes] = []

    def append(self, blob: bytes) -> None:
        """Add a blob."""
        self._pending.append(blob)
        if len(self._pending) == BLOBS_PER_BLOCK:
            self._write_block()

    def finish(self) -> dict[str, ArrayInfo]:
        """Write the last block and close the files."""
        if self._pending:
            self._write_block()
        offsets = write_array(
            IndexLayout.array(self._folder, f"{self.name}_offsets"), np.array(self._offsets, dtype=np.int64)
        )
        return {f"{self.name}_blocks": self._blocks.finish(), f"{self.name}_offsets": offsets}

    def close(self) -> None:
        """Close the files without finishing them."""
        self._blocks.close()

    def _write_block(self) -> None:
        lengths = np.array([len(blob) for blob in self._pending], dtype="<u4")
        block = zstandard.ZstdCompressor(level=3).compress(lengths.tobytes() + b"".join(self._pending))
        self._blocks.append(np.frombuffer(block, dtype=np.uint8))
        self._offsets.append(self._offsets[-1] + len(block))
        self._pending.clear()


class Blobs:
    """Reads blobs by position.

    Parameters
    ----------
    blocks
        Compressed blocks, one after the other, uint8.
    offsets
        The beginning of each block and the end of the last, int64 of shape (num_blocks + 1,).
    num_blobs
        The number of blobs.
    path
        The file of the blocks, for messages.
    """

    def __init__(self, blocks: Array, offsets: npt.NDArray[np.int64], *, num_blobs: int, path: Path) -> None:
        self._blocks = blocks
        self._offsets = offsets
        self._num_blobs = num_blobs
        self._path = path
        self._cached: tuple[int, list[bytes]] = (-1, [])

    def __len__(self) -> int:
        return self._num_blobs

    def __getitem__(self, position: int) -> bytes:
        number, position_in_block = divmod(position, BLOBS_PER_BLOCK)
        cached = self._cached  # read once, so that this number never goes with the block of another thread
        if cached[0] != number:
            cached = self._cached = (number, self._read_block(number))
        return cached[1][position_in_block]

    def text(self, position: int) -> str:
        """Decode a blob that is a text."""
        try:
            return self[position].decode("utf-8", "surrogatepass")
        except UnicodeDecodeError as error:
            raise IndexFormatError(
                f"the text at {position} is not UTF-8: damaged; run verify", path=self._path
            ) from error

    def __iter__(self) -> Iterator[bytes]:
        for number in range(-(-self._num_blobs // BLOBS_PER_BLOCK)):
            yield from self._read_block(number)

    def _read_block(self, number: int) -> list[bytes]:
        num_blobs = min(BLOBS_PER_BLOCK, self._num_blobs - number * BLOBS_PER_BLOCK)
        block = self._blocks[self._offsets[number] : self._offsets[number + 1]]
        try:
            content = zstandard.ZstdDecompressor().decompress(block.tobytes())
            ends = 4 * num_blobs + np.cumsum(np.frombuffer(content, dtype="<u4", count=num_blobs), dtype=np.int64)
        except (zstandard.ZstdError, ValueError, MemoryError) as error:  # a damaged length may ask for any memory
            raise IndexFormatError(f"block {number} is damaged ({error}); run verify", path=self._path) from error
        if ends[-1] != len(content):
            raise IndexFormatError(f"block {number} has another length than its blobs; run verify", path=self._path)
        starts = [4 * num_blobs, *ends[:-1].tolist()]
        return [content[start:end] for start, end in zip(starts, ends.tolist(), strict=True)]
