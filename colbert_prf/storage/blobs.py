"""Texts and metadata: byte strings in compressed blocks, any of them readable alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
import zstandard

from colbert_prf.errors import IndexFormatError
from colbert_prf.storage.arrays import Array, ArrayInfo, ArrayWriter, write_array
from colbert_prf.storage.forms import Form
from colbert_prf.storage.layout import IndexLayout

__all__ = ["BlobWriter", "Blobs", "blob_forms"]

BLOBS_PER_BLOCK = 32
"""Fixed, so that the block of a blob is a division; 32 passages of 400 bytes compress 2.2-fold and open in 30 µs."""


def blob_forms(name: str, count: int) -> dict[str, Form]:
    """The forms of the arrays that keep so many blobs."""
    num_blocks = -(-count // BLOBS_PER_BLOCK)
    return {
        f"{name}_blocks": Form.of(np.uint8, shape=(None,)),
        f"{name}_offsets": Form.of(np.int64, shape=(num_blocks + 1,)),
    }


class BlobWriter:
    """Writes blobs one after the other, as the arrays ``NAME_blocks`` and ``NAME_offsets``.

    Parameters
    ----------
    folder
        Where to.
    name
        What the blobs are.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self.name = name
        self._folder = folder
        self._blocks = ArrayWriter(IndexLayout.array(folder, f"{name}_blocks"), np.uint8)
        self._offsets = [0]
        self._waiting: list[bytes] = []

    def append(self, blob: bytes) -> None:
        """Add one."""
        self._waiting.append(blob)
        if len(self._waiting) == BLOBS_PER_BLOCK:
            self._write_block()

    def finish(self) -> dict[str, ArrayInfo]:
        """Write what waits and close."""
        if self._waiting:
            self._write_block()
        offsets = write_array(
            IndexLayout.array(self._folder, f"{self.name}_offsets"), np.array(self._offsets, dtype=np.int64)
        )
        return {f"{self.name}_blocks": self._blocks.finish(), f"{self.name}_offsets": offsets}

    def close(self) -> None:
        """Give up."""
        self._blocks.close()

    def _write_block(self) -> None:
        lengths = np.array([len(blob) for blob in self._waiting], dtype="<u4")
        block = zstandard.ZstdCompressor(level=3).compress(lengths.tobytes() + b"".join(self._waiting))
        self._blocks.append(np.frombuffer(block, dtype=np.uint8))
        self._offsets.append(self._offsets[-1] + len(block))
        self._waiting.clear()


class Blobs:
    """Reads blobs by position.

    Parameters
    ----------
    blocks
        Compressed blocks, one after the other, uint8.
    offsets
        Where each begins and the last ends, int64 of shape (num_blocks + 1,).
    count
        How many blobs there are.
    path
        The file of the blocks, for messages.
    """

    def __init__(self, blocks: Array, offsets: npt.NDArray[np.int64], *, count: int, path: Path) -> None:
        self._blocks = blocks
        self._offsets = offsets
        self._count = count
        self._path = path
        self._last: tuple[int, list[bytes]] = (-1, [])

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, position: int) -> bytes:
        number, inside = divmod(position, BLOBS_PER_BLOCK)
        last = self._last  # one read, so that another thread's block is never mixed with this number
        if last[0] != number:
            last = self._last = (number, self._read_block(number))
        return last[1][inside]

    def text(self, position: int) -> str:
        """One that is a text."""
        try:
            return self[position].decode("utf-8", "surrogatepass")
        except UnicodeDecodeError as error:
            raise IndexFormatError(
                f"the text at {position} is not UTF-8: damaged; run verify", path=self._path
            ) from error

    def __iter__(self) -> Iterator[bytes]:
        for number in range(-(-self._count // BLOBS_PER_BLOCK)):
            yield from self._read_block(number)

    def _read_block(self, number: int) -> list[bytes]:
        expected = min(BLOBS_PER_BLOCK, self._count - number * BLOBS_PER_BLOCK)
        block = self._blocks[self._offsets[number] : self._offsets[number + 1]]
        try:
            content = zstandard.ZstdDecompressor().decompress(block.tobytes())
            ends = 4 * expected + np.cumsum(np.frombuffer(content, dtype="<u4", count=expected), dtype=np.int64)
        except (zstandard.ZstdError, ValueError, MemoryError) as error:  # a damaged length may ask for any memory
            raise IndexFormatError(f"block {number} is damaged ({error}); run verify", path=self._path) from error
        if ends[-1] != len(content):
            raise IndexFormatError(f"block {number} has another length than its blobs; run verify", path=self._path)
        starts = [4 * expected, *ends[:-1].tolist()]
        return [content[start:end] for start, end in zip(starts, ends.tolist(), strict=True)]
