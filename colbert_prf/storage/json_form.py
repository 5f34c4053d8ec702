"""Frozen dataclasses as JSON files: a file reads back exactly as it was written, or it is refused."""

from __future__ import annotations

import json
import types
import typing
import zlib
from collections.abc import Callable, Mapping
from dataclasses import asdict, fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from colbert_prf.errors import IndexFormatError
from colbert_prf.storage.durable import write_atomically
from colbert_prf.storage.files import open_file

__all__ = ["MAY_BE_MISSING", "read_json", "read_kind", "write_json"]

MAY_BE_MISSING = types.MappingProxyType({"may be missing": True})
"""The metadata of a dataclass field that older files lack; it then has its default."""

Value = TypeVar("Value")


def write_json(path: Path, value: Any, *, kind: str, version: int) -> None:
    """Replace a JSON file with a dataclass, its kind, its format version and a checksum of them all."""
    write_atomically(path, _text({"kind": kind, "version": version, "content": asdict(value)}).encode())


def read_json(
    path: Path,
    type_: type[Value],
    *,
    kind: str,
    version: int,
    upgrades: Mapping[int, Callable[[dict[str, Any]], dict[str, Any]]] | None = None,
) -> Value:
    """Read what :func:`write_json` wrote.

    Parameters
    ----------
    path
        The file.
    type_
        A dataclass of plain values, tuples, dicts with string keys, optionals and other such dataclasses.
    kind, version
        The kind and the version that the file must have.
    upgrades
        For each older version that is accepted too, a function that converts its content to ``version``.

    Raises
    ------
    IndexFormatError
        It names the file: missing, damaged, of another kind or version, with missing or unknown keys or wrong types.
    StorageError
        If the file may not be read.
    """
    text, document = _read(path, missing=f"not a {kind}, or one whose build was not finished")
    if not isinstance(document, dict) or document.get("kind") != kind:
        raise IndexFormatError(f"not a {kind}: {_describe(document)}", path=path)
    file_version = document.get("version")
    upgrade = upgrades.get(file_version) if upgrades and isinstance(file_version, int) else None
    if file_version != version and upgrade is None:
        raise IndexFormatError(
            f"format version {file_version!r}, this version of colbert-prf reads {version}; install the "
            "version that made the index, or build it again",
            path=path,
        )
    document.pop("checksum", None)
    if _text(document) != text:
        raise IndexFormatError("the checksum does not fit the content: damaged, or edited by hand", path=path)
    try:
        content = _instance(dict, document.get("content"), kind)
        value: Value = _convert(type_, upgrade(content) if upgrade else content, kind)
    except TypeError as error:
        raise IndexFormatError(str(error), path=path) from error
    return value


def read_kind(path: Path) -> str | None:
    """Read the kind of a file that :func:`write_json` wrote; None if the file has no kind.

    Raises
    ------
    IndexFormatError
        It names the file if it is missing or no JSON.
    """
    _, document = _read(path)
    kind = document.get("kind") if isinstance(document, dict) else None
    return kind if isinstance(kind, str) else None


def _read(path: Path, *, missing: str | None = None) -> tuple[str, Any]:
    with open_file(path, missing=missing) as file:
        content = file.read()
    try:
        text = content.decode("utf-8")
        return text, json.loads(text)
    except (ValueError, RecursionError) as error:
        raise IndexFormatError(f"not JSON ({error}): damaged or foreign", path=path) from error


def _describe(document: Any) -> str:
    """Describe a document of another kind; one of this package's kinds is named."""
    kind = document.get("kind") if isinstance(document, dict) else None
    is_ours = isinstance(kind, str) and kind.startswith("colbert-prf ")
    return f"it is a {kind!r:.60}" if is_ours else "a foreign file, or a damaged one"


def _text(document: dict[str, Any]) -> str:
    """Return the only accepted spelling of a document: any other byte in the file is damage."""
    checksum = zlib.crc32(json.dumps(document, sort_keys=True).encode())
    return json.dumps({**document, "checksum": checksum}, sort_keys=True, indent=1) + "\n"


def _convert(type_: Any, value: Any, path: str) -> Any:
    """Convert a JSON value to ``type_``; a TypeError names the path of a value that does not fit."""
    origin = typing.get_origin(type_)
    if is_dataclass(type_):
        return _convert_dataclass(type_, value, path)
    if origin in (typing.Union, types.UnionType):
        item_type = next(part for part in typing.get_args(type_) if part is not type(None))
        return None if value is None else _convert(item_type, value, path)
    if origin is tuple:
        item_type = typing.get_args(type_)[0]
        items = enumerate(_instance(list, value, path))
        return tuple(_convert(item_type, item, f"{path}[{number}]") for number, item in items)
    if origin is dict:
        item_type = typing.get_args(type_)[1]
        return {key: _convert(item_type, item, f"{path}.{key}") for key, item in _instance(dict, value, path).items()}
    return _instance(type_, value, path)


def _convert_dataclass(type_: Any, value: Any, path: str) -> Any:
    types_by_name = _field_types(type_)
    content = _instance(dict, value, path)
    required = {item.name for item in fields(type_) if not MAY_BE_MISSING.items() <= item.metadata.items()}
    if not required <= content.keys() <= types_by_name.keys():
        missing, unknown = sorted(required - content.keys()), sorted(content.keys() - types_by_name.keys())
        raise TypeError(f"{path} lacks the keys {missing} and has the unknown keys {unknown}")
    return type_(**{name: _convert(types_by_name[name], item, f"{path}.{name}") for name, item in content.items()})


@cache
def _field_types(type_: Any) -> dict[str, Any]:
    hints = typing.get_type_hints(type_)
    return {item.name: hints[item.name] for item in fields(type_)}


def _instance(type_: type[Value], value: Any, path: str) -> Value:
    if not isinstance(value, type_) or (isinstance(value, bool) and type_ is not bool):
        raise TypeError(f"{path} must be {type_.__name__}, found {value!r}")
    return value
