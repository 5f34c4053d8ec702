"""The systems of an experiment as written: a name, a kind, parameters, some of which refer to other systems."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from colbert_prf.errors import InputError
from colbert_prf.experiments.registry import Kind, find_kind

__all__ = ["Entry", "check_entries", "configuration_of"]


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
