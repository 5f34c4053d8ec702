"""Kinds of ranking systems by name, and the systems of an experiment as written: a name, a kind, parameters."""

from __future__ import annotations

import importlib
import inspect
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, is_dataclass
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from colbert_prf.errors import InputError
from colbert_prf.search.retriever import Retriever

__all__ = [
    "Entry",
    "Kind",
    "check_entries",
    "chosen",
    "configuration_of",
    "describe_type",
    "find_kind",
    "fits",
    "known_kinds",
    "system",
]


_NAMES = {int: "a whole number", float: "a number", str: "a text", bool: "true or false", type(None): "nothing"}


def fits(value: object, hint: Any) -> bool:
    """Tell whether a value is of an annotated type; what it does not know, it lets pass.

    Examples
    --------
    >>> fits(1, float), fits(True, int), fits("x", int | None), fits("a", Literal["a", "b"]), fits([1], list[int])
    (True, False, False, True, True)
    """
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Literal:
        return value in arguments
    if origin in (Union, types.UnionType):
        return any(fits(value, argument) for argument in arguments)
    if origin in (list, tuple, Sequence):
        return isinstance(value, list | tuple) and all(fits(item, arguments[0]) for item in value)
    if hint is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if hint in _NAMES:
        return isinstance(value, hint)
    return True


def describe_type(hint: Any) -> str:
    """Say what is asked for, in words.

    Examples
    --------
    >>> describe_type(int | None), describe_type(Literal["idf", "ictf"])
    ('a whole number', "'idf' or 'ictf'")
    """
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Literal:
        return " or ".join(map(repr, arguments))
    if origin in (Union, types.UnionType):
        return " or ".join(describe_type(argument) for argument in arguments if argument is not type(None))
    if origin in (list, tuple, Sequence):
        return f"a list, each item {describe_type(arguments[0])}"
    return _NAMES.get(hint, getattr(hint, "__name__", str(hint)))


Builder = TypeVar("Builder", bound=Callable[..., Retriever])

_KINDS: dict[str, Kind] = {}


@dataclass(frozen=True)
class Kind:
    """A kind of system.

    Parameters
    ----------
    name
        As a configuration writes it.
    build
        ``build(context, **parameters)`` gives the system; the context is a
        :class:`~colbert_prf.experiments.context.Context`.
    check
        Called with the parameters before anything is built, to refuse what the types do not tell.
    models
        The parameters that name a model: a file or folder, or a name on the hub.
    like
        Classes or functions whose keyword-only parameters are parameters of the kind as well, where a configuration can
        write their values.
    """

    name: str
    build: Callable[..., Retriever]
    check: Callable[..., object] | None = None
    models: tuple[str, ...] = ()
    like: tuple[Callable[..., object], ...] = ()

    @property
    def parameters(self) -> dict[str, Any]:
        """The type of each parameter, by name."""
        found = _keyword_only(self.build)
        for source in self.like:
            found |= {name: hint for name, hint in _keyword_only(source).items() if _is_written(hint)} | found
        return found

    def check_parameters(self, parameters: Mapping[str, Any]) -> None:
        """Refuse parameters that are unknown, missing or of another type.

        Raises
        ------
        InputError
            It names the parameter, and the known ones.
        """
        known, more = self.parameters, not self.like and any(one.kind is one.VAR_KEYWORD for one in self._signature)
        for name, value in parameters.items():
            if name not in known and not more:
                raise InputError(f"kind {self.name!r} has no parameter {name!r}; it has {', '.join(known) or 'none'}")
            hint = _written(known.get(name, Any))
            if not fits(value, hint):
                raise InputError(f"{name} must be {describe_type(hint)}, found {value!r}")
        for one in self._signature:
            if one.kind is one.KEYWORD_ONLY and one.default is one.empty and one.name not in parameters:
                raise InputError(f"kind {self.name!r} needs the parameter {one.name!r}")
        if self.check is not None:
            self.check(**parameters)

    def references(self, parameters: Mapping[str, Any]) -> list[str]:
        """The names of the rows that parameters refer to: those of parameters annotated as retrievers."""
        found: list[str] = []
        for name, hint in self.parameters.items():
            if name in parameters and _written(hint) is not hint:
                value = parameters[name]
                found += [value] if isinstance(value, str) else value
        return found

    def make(self, context: Any, parameters: Mapping[str, Any], find: Callable[[str], Retriever]) -> Retriever:
        """Build the system.

        Parameters
        ----------
        context
            Of the collection.
        parameters
            As written; names of rows stand for systems.
        find
            Gives the system of a row by its name.
        """
        given = dict(parameters)
        for name, hint in self.parameters.items():
            if name in given and _written(hint) is not hint:
                value = given[name]
                given[name] = find(value) if isinstance(value, str) else [find(row) for row in value]
        return self.build(context, **given)

    @property
    def _signature(self) -> list[inspect.Parameter]:
        """All parameters but the context."""
        return list(inspect.signature(self.build).parameters.values())[1:]


