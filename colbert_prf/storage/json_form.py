"""Frozen dataclasses to JSON and back, strictly: what is read is exactly what was written, or it is refused."""

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
from colbert_prf.storage.durable import write_whole
from colbert_prf.storage.files import open_file

__all__ = ["MAY_BE_MISSING", "read_json", "read_kind", "write_json"]

MAY_BE_MISSING = types.MappingProxyType({"may be missing": True})
"""The metadata of a dataclass field that files of before do not have; it has its default then."""

Value = TypeVar("Value")


def write_json(path: Path, value: Any, *, kind: str, version: int) -> None:
    """Replace a JSON file with a dataclass, its kind, its format version and a checksum of all of it."""
    write_whole(path, _text({"kind": kind, "version": version, "content": asdict(value)}).encode())


def read_json(
    path: Path,
    type_: type[Value],
    *,
    kind: str,
    version: int,
    older: Mapping[int, Callable[[dict[str, Any]], dict[str, Any]]] | None = None,
) -> Value:
    """Read what :func:`write_json` wrote.

    Parameters
    ----------
    path
        The file.
    type_
        A dataclass of plain values, tuples, dicts with string keys, optionals and other such dataclasses.
    kind, version
        What the file must say it is.
    older
        Earlier versions that are read too, each with the function that brings its content to ``version``.

    Raises
    ------
    IndexFormatError
        Naming the file: missing, damaged, of another kind or version, with missing or unknown keys or wrong types.
    StorageError
        If it may not be read.
    """
    text, document = _read(path, missing=f"not a {kind}, or one whose build was not finished")
    if not isinstance(document, dict) or document.get("kind") != kind:
        raise IndexFormatError(f"not a {kind}: {_found(document)}", path=path)
    found = document.get("version")
    upgrade = older.get(found) if older and isinstance(found, int) else None
    if found != version and upgrade is None:
        raise IndexFormatError(
            f"format version {found!r}, this version of colbert-prf reads {version}; install the "
            "version that made the index, or build it again",
            path=path,
        )
    document.pop("checksum", None)
    if _text(document) != text:
        raise IndexFormatError("the checksum does not fit the content: damaged, or edited by hand", path=path)
    try:
        content = _of(dict, document.get("content"), kind)
        value: Value = _convert(type_, upgrade(content) if upgrade else content, kind)
    except TypeError as error:
        raise IndexFormatError(str(error), path=path) from error
    return value


def read_kind(path: Path) -> str | None:
    """What a file that :func:`write_json` wrote says it is; None if it does not say.

    Raises
    ------
    IndexFormatError
        Naming the file, if it is missing or no JSON.
    """
    document = _read(path)[1]
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


def _found(document: Any) -> str:
    """What stands in place of the right kind: another of ours is named."""
    kind = document.get("kind") if isinstance(document, dict) else None
    is_ours = isinstance(kind, str) and kind.startswith("colbert-prf ")
    return f"it is a {kind!r:.60}" if is_ours else "a foreign file, or a damaged one"


def _text(document: dict[str, Any]) -> str:
    """The one spelling of a document: any other byte in the file is damage."""
    checksum = zlib.crc32(json.dumps(document, sort_keys=True).encode())
    return json.dumps({**document, "checksum": checksum}, sort_keys=True, indent=1) + "\n"


def _convert(type_: Any, value: Any, where: str) -> Any:
    """Turn what JSON gave into ``type_``; a TypeError says where it cannot be done."""
    origin = typing.get_origin(type_)
    if is_dataclass(type_):
        return _convert_dataclass(type_, value, where)
    if origin in (typing.Union, types.UnionType):
        inner = next(part for part in typing.get_args(type_) if part is not type(None))
        return None if value is None else _convert(inner, value, where)
    if origin is tuple:
        inner = typing.get_args(type_)[0]
        return tuple(_convert(inner, item, f"{where}[{i}]") for i, item in enumerate(_of(list, value, where)))
    if origin is dict:
        inner = typing.get_args(type_)[1]
        return {key: _convert(inner, item, f"{where}.{key}") for key, item in _of(dict, value, where).items()}
    return _of(type_, value, where)


def _convert_dataclass(type_: Any, value: Any, where: str) -> Any:
    hints = _hints(type_)
    names = hints.keys()
    content = _of(dict, value, where)
    needed = {item.name for item in fields(type_) if not MAY_BE_MISSING.items() <= item.metadata.items()}
    if not needed <= content.keys() <= names:
        missing, unknown = sorted(needed - content.keys()), sorted(content.keys() - names)
        raise TypeError(f"{where} lacks the keys {missing} and has the unknown keys {unknown}")
    return type_(**{key: _convert(hints[key], item, f"{where}.{key}") for key, item in content.items()})


@cache
def _hints(type_: Any) -> dict[str, Any]:
    hints = typing.get_type_hints(type_)
    return {item.name: hints[item.name] for item in fields(type_)}


def _of(type_: type[Value], value: Any, where: str) -> Value:
    if not isinstance(value, type_) or (isinstance(value, bool) and type_ is not bool):
        raise TypeError(f"{where} must be {type_.__name__}, found {value!r}")
    return value
