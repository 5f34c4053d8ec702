"""Read a TOML file, key by key, so that every mistake is named with its file and key."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from colbert_prf.errors import InputError
from colbert_prf.experiments.values import describe_type, fits

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = ["TomlTable", "read_toml"]

_REQUIRED: Any = object()


class TomlTable:
    """A table of which each key is taken once.

    Parameters
    ----------
    values
        The table.
    place
        Where it stands: the file, and within it the table.
    """

    def __init__(self, values: Mapping[str, Any], place: str) -> None:
        self._values = dict(values)
        self._known: list[str] = []
        self.place = place

    def take(self, key: str, hint: Any, default: Any = _REQUIRED) -> Any:
        """The value of a key, of the annotated type."""
        self._known.append(key)
        if key not in self._values:
            if default is _REQUIRED:
                raise InputError(f"{self.place}: the key {key!r} is missing; add {key} = {describe_type(hint)}")
            return default
        value = self._values.pop(key)
        if not fits(value, hint):
            raise InputError(f"{self.place}: {key} must be {describe_type(hint)}, found {value!r}")
        return value

    def tables(self, key: str) -> list[TomlTable]:
        """The tables of an array of tables, ``[[key]]``, at least one."""
        found = self.take(key, Any, [])
        if not isinstance(found, list) or not found or not all(isinstance(one, dict) for one in found):
            raise InputError(f"{self.place}: there is no [[{key}]]; write one or more")
        return [TomlTable(one, f"{self.place}: [[{key}]] {one.get('name', number)!r}") for number, one in _count(found)]

    def rest(self) -> dict[str, Any]:
        """What was not taken."""
        return self._values

    def finish(self) -> None:
        """Refuse keys that nobody took."""
        for key in self._values:
            raise InputError(f"{self.place}: unknown key {key!r}; known are {', '.join(self._known)}")


def read_toml(path: Path) -> TomlTable:
    """Read a TOML file.

    Raises
    ------
    InputError
        The file is missing, unreadable or no TOML.
    """
    try:
        return TomlTable(tomllib.loads(path.read_text(encoding="utf-8")), str(path))
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: this is no TOML: {error}") from error


def _count(items: list[dict[str, Any]]) -> list[tuple[int, dict[str, Any]]]:
    return list(enumerate(items, start=1))
