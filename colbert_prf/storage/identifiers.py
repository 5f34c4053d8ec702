"""Document ids: any strings, as UTF-8 on disk, found by hash without reading the others."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from colbert_prf.errors import IndexFormatError
from colbert_prf.storage.arrays import Array, rows_of
from colbert_prf.storage.forms import Form
from colbert_prf.storage.layout import IndexLayout

__all__ = ["Identifiers", "SeenIds", "identifier_arrays", "identifier_forms"]

RECENT_IDS = 1 << 16


def identifier_arrays(doc_ids: Sequence[str]) -> dict[str, Array]:
    """The arrays that keep ids: bytes, offsets, and hashes in order with the position of each.

    Examples
    --------
    >>> arrays = identifier_arrays(["b", "a"])
    >>> arrays["id_bytes"].tobytes(), arrays["id_offsets"].tolist()
    (b'ba', [0, 1, 2])
    >>> Identifiers(arrays).find("a")
    1
    """
    encoded = [_encode(doc_id) for doc_id in doc_ids]
    offsets = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
    hashes = np.array([_hash(item) for item in encoded], dtype=np.uint32)
    order = np.argsort(hashes, kind="stable")
    return {
        "id_bytes": np.frombuffer(b"".join(encoded), dtype=np.uint8),
        "id_offsets": offsets.astype(np.uint32 if offsets[-1] < 1 << 32 else np.int64),
        "id_hashes": hashes[order],
        "id_order": order.astype(np.uint32),
    }


def identifier_forms(count: int, *, prefix: str = "") -> dict[str, Form]:
    """The forms of the arrays that keep so many ids."""
    return {
        f"{prefix}id_bytes": Form.of(np.uint8, shape=(None,)),
        f"{prefix}id_offsets": Form.of(np.uint32, np.int64, shape=(count + 1,)),
        f"{prefix}id_hashes": Form.of(np.uint32, shape=(count,)),
        f"{prefix}id_order": Form.of(np.uint32, shape=(count,)),
    }


class Identifiers:
    """Reads ids by position, and finds the position of an id in a few probes of a mapped array.

    Parameters
    ----------
    arrays
        As made by :func:`identifier_arrays`, mapped.
    folder
        Of the arrays, for messages.
    prefix
        Of their names.
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
            return self._raw(position).decode("utf-8", "surrogatepass")
        except UnicodeDecodeError as error:
            raise self._damaged("id_bytes", f"the id at {position} is damaged ({error.reason})") from error

    def __iter__(self) -> Iterator[str]:
        for position in range(len(self)):
            yield self[position]

    def many(self, positions: npt.NDArray[np.int64]) -> list[str]:
        """The ids at some positions, in the order of these: where they are ASCII, much faster than one at a time."""
        starts, stops = (self._offsets[positions + end].astype(np.int64) for end in (0, 1))
        lengths, last = stops - starts, len(self._bytes) - 1
        if len(positions) and last >= 0 and lengths.min() >= 0 and starts.min() >= 0 and stops.max() <= last + 1:
            # Each with the byte after it, which becomes the end of a line.
            lines = self._bytes[np.minimum(rows_of(starts, lengths + 1), last)]
            lines[np.cumsum(lengths + 1) - 1] = ord("\n")
            text = lines.tobytes()
            if text.isascii() and text.count(b"\n") == len(positions):
                return text.decode("ascii").split("\n")[:-1]
        return [self[position] for position in positions.tolist()]

    def find(self, doc_id: str) -> int | None:
        """The position of an id, if it is there."""
        raw = _encode(doc_id)
        wanted = np.uint32(_hash(raw))
        place = int(np.searchsorted(self._hashes, wanted))
        while place < len(self._hashes) and self._hashes[place] == wanted:
            position = int(self._order[place])
            if position >= len(self):
                raise self._damaged("id_order", f"position {position} of {len(self)} documents: damaged; run verify")
            if self._raw(position) == raw:
                return position
            place += 1
        return None

    def check(self) -> None:
        """Compare every id with its place among the bytes, with all others and with its hash.

        Raises
        ------
        IndexFormatError
            Naming the first file that contradicts another.
        """
        offsets = self._offsets
        if offsets[0] != 0 or offsets[-1] != len(self._bytes) or (offsets[1:] < offsets[:-1]).any():
            raise self._damaged("id_offsets", f"offsets must rise from 0 to {len(self._bytes)}")
        seen = set(self)
        if len(seen) != len(self):
            raise self._damaged("id_bytes", "an id is there twice")
        if any(self.find(doc_id) is None for doc_id in seen):
            raise self._damaged("id_hashes", "an id is not found by its hash")

    def _damaged(self, name: str, message: str) -> IndexFormatError:
        return IndexFormatError(message, path=IndexLayout.array(self._folder, f"{self._prefix}{name}"))

    def _raw(self, position: int) -> bytes:
        return self._bytes[int(self._offsets[position]) : int(self._offsets[position + 1])].tobytes()


class SeenIds:
    """A set of ids that takes 16 bytes for each, to refuse an id given twice in an endless stream.

    Each id is kept as a 128-bit hash: the most recent in a set, the others in sorted arrays, each more than twice as
    long as the next, so that there are few.

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
        """Add an id; False if it was there."""
        key = hashlib.blake2b(_encode(doc_id), digest_size=16).digest()
        if key in self._recent or any(_contains(array, key) for array in self._sorted):
            return False
        self._recent.add(key)
        if len(self._recent) >= RECENT_IDS:
            self._sort_recent()
        return True

    def _sort_recent(self) -> None:
        array = np.sort(np.array(list(self._recent), dtype="S16"))
        self._recent.clear()
        while self._sorted and len(self._sorted[-1]) <= 2 * len(array):
            array = np.sort(np.concatenate([self._sorted.pop(), array]))
        self._sorted.append(array)


def _contains(array: npt.NDArray[np.bytes_], key: bytes) -> bool:
    wanted = np.array(key, dtype="S16")
    place = int(np.searchsorted(array, wanted))
    return place < len(array) and bool(array[place] == wanted)


def _encode(doc_id: str) -> bytes:
    # A lone surrogate is no character, but Python has strings with it, and an id may be any string.
    return doc_id.encode("utf-8", "surrogatepass")


def _hash(raw: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(raw, digest_size=4).digest(), "little")