def system(
    name: str,
    *,
    check: Callable[..., object] | None = None,
    models: tuple[str, ...] = (),
    like: Sequence[Callable[..., object]] = (),
) -> Callable[[Builder], Builder]:
    """Make a function known as a kind of system.

    Its first parameter is the context, the others are keyword-only and annotated: they are the parameters of a row. One
    annotated as :class:`~colbert_prf.search.retriever.Retriever`, or as a list of them, is written as the name of
    another row, or a list of names, and arrives as that row's system.

    Parameters
    ----------
    name
        What a row writes as its ``kind``.
    check, models, like
        See :class:`Kind`. Parameters that come by ``like`` arrive in ``**options``, those that were written.

    Examples
    --------
    A kind that takes the best of another row, and turns them round::

        @system("reversed")
        def reversed_system(context: Context, *, first: Retriever, depth: int = 10) -> Retriever: ...

    and its row::

        [[systems]]
        name = "Reversed"
        kind = "reversed"
        first = "ColBERT E2E"
    """

    def register(build: Builder) -> Builder:
        if name in _KINDS and _KINDS[name].build.__qualname__ != build.__qualname__:
            raise InputError(f"there is a kind {name!r} already; choose another name")
        _KINDS[name] = Kind(name, build, check, models, tuple(like))
        return build

    return register


def chosen(options: Mapping[str, Any], function: Callable[..., object]) -> dict[str, Any]:
    """Those of some options that a class or function takes as keyword-only parameters.

    Examples
    --------
    >>> def search(query, *, k=10, threads=1): ...
    >>> chosen({"k": 3, "b": 0.4}, search)
    {'k': 3}
    """
    known = inspect.signature(function).parameters
    return {name: value for name, value in options.items() if name in known and _is_keyword_only(known[name])}


def known_kinds() -> tuple[str, ...]:
    """The names of all kinds."""
    importlib.import_module("colbert_prf.experiments.kinds")  # where they register themselves
    return tuple(_KINDS)


def find_kind(name: str) -> Kind:
    """The kind of a name.

    Raises
    ------
    InputError
        It lists those known.
    """
    known = known_kinds()
    if name not in known:
        raise InputError(f"there is no kind of system {name!r}; known are {', '.join(known)}")
    return _KINDS[name]


def _written(hint: Any) -> Any:
    """How a parameter is written: a system as the name of its row."""
    if hint is Retriever or (Retriever in get_args(hint) and get_origin(hint) not in (list, Sequence)):
        return str
    if get_origin(hint) in (list, Sequence) and get_args(hint)[0] is Retriever:
        return list[str]
    return hint


def _is_keyword_only(parameter: inspect.Parameter) -> bool:
    return parameter.kind is parameter.KEYWORD_ONLY


def _keyword_only(function: Callable[..., object]) -> dict[str, Any]:
    """The types of the keyword-only parameters of a function, or of a class."""
    is_plain = inspect.isclass(function) and not is_dataclass(function)
    hints = get_type_hints(function.__init__ if is_plain else function)
    parameters = inspect.signature(function).parameters.values()
    return {one.name: hints.get(one.name, Any) for one in parameters if _is_keyword_only(one)}


def _is_written(hint: Any) -> bool:
    """Whether a configuration can write a value of a type."""
    if get_origin(hint) in (Union, types.UnionType, list, Sequence):
        return all(map(_is_written, get_args(hint)))
    return hint in _NAMES or get_origin(hint) is Literal


@dataclass(frozen=True)
class Entry:
    """A system as written.

    Parameters
    ----------
    name
        By which other entries, and the table, call it.
    kind
        A name known to :func:`~colbert_prf.experiments.registry.find_kind`.
    parameters
        Of the kind.
    """

    name: str
    kind: str
    parameters: Mapping[str, Any] = field(default_factory=dict)

    @property
    def known_kind(self) -> Kind:
        """The kind; an error that lists the known ones where there is none of this name."""
        return find_kind(self.kind)

    @property
    def references(self) -> list[str]:
        """The names of the entries it builds on."""
        return self.known_kind.references(self.parameters)

    @property
    def models(self) -> list[str]:
        """The models it opens, as written."""
        given = (self.parameters.get(name) for name in self.known_kind.models)
        return [name for name in given if name is not None]


def check_entries(entries: Mapping[str, Entry]) -> None:
    """Refuse unknown kinds, wrong parameters, and references that lead nowhere or in a circle.

    Raises
    ------
    InputError
        It names the system.
    """
    for entry in entries.values():
        _check_entry(entry, entries)


def configuration_of(entry: Entry, entries: Mapping[str, Entry]) -> dict[str, Any]:
    """All that decides what a system finds: its kind and parameters, and those of the systems it builds on.

    Names do not count: a system that another builds on may be renamed.

    Examples
    --------
    >>> configuration_of(Entry("ColBERT", "colbert", {"bits": 4}), {})
    {'kind': 'colbert', 'bits': 4}
    """
    first = {name: configuration_of(entries[name], entries) for name in entry.references}
    parameters = {name: _inlined(value, first) for name, value in sorted(entry.parameters.items())}
    return {"kind": entry.kind, **parameters}


def _inlined(value: Any, first: Mapping[str, Any]) -> Any:
    if isinstance(value, list):
        return [_inlined(item, first) for item in value]
    return first.get(value, value) if isinstance(value, str) else value


def _refuse_circle(entry: Entry, entries: Mapping[str, Entry]) -> None:
    waiting, seen = list(entry.references), set[str]()
    while waiting:
        name = waiting.pop()
        if name == entry.name:
            raise InputError("it builds on itself; let it build on another")
        if name not in seen and name in entries:
            seen.add(name)
            waiting += entries[name].references


def _check_entry(entry: Entry, entries: Mapping[str, Entry]) -> None:
    try:
        entry.known_kind.check_parameters(entry.parameters)
        for name in entry.references:
            if name not in entries:
                raise InputError(f"it builds on {name!r}, which is no system here; there are {', '.join(entries)}")
        _refuse_circle(entry, entries)
    except InputError as error:
        raise InputError(f"system {entry.name!r}: {error}") from error
