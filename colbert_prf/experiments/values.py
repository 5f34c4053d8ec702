"""Whether a value written in a configuration is of the type that a parameter asks for."""

from __future__ import annotations

import types
from collections.abc import Sequence
from typing import Any, Literal, Union, get_args, get_origin

__all__ = ["describe_type", "fits"]

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
