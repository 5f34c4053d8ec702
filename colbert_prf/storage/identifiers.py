"""Document ids: any strings, stored as UTF-8 and found by hash without reading the others."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from colbert_prf.errors import IndexFormatError
from colbert_prf.storage.array_specs import ArraySpec
from colbert_prf.storage.arrays import Array, expand_ranges
from colbert_prf.storage.layout import damaged_array

__all__ = ["Identifiers", "SeenIds", "identifier_arrays", "identifier_specs"]

RECENT_IDS = 1 << 16


def identifier_arrays(doc_ids: Sequence[str]) -> dict[str, Array]:
    """Make the arrays that keep ids: their bytes, their offsets, and their sorted hashes with the position of each.

    Examples
    --------
    >>> arrays = identifier_arrays(["b", "a"])
    >>> arrays["id_bytes"].tobytes(), arrays["id_offsets"].tolist()
    (b'ba', [0, 1, 2])
    >>> Identifiers(arrays).find("a")
    1
    """
    encoded_ids = [_encode(doc_id) for doc_id in doc_ids]
    offsets = np.cumsum([0, *map(len, encoded_ids)], dtype=np.int64)
    hashes = np.array([_hash(encoded) for encoded in encoded_ids], dtype=np.uint32)
    order = np.argsort(hashes, kind="stable")
    return {
        "id_bytes": np.frombuffer(b"".join(encoded_ids), dtype=np.uint8),
        "id_offsets": offsets.astype(np.uint32 if offsets[-1] < 1 << 32 else np.int64),
        "id_hashes": hashes[order],
        "id_order": order.astype(np.uint32),
    }


def identifier_specs(num_ids: int, *, prefix: str = "") -> dict[str, ArraySpec]:
    """Specify the arrays that keep a number of ids."""
    return {
        f"{prefix}id_bytes": ArraySpec.of(np.uint8, shape=(None,)),
        f"{prefix}id_offsets": ArraySpec.of(np.uint32, np.int64, shape=(num_ids + 1,)),
        f"{prefix}id_hashes": ArraySpec.of(np.uint32, shape=(num_ids,)),
        f"{prefix}id_order": ArraySpec.of(np.uint32, shape=(num_ids,)),
    }


class Identifiers:
    """Reads ids by position, and finds the position of an id in a few probes of a mapped array.

    Parameters
    ----------
    arrays
        The mapped arrays that :func:`identifier_arrays` made.
    folder
        The folder of the arrays, for messages.
    prefix
        The prefix of their names.
    """

    def __init__(self, arrays: Mapping[str, Array], *, folder: Path = Path(), prefix: str = "") -> None:
        self._folder = folder
        self._prefix = prefix
        self._bytes = arrays[f"{prefix}id_bytes"]
        self._offsets = arrays[f"{prefix}id_offsets"]
        self._hashes = arrays[f"{prefix}id_hashes"]
        self._order = arrays[f"{prefix}id_order"]

    def __len__(self) -> int:
        return len(self._order)

    def __getitem__(self, position: int) -> str:
        try:
            return self._encoded(position).decode("utf-8", "surrogatepass")
        except UnicodeDecodeError as error:
            raise self._damaged("id_bytes", f"the id at {position} is not UTF-8 ({error.reason})") from error

    def __iter__(self) -> Iterator[str]:
        for position in range(len(self)):
            yield self[position]

    def many(self, positions: npt.NDArray[np.int64]) -> list[str]:
        """Read the ids at several positions, in their order; ASCII ids much faster than one at a time."""
        starts, stops = (self._offsets[positions + end].astype(np.int64) for end in (0, 1))
        lengths, last = stops - starts, len(self._bytes) - 1
        if len(positions) and last >= 0 and lengths.min() >= 0 and starts.min() >= 0 and stops.max() <= last + 1:
            # The ids are copied with the byte after each, which a line feed then replaces.
            lines = self._bytes[np.minimum(expand_ranges(starts, lengths + 1), last)]
            lines[np.cumsum(lengths + 1) - 1] = ord("\n")
            text = lines.tobytes()
            if text.isascii() and text.count(b"\n") == len(positions):
                return text.decode("ascii").split("\n")[:-1]
        return [self[position] for position in positions.tolist()]

    def find(self, doc_id: str) -> int | None:
        """Find the position of an id; None if it is not there."""
        encoded = _encode(doc_id)
        hashed = np.uint32(_hash(encoded))
        row = int(np.searchsorted(self._hashes, hashed))
        while row < len(self._hashes) and self._hashes[row] == hashed:
            position = int(self._order[row])
            if position >= len(self):
                raise self._damaged("id_order", f"position {position} of {len(self)} documents")
            if self._encoded(position) == encoded:
                return position
            row += 1
        return None

    def check(self) -> None:
        """Check that the offsets rise, that no id occurs twice, and that every id is found by its hash.

        Raises
        ------
        IndexFormatError
            It names the first file that contradicts another.
        """
        offsets = self._offsets
        if offsets[0] != 0 or offsets[-1] != len(self._bytes) or (offsets[1:] < offsets[:-1]).any():
            raise self._damaged("id_offsets", f"offsets must rise from 0 to {len(self._bytes)}")
        distinct = set(self)
        if len(distinct) != len(self):
            raise self._damaged("id_bytes", "an id is there twice")
        if any(self.find(doc_id) is None for doc_id in distinct):
            raise self._damaged("id_hashes", "an id is not found by its hash")

    def _damaged(self, name: str, problem: str) -> IndexFormatError:
        return damaged_array(self._folder, f"{self._prefix}{name}", problem)

    def _encoded(self, position: int) -> bytes:
        return self._bytes[int(self._offsets[position]) : int(self._offsets[position + 1])].tobytes()


class SeenIds:
    """A set of ids that takes 16 bytes for each, to refuse an id given twice in an endless stream.

    Each id is kept as a 128-bit hash. The most recent hashes are in a set, the others in sorted arrays. Each array is
    more than twice as long as the next, so there are few.

    Examples
    --------
    >>> seen = SeenIds()
    >>> seen.add("a"), seen.add("b"), seen.add("a")
    (True, True, False)
    """

    def __init__(self) -> None:
        self._recent: set[bytes] = set()
        self._sorted: list[npt.NDArray[np.bytes_]] = []

    def add(self, doc_id: str) -> bool:
        """Add an id; return False if it was there."""
        digest = hashlib.blake2b(_encode(doc_id), digest_size=16).digest()
        if digest in self._recent or any(_contains(digests, digest) for digests in self._sorted):
            return False
        self._recent.add(digest)
        if len(self._recent) >= RECENT_IDS:
            self._sort_recent()
        return True

    def _sort_recent(self) -> None:
        digests = np.sort(np.array(list(self._recent), dtype="S16"))
        self._recent.clear()
        while self._sorted and len(self._sorted[-1]) <= 2 * len(digests):
            digests = np.sort(np.concatenate([self._sorted.pop(), digests]))
        self._sorted.append(digests)


def _contains(digests: npt.NDArray[np.bytes_], digest: bytes) -> bool:
    item = np.array(digest, dtype="S16")
    row = int(np.searchsorted(digests, item))
    return row < len(digests) and bool(digests[row] == item)


def _encode(doc_id: str) -> bytes:
    # Python has strings with lone surrogates, which are no characters, and an id may be any string.
    return doc_id.encode("utf-8", "surrogatepass")


def _hash(encoded: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(encoded, digest_size=4).digest(), "little")
