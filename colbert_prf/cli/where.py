"""The option ``--where``: a filter as JSON or in its short form."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, TypeVar

import click

from colbert_prf.errors import InputError
from colbert_prf.search.filters import parse_filter

__all__ = ["parse_where", "where_option"]

Command = TypeVar("Command", bound=Callable[..., Any])
_SHORT = re.compile(r"\s*([^<>=!{}]+?)\s*(<=|>=|!=|=|<|>)\s*(.*?)\s*", re.DOTALL)


def where_option(command: Command) -> Command:
    """The option of every command that filters; its value is a filter, or None."""
    return click.option(
        "--where",
        metavar="FILTER",
        multiple=True,
        callback=lambda context, parameter, given: parse_where(given),
        help="Only passages whose metadata match: year>=2020, or JSON such as "
        '\'{"source": ["garden", "pond"]}\'. May be repeated; all must hold. See docs/guide/filters.md.',
    )(command)


def parse_where(given: tuple[str, ...]) -> dict[str, Any] | None:
    """Read filters, all of which must hold; None if there is none.

    Examples
    --------
    >>> parse_where(("year>=2020", "source = garden"))
    {'and': [{'year': {'>=': 2020}}, {'source': {'=': 'garden'}}]}
    >>> parse_where(('{"or": [{"year": 1999}, {"open": true}]}',))
    {'or': [{'year': 1999}, {'open': True}]}
    """
    filters = [_parsed(text) for text in given]
    if not filters:
        return None
    where = filters[0] if len(filters) == 1 else {"and": filters}
    try:
        parse_filter(where)
    except InputError as error:
        raise click.UsageError(str(error).replace("where:", "--where:", 1)) from error
    return where


def _parsed(text: str) -> dict[str, Any]:
    if text.lstrip().startswith("{"):
        try:
            where: dict[str, Any] = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise click.UsageError(f"--where: not valid JSON ({error}): {text:.80}") from error
        return where
    if (match := _SHORT.fullmatch(text)) is None:
        raise click.UsageError(
            f"--where: expected FIELD OPERATOR VALUE, such as year>=2020, or JSON, found {text!r:.80}"
        )
    field, name, value = match.groups()
    return {field: {name: _value(value)}}


def _value(text: str) -> Any:
    """A number, ``true``, ``false``, ``null`` or a quoted string as in JSON; any other text as it stands."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return value if not isinstance(value, dict | list) else text
