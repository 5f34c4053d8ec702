"""Metadata as columns: for each field, which documents have it and its values, so that a filter reads arrays alone.

A column has one entry for each scalar value of each document that has the field: one for a number, several for a list
of strings. A value that is neither a scalar nor a list with scalars has one entry of kind ``OTHER``; null has none.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from colbert_prf.errors import IndexFormatError
from colbert_prf.storage.arrays import Array, ArrayInfo, write_array
from colbert_prf.storage.blobs import BLOBS_PER_BLOCK, Blobs, BlobWriter, blob_forms
from colbert_prf.storage.forms import Form
from colbert_prf.storage.layout import IndexLayout

__all__ = ["BOOLEAN", "NUMBER", "OTHER", "STRING", "Column", "Fields", "field_forms", "kind_of", "number_of", "scalars"]

OTHER, BOOLEAN, NUMBER, STRING = range(4)
"""The kinds of values; two values compare only if they are of one kind, and never if it is ``OTHER``."""
RECENT_STRINGS = 1 << 12


class Column(NamedTuple):
    """The entries of one field, in the order of the documents; all of shape (num_entries,).

    ``values`` holds numbers as they are, 0 or 1 for booleans, and for a string its rank among all strings.
    """

    documents: npt.NDArray[np.uint32]
    kinds: npt.NDArray[np.uint8]
    values: npt.NDArray[np.float64]

    def rows(self, start: int, end: int) -> Column:
        """Some entries."""
        return Column(self.documents[start:end], self.kinds[start:end], self.values[start:end])


@dataclass(frozen=True, eq=False)
class Fields:
    """The columns of some documents.

    Parameters
    ----------
    num_documents
        How many there are.
    names
        Of the fields, ascending.
    offsets
        Field ``i`` owns the entries ``offsets[i]:offsets[i + 1]``; int64 of shape (num_fields + 1,).
    entries
        Of all fields, one after the other.
    strings
        All different strings, ascending, in UTF-8.

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
        """Make columns of the metadata of documents, empty where one has none."""
        found: dict[str, list[tuple[int, Any]]] = {}
        num_documents = 0
        for fields in metadata:
            for name, value in fields.items():
                entries = found.setdefault(name, [])
                if value is not None:
                    entries += [(num_documents, scalar) for scalar in scalars(value) or (value,)]
            num_documents += 1
        strings = {value for entries in found.values() for _, value in entries if isinstance(value, str)}
        in_order = sorted(strings)  # the order of code points, which that of UTF-8 is too
        ranks = {text: rank for rank, text in enumerate(in_order)}
        names = sorted(found)
        columns = [_column(found[name], ranks) for name in names]
        return cls(
            num_documents,
            names,
            np.cumsum([0, *(len(column.documents) for column in columns)], dtype=np.int64),
            Column(*(np.concatenate([empty, *parts]) for empty, *parts in zip(_column([], {}), *columns, strict=True))),
            [text.encode("utf-8", "surrogatepass") for text in in_order],
        )

    @classmethod
    def opened(cls, arrays: Mapping[str, Array], *, num_documents: int, folder: Path) -> Fields:
        """Read the columns that :meth:`write` wrote.

        Raises
        ------
        IndexFormatError
            Naming the file that leads outside of the others.
        """
        entries = Column(arrays["field_documents"], arrays["field_kinds"], arrays["field_values"])
        offsets, ends, blocks = (arrays[f"field_{name}"] for name in ("offsets", "strings_offsets", "strings_blocks"))
        for name, array, end in (("offsets", offsets, len(entries.kinds)), ("strings_offsets", ends, len(blocks))):
            if not len(array) or array[0] != 0 or array[-1] != end or (array[1:] < array[:-1]).any():
                raise _damaged(folder, f"field_{name}", f"offsets must rise from 0 to {end}")
        if len({len(array) for array in entries}) > 1 or int(entries.documents.max(initial=0)) >= max(num_documents, 1):
            raise _damaged(folder, "field_documents", f"a document is outside of 0 to {num_documents - 1}")
        num_strings = int(arrays["field_num_strings"][0])
        if len(ends) != -(-num_strings // BLOBS_PER_BLOCK) + 1:
            raise _damaged(folder, "field_num_strings", f"{num_strings} strings do not fill {len(ends) - 1} blocks")
        strings = Blobs(blocks, ends, count=num_strings, path=IndexLayout.array(folder, "field_strings_blocks"))
        return cls(num_documents, _names(arrays["field_names"], len(offsets) - 1, folder), offsets, entries, strings)

    def write(self, folder: Path) -> dict[str, ArrayInfo]:
        """Write the columns as arrays of a folder."""
        strings = BlobWriter(folder, "field_strings")
        try:
            for text in self.strings:
                strings.append(text)
            files = strings.finish()
        finally:
            strings.close()
        arrays = {**self.arrays(), "field_num_strings": np.array([len(self.strings)], dtype=np.int64)}
        return files | {name: write_array(IndexLayout.array(folder, name), array) for name, array in arrays.items()}

    def arrays(self) -> dict[str, Array]:
        """What is written, except the strings."""
        return {
            "field_names": np.frombuffer(json.dumps(list(self.names)).encode("ascii"), dtype=np.uint8),
            "field_offsets": self.offsets,
            "field_documents": self.entries.documents,
            "field_kinds": self.entries.kinds,
            "field_values": self.entries.values,
        }

    def column(self, name: str) -> Column:
        """The entries of a field; none where no document has it."""
        place = bisect_left(self.names, name)
        if place == len(self.names) or self.names[place] != name:
            return self.entries.rows(0, 0)
        return self.entries.rows(int(self.offsets[place]), int(self.offsets[place + 1]))

    @cached_property
    def kinds(self) -> dict[str, frozenset[int]]:
        """The kinds of values each field has."""
        return {name: frozenset(np.unique(self.column(name).kinds).tolist()) for name in self.names}

    def rank(self, text: str) -> tuple[int, bool]:
        """How many of the strings are less than a text, and whether it is one of them."""
        known = self._ranks.get(text)
        if known is None:
            wanted = text.encode("utf-8", "surrogatepass")
            place = bisect_left(self.strings, wanted)
            known = place, place < len(self.strings) and self.strings[place] == wanted
            if len(self._ranks) >= RECENT_STRINGS:
                self._ranks.clear()
            self._ranks[text] = known
        return known


def scalars(value: Any) -> list[Any]:
    """The values that a filter compares: the value itself, or those in a list.

    >>> scalars("a"), scalars(["a", 1, None, ["b"]]), scalars(None), scalars({"a": 1})
    (['a'], ['a', 1], [], [])
    """
    return [item for item in (value if isinstance(value, list | tuple) else (value,)) if kind_of(item) != OTHER]


def kind_of(value: Any) -> int:
    """The kind of a value; a boolean is no number."""
    if isinstance(value, bool):
        return BOOLEAN
    if isinstance(value, int | float):
        return NUMBER
    return STRING if isinstance(value, str) else OTHER


def number_of(value: float) -> float:
    """A number as it is compared: as a float64, where a whole number too large for one is an infinity.

    >>> number_of(3), number_of(-(10**400))
    (3.0, -inf)
    """
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def field_forms() -> dict[str, Form]:
    """The forms of the arrays of columns."""
    strings = blob_forms("field_strings", 0)
    return {
        "field_names": Form.of(np.uint8, shape=(None,)),
        "field_offsets": Form.of(np.int64, shape=(None,)),
        "field_documents": Form.of(np.uint32, shape=(None,)),
        "field_kinds": Form.of(np.uint8, shape=(None,)),
        "field_values": Form.of(np.float64, shape=(None,)),
        "field_num_strings": Form.of(np.int64, shape=(1,)),
        **{name: Form(form.dtypes, (None,)) for name, form in strings.items()},
    }


def _column(entries: Sequence[tuple[int, Any]], ranks: Mapping[str, int]) -> Column:
    return Column(
        np.array([document for document, _ in entries], dtype=np.uint32),
        np.array([kind_of(value) for _, value in entries], dtype=np.uint8),
        np.array([_number(value, ranks) for _, value in entries], dtype=np.float64),
    )


def _number(value: Any, ranks: Mapping[str, int]) -> float:
    kind = kind_of(value)
    if kind == STRING:
        return ranks[value]
    return number_of(value) if kind in (NUMBER, BOOLEAN) else 0.0


def _names(written: Array, count: int, folder: Path) -> list[str]:
    try:
        names = json.loads(written.tobytes())
    except (ValueError, RecursionError) as error:
        raise _damaged(folder, "field_names", f"not JSON ({error})") from error
    if not isinstance(names, list) or len(names) != count or not all(isinstance(name, str) for name in names):
        raise _damaged(folder, "field_names", f"expected the names of {count} fields")
    return names


def _damaged(folder: Path, name: str, found: str) -> IndexFormatError:
    advice = "damaged; look for more with colbert-prf verify, restore it from a copy or build the index again"
    return IndexFormatError(f"{found}: {advice}", path=IndexLayout.array(folder, name))
