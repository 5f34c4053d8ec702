"""Metadata as columns, so that a filter reads arrays alone: which documents have a field, and the values they have.

A column has one entry for each scalar value of each document that has the field: one for a number, several for a list
of strings. A value that is neither a scalar nor a list with scalars has one entry of kind ``OTHER``; null has none.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from colbert_prf.storage.array_specs import ArraySpec
from colbert_prf.storage.arrays import Array, ArrayInfo, write_arrays
from colbert_prf.storage.blobs import BLOBS_PER_BLOCK, Blobs, BlobWriter
from colbert_prf.storage.layout import IndexLayout, damaged_array

__all__ = ["BOOLEAN", "NUMBER", "OTHER", "STRING", "Column", "Fields", "field_specs", "kind_of", "number_of", "scalars"]

OTHER, BOOLEAN, NUMBER, STRING = range(4)
"""The kinds of values; two values compare only if they are of one kind, and never if it is ``OTHER``."""
CACHED_RANKS = 1 << 12


class Column(NamedTuple):
    """The entries of one field, in the order of the documents; each array is of shape (num_entries,).

    ``values`` holds numbers as they are, 0 or 1 for booleans, and for a string its rank among all strings.
    """

    documents: npt.NDArray[np.uint32]
    kinds: npt.NDArray[np.uint8]
    values: npt.NDArray[np.float64]

    def rows(self, start: int, end: int) -> Column:
        """Return the entries ``start:end``."""
        return Column(self.documents[start:end], self.kinds[start:end], self.values[start:end])


@dataclass(frozen=True, eq=False)
class Fields:
    """The metadata of the documents of a segment, one column for each field.

    Parameters
    ----------
    num_documents
        The number of documents.
    names
        The names of the fields, ascending.
    offsets
        Field ``i`` owns the entries ``offsets[i]:offsets[i + 1]``; int64 of shape (num_fields + 1,).
    entries
        The entries of all fields, one field after the other.
    strings
        All distinct strings, ascending, in UTF-8.

    Examples
    --------
    >>> fields = Fields.of([{"year": 1999}, {}, {"year": None, "tags": ["pond", "fish"]}])
    >>> fields.names, fields.column("tags").documents.tolist(), fields.column("tags").values.tolist()
    (['tags', 'year'], [2, 2], [1.0, 0.0])
    >>> fields.rank("fish"), fields.rank("goat")
    ((0, True), (1, False))
    """

    num_documents: int
    names: Sequence[str]
    offsets: npt.NDArray[np.int64]
    entries: Column
    strings: Sequence[bytes] | Blobs
    _ranks: dict[str, tuple[int, bool]] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, metadata: Iterable[Mapping[str, Any]]) -> Fields:
        """Make columns of the metadata of documents, one mapping for each, empty if it has none."""
        entries_by_name: dict[str, list[tuple[int, Any]]] = {}
        num_documents = 0
        for values_by_name in metadata:
            for name, value in values_by_name.items():
                entries = entries_by_name.setdefault(name, [])
                if value is not None:
                    entries += [(num_documents, scalar) for scalar in scalars(value) or (value,)]
            num_documents += 1
        strings = {value for entries in entries_by_name.values() for _, value in entries if isinstance(value, str)}
        sorted_strings = sorted(strings)  # by code point, which is the order of UTF-8 too
        ranks = {text: rank for rank, text in enumerate(sorted_strings)}
        names = sorted(entries_by_name)
        columns = [_column(entries_by_name[name], ranks) for name in names]
        return cls(
            num_documents,
            names,
            np.cumsum([0, *(len(column.documents) for column in columns)], dtype=np.int64),
            Column(*(np.concatenate([empty, *parts]) for empty, *parts in zip(_column([], {}), *columns, strict=True))),
            [text.encode("utf-8", "surrogatepass") for text in sorted_strings],
        )

    @classmethod
    def opened(cls, arrays: Mapping[str, Array], *, num_documents: int, folder: Path) -> Fields:
        """Read the columns that :meth:`write` wrote.

        Raises
        ------
        IndexFormatError
            It names the array that leads outside of another.
        """
        entries = Column(arrays["field_documents"], arrays["field_kinds"], arrays["field_values"])
        offsets, ends, blocks = (arrays[f"field_{name}"] for name in ("offsets", "strings_offsets", "strings_blocks"))
        for name, array, end in (("offsets", offsets, len(entries.kinds)), ("strings_offsets", ends, len(blocks))):
            if not len(array) or array[0] != 0 or array[-1] != end or (array[1:] < array[:-1]).any():
                raise damaged_array(folder, f"field_{name}", f"offsets must rise from 0 to {end}")
        if len({len(array) for array in entries}) > 1 or int(entries.documents.max(initial=0)) >= max(num_documents, 1):
            raise damaged_array(folder, "field_documents", f"a document is outside of 0 to {num_documents - 1}")
        num_strings = int(arrays["field_num_strings"][0])
        if len(ends) != -(-num_strings // BLOBS_PER_BLOCK) + 1:
            problem = f"{num_strings} strings do not fill {len(ends) - 1} blocks"
            raise damaged_array(folder, "field_num_strings", problem)
        path = IndexLayout.array(folder, "field_strings_blocks")
        strings = Blobs(blocks, ends, num_blobs=num_strings, path=path)
        names = _read_names(arrays["field_names"], len(offsets) - 1, folder)
        return cls(num_documents, names, offsets, entries, strings)

    def write(self, folder: Path) -> dict[str, ArrayInfo]:
        """Write the columns as arrays of a folder."""
        with closing(BlobWriter(folder, "field_strings")) as strings:
            for text in self.strings:
                strings.append(text)
            files = strings.finish()
        arrays = {**self.arrays(), "field_num_strings": np.array([len(self.strings)], dtype=np.int64)}
        return files | write_arrays(folder, arrays)

    def arrays(self) -> dict[str, Array]:
        """Return the arrays of the columns, without those of the strings."""
        return {
            "field_names": np.frombuffer(json.dumps(list(self.names)).encode("ascii"), dtype=np.uint8),
            "field_offsets": self.offsets,
            "field_documents": self.entries.documents,
            "field_kinds": self.entries.kinds,
            "field_values": self.entries.values,
        }

    def column(self, name: str) -> Column:
        """Return the entries of a field; none if no document has it."""
        number = bisect_left(self.names, name)
        if number == len(self.names) or self.names[number] != name:
            return self.entries.rows(0, 0)
        return self.entries.rows(int(self.offsets[number]), int(self.offsets[number + 1]))

    @cached_property
    def kinds(self) -> dict[str, frozenset[int]]:
        """The kinds of values that each field has."""
        return {name: frozenset(np.unique(self.column(name).kinds).tolist()) for name in self.names}

    def rank(self, text: str) -> tuple[int, bool]:
        """Return how many of the strings are less than a text, and whether the text is one of them."""
        cached = self._ranks.get(text)
        if cached is None:
            encoded = text.encode("utf-8", "surrogatepass")
            rank = bisect_left(self.strings, encoded)
            cached = rank, rank < len(self.strings) and self.strings[rank] == encoded
            if len(self._ranks) >= CACHED_RANKS:
                self._ranks.clear()
            self._ranks[text] = cached
        return cached


def scalars(value: Any) -> list[Any]:
    """List the values that a filter compares: the value itself, or those in a list.

    >>> scalars("a"), scalars(["a", 1, None, ["b"]]), scalars(None), scalars({"a": 1})
    (['a'], ['a', 1], [], [])
    """
    return [item for item in (value if isinstance(value, list | tuple) else (value,)) if kind_of(item) != OTHER]


def kind_of(value: Any) -> int:
    """Return the kind of a value; a boolean is no number."""
    if isinstance(value, bool):
        return BOOLEAN
    if isinstance(value, int | float):
        return NUMBER
    return STRING if isinstance(value, str) else OTHER


def number_of(value: float) -> float:
    """Convert a number to the float64 that is compared; a whole number too large for one becomes an infinity.

    >>> number_of(3), number_of(-(10**400))
    (3.0, -inf)
    """
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def field_specs() -> dict[str, ArraySpec]:
    """Specify the arrays of columns, whose lengths the manifest does not tell."""
    dtypes: dict[str, npt.DTypeLike] = {
        "field_names": np.uint8,
        "field_offsets": np.int64,
        "field_documents": np.uint32,
        "field_kinds": np.uint8,
        "field_values": np.float64,
        "field_strings_blocks": np.uint8,
        "field_strings_offsets": np.int64,
    }
    specs = {name: ArraySpec.of(dtype, shape=(None,)) for name, dtype in dtypes.items()}
    return {**specs, "field_num_strings": ArraySpec.of(np.int64, shape=(1,))}


def _column(entries: Sequence[tuple[int, Any]], ranks: Mapping[str, int]) -> Column:
    return Column(
        np.array([document for document, _ in entries], dtype=np.uint32),
        np.array([kind_of(value) for _, value in entries], dtype=np.uint8),
        np.array([_stored_number(value, ranks) for _, value in entries], dtype=np.float64),
    )


def _stored_number(value: Any, ranks: Mapping[str, int]) -> float:
    kind = kind_of(value)
    if kind == STRING:
        return ranks[value]
    return number_of(value) if kind in (NUMBER, BOOLEAN) else 0.0


def _read_names(encoded: Array, num_names: int, folder: Path) -> list[str]:
    try:
        names = json.loads(encoded.tobytes())
    except (ValueError, RecursionError) as error:
        raise damaged_array(folder, "field_names", f"not JSON ({error})") from error
    if not isinstance(names, list) or len(names) != num_names or not all(isinstance(name, str) for name in names):
        raise damaged_array(folder, "field_names", f"expected the names of {num_names} fields")
    return names
