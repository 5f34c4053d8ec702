"""Filters as data: which documents may be found, by their metadata.

A filter is a mapping that JSON can hold::

    {"source": "garden"}                             equal
    {"year": {">=": 2000, "<": 2010}}                all of these
    {"source": ["garden", "pond"]}                   one of these, the same as {"in": ["garden", "pond"]}
    {"isbn": {"exists": false}}                      absent, or null
    {"or": [{"year": 1999}, {"not": {"source": "garden"}}]}

Operators are ``=``, ``!=``, ``<``, ``<=``, ``>``, ``>=``, ``in`` and ``exists``. Several fields, and several operators
of one field, must all hold. Numbers compare with numbers (as float64), strings with strings (by code point), booleans
with booleans by ``=`` and ``!=``. Null counts as absent. A list matches where one of its elements does. ``!=`` is the
negation of ``=``: it holds for a document without the field too.

:meth:`Filter.matches` is the definition, for one document. :meth:`Filter.mask` is the same over the columns of a
segment, without a Python call for each document.
"""

from __future__ import annotations

import math
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from colbert_prf.errors import InputError
from colbert_prf.storage.fields import BOOLEAN, NUMBER, OTHER, STRING, Fields, kind_of, number_of, scalars

__all__ = [
    "OPERATORS",
    "All",
    "AnyOf",
    "Compare",
    "Exists",
    "Filter",
    "Not",
    "check_fields",
    "filter_mask",
    "parse_filter",
    "unchecked_mask",
]

Mask = npt.NDArray[np.bool_]

_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_NOUNS = {OTHER: "lists or objects", BOOLEAN: "booleans", NUMBER: "numbers", STRING: "strings"}
_DEEPEST = 100
OPERATORS = ("=", "!=", "<", "<=", ">", ">=", "in", "exists")


class Filter(ABC):
    """Which documents may be found."""

    @abstractmethod
    def matches(self, metadata: Mapping[str, Any]) -> bool:
        """Whether a document with this metadata may be found: the definition."""

    @abstractmethod
    def mask(self, fields: Fields) -> Mask:
        """Whether each document of some columns may be found, of shape (num_documents,)."""

    @abstractmethod
    def conditions(self) -> Iterator[Compare | Exists]:
        """Every condition on a field."""


@dataclass(frozen=True)
class Compare(Filter):
    """One value of a field compares with an operand: ``=``, ``<``, ``<=``, ``>`` or ``>=``.

    Parameters
    ----------
    field
        Its name.
    comparison
        The operator.
    operand
        A boolean, a number or a string.
    """

    field: str
    comparison: str
    operand: bool | float | str

    def matches(self, metadata: Mapping[str, Any]) -> bool:
        """A value of the kind of the operand compares with it."""
        kind, compare = kind_of(self.operand), _COMPARE[self.comparison]
        values = [value for value in scalars(metadata.get(self.field)) if kind_of(value) == kind]
        return any(compare(_comparable(value), _comparable(self.operand)) for value in values)

    def mask(self, fields: Fields) -> Mask:
        """Compare the values of a column at once; strings by their ranks."""
        column, kind = fields.column(self.field), kind_of(self.operand)
        if kind == STRING:
            hits = self._string_hits(column.values, *fields.rank(str(self.operand)))
        else:
            hits = _COMPARE[self.comparison](column.values, _comparable(self.operand))
        return _documents(fields, column.documents[hits & (column.kinds == kind)])

    def _string_hits(self, ranks: npt.NDArray[np.float64], less: int, there: bool) -> Mask:
        """Compare ranks; ``less`` strings are less than the operand, which may be one of them itself."""
        up_to = less + there
        if self.comparison == "=":
            return ranks == less if there else np.zeros(len(ranks), dtype=np.bool_)
        bound = up_to if self.comparison in ("<=", ">") else less
        return ranks < bound if self.comparison in ("<", "<=") else ranks >= bound

    def conditions(self) -> Iterator[Compare | Exists]:
        """Itself."""
        yield self


