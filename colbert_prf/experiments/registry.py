"""Kinds of ranking systems by name: what a row of an experiment asks for, and the function that builds it."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from colbert_prf.errors import InputError
from colbert_prf.experiments.values import describe_type, fits
from colbert_prf.search.retriever import Retriever

__all__ = ["Kind", "find_kind", "known_kinds", "system"]

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
    """

    name: str
    build: Callable[..., Retriever]
    check: Callable[..., object] | None = None
    models: tuple[str, ...] = ()

    @property
    def parameters(self) -> dict[str, Any]:
        """The type of each parameter, by name."""
        hints = get_type_hints(self.build)
        return {one.name: hints.get(one.name, Any) for one in self._signature if one.kind is one.KEYWORD_ONLY}

    def check_parameters(self, parameters: Mapping[str, Any]) -> None:
        """Refuse parameters that are unknown, missing or of another type.

        Raises
        ------
        InputError
            It names the parameter, and the known ones.
        """
        known, more = self.parameters, any(one.kind is one.VAR_KEYWORD for one in self._signature)
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
    name: str, *, check: Callable[..., object] | None = None, models: tuple[str, ...] = ()
) -> Callable[[Builder], Builder]:
    """Make a function known as a kind of system.

    Its first parameter is the context, the others are keyword-only and annotated: they are the parameters of a row. One
    annotated as :class:`~colbert_prf.search.retriever.Retriever`, or as a list of them, is written as the name of
    another row, or a list of names, and arrives as that row's system.

    Parameters
    ----------
    name
        What a row writes as its ``kind``.
    check, models
        See :class:`Kind`.

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
        _KINDS[name] = Kind(name, build, check, models)
        return build

    return register


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