@dataclass(frozen=True)
class Exists(Filter):
    """A field is there and not null.

    Parameters
    ----------
    field
        Its name.
    """

    field: str

    def matches(self, metadata: Mapping[str, Any]) -> bool:
        """It has a value."""
        return metadata.get(self.field) is not None

    def mask(self, fields: Fields) -> Mask:
        """It has an entry."""
        return _documents(fields, fields.column(self.field).documents)

    def conditions(self) -> Iterator[Compare | Exists]:
        """Itself."""
        yield self


@dataclass(frozen=True)
class Not(Filter):
    """A filter does not hold."""

    part: Filter

    def matches(self, metadata: Mapping[str, Any]) -> bool:
        """The filter does not."""
        return not self.part.matches(metadata)

    def mask(self, fields: Fields) -> Mask:
        """The others."""
        return ~self.part.mask(fields)

    def conditions(self) -> Iterator[Compare | Exists]:
        """Those of the filter."""
        return self.part.conditions()


@dataclass(frozen=True)
class All(Filter):
    """All of some filters hold; with none, every document matches."""

    parts: tuple[Filter, ...]

    def matches(self, metadata: Mapping[str, Any]) -> bool:
        """All do."""
        return all(part.matches(metadata) for part in self.parts)

    def mask(self, fields: Fields) -> Mask:
        """The documents of all."""
        mask = np.ones(fields.num_documents, dtype=np.bool_)
        for part in self.parts:
            mask &= part.mask(fields)
        return mask

    def conditions(self) -> Iterator[Compare | Exists]:
        """Those of all."""
        return (condition for part in self.parts for condition in part.conditions())


@dataclass(frozen=True)
class AnyOf(Filter):
    """One of some filters holds; with none, no document matches."""

    parts: tuple[Filter, ...]

    def matches(self, metadata: Mapping[str, Any]) -> bool:
        """One does."""
        return any(part.matches(metadata) for part in self.parts)

    def mask(self, fields: Fields) -> Mask:
        """The documents of any."""
        mask = np.zeros(fields.num_documents, dtype=np.bool_)
        for part in self.parts:
            mask |= part.mask(fields)
        return mask

    def conditions(self) -> Iterator[Compare | Exists]:
        """Those of all."""
        return (condition for part in self.parts for condition in part.conditions())


def parse_filter(where: Mapping[str, Any]) -> Filter:
    """Read a filter.

    Parameters
    ----------
    where
        See the head of this file.

    Raises
    ------
    InputError
        If it is no filter; the part that is wrong is named.

    Examples
    --------
    >>> parse_filter({"source": "garden", "year": {">=": 2020}}).matches({"source": "garden", "year": 2024})
    True
    >>> parse_filter({"not": {"tags": ["pond", "fish"]}}).matches({"tags": ["fish", "tank"]})
    False
    """
    return _parsed(where, 0)


def filter_mask(where: Filter, columns: Sequence[Fields]) -> Mask:
    """Whether each document of several segments may be found, in the order of positions.

    Raises
    ------
    InputError
        If a field is not in any of them, or no value of it can be compared with the operand.
    """
    check_fields(where, [fields.kinds for fields in columns])
    return unchecked_mask(where, columns)


def unchecked_mask(where: Filter, columns: Sequence[Fields]) -> Mask:
    """As :func:`filter_mask`, for some segments of a collection whose fields were checked."""
    return np.concatenate([np.empty(0, np.bool_), *(where.mask(fields) for fields in columns)])


def check_fields(where: Filter, segments: Sequence[Mapping[str, frozenset[int]]]) -> None:
    """Refuse a filter of a field that no segment has, or of which no value can be compared with the operand.

    ``segments`` give the kinds of values of each of their fields.
    """
    for condition in where.conditions():
        kinds = [fields[condition.field] for fields in segments if condition.field in fields]
        if not kinds:
            names = sorted({name for fields in segments for name in fields})
            known = f"there are {', '.join(map(repr, names))}" if names else "its documents have no metadata"
            raise InputError(f"where: the index has no field {condition.field!r}; {known}")
        found = frozenset().union(*kinds)
        if isinstance(condition, Compare) and found and kind_of(condition.operand) not in found:
            nouns = " and ".join(_NOUNS[kind] for kind in sorted(found))
            raise InputError(
                f"where: the field {condition.field!r} has {nouns}, found {condition.operand!r} to compare with; "
                "numbers compare with numbers, strings with strings, booleans with booleans"
            )


def _parsed(where: Any, depth: int) -> Filter:
    if not isinstance(where, Mapping):
        raise InputError(f'where: a filter is a mapping such as {{"year": {{">=": 2020}}}}, found {where!r:.80}')
    if depth > _DEEPEST:
        raise InputError(f"where: the filter is nested more than {_DEEPEST} deep; make it flatter")
    parts: list[Filter] = []
    for name, value in where.items():
        if not isinstance(name, str):
            raise InputError(f"where: a field name is a string, found {name!r:.80}")
        if name in ("and", "or"):
            if not isinstance(value, list | tuple):
                raise InputError(f"where: {name!r} takes a list of filters, found {value!r:.80}")
            inner = tuple(_parsed(part, depth + 1) for part in value)
            parts.append(All(inner) if name == "and" else AnyOf(inner))
        elif name == "not":
            parts.append(Not(_parsed(value, depth + 1)))
        else:
            parts += _conditions(name, value)
    return parts[0] if len(parts) == 1 else All(tuple(parts))


def _conditions(field: str, value: Any) -> Iterator[Filter]:
    """The conditions on one field."""
    if not isinstance(value, Mapping):
        value = {"in" if isinstance(value, list | tuple) else "=": value}
    if not value:
        raise InputError(f"where: the field {field!r} needs an operator, one of {' '.join(OPERATORS)}")
    for name, operand in value.items():
        if name == "exists":
            if not isinstance(operand, bool):
                raise InputError(f"where: 'exists' of the field {field!r} takes true or false, found {operand!r:.80}")
            yield Exists(field) if operand else Not(Exists(field))
        elif name == "in":
            if not isinstance(operand, list | tuple):
                raise InputError(f"where: 'in' of the field {field!r} takes a list of values, found {operand!r:.80}")
            yield AnyOf(tuple(_equal(field, item) for item in operand))
        elif name in ("=", "!="):
            equal = _equal(field, operand)
            yield equal if name == "=" else Not(equal)
        elif name in _COMPARE:
            yield Compare(field, name, _operand(field, name, operand, (NUMBER, STRING)))
        else:
            raise InputError(
                f"where: unknown operator {name!r:.40} of the field {field!r}; use one of {' '.join(OPERATORS)}"
            )


def _equal(field: str, operand: Any) -> Filter:
    if operand is None:
        return Not(Exists(field))
    return Compare(field, "=", _operand(field, "=", operand, (BOOLEAN, NUMBER, STRING)))


def _operand(field: str, name: str, operand: Any, kinds: Sequence[int]) -> Any:
    if isinstance(operand, np.generic):
        operand = operand.item()
    if kind_of(operand) not in kinds or (isinstance(operand, float) and math.isnan(operand)):
        expected = " or ".join(_NOUNS[kind] for kind in kinds)
        raise InputError(f"where: {name!r} of the field {field!r} compares {expected}, found {operand!r:.80}")
    return operand


def _comparable(value: bool | float | str) -> float | str:
    """A value as it is compared with others of its kind."""
    return value if isinstance(value, str) else number_of(value)


def _documents(fields: Fields, documents: npt.NDArray[np.uint32]) -> Mask:
    mask = np.zeros(fields.num_documents, dtype=np.bool_)
    mask[documents] = True
    return mask
