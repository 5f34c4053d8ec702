"""What MkDocs does with docstrings before it shows them: roles such as ``:class:`` become links to the reference."""

from __future__ import annotations

import re
from typing import Any

import griffe

ROLE = re.compile(r":(?:attr|class|data|func|meth|mod):`(~?)([\w.]+)`")
LITERAL = re.compile(r"^([^\n]*)::$", re.MULTILINE)


class Roles(griffe.Extension):
    """Rewrites the docstrings of a package once all of it is loaded."""

    def on_package(self, *, pkg: griffe.Module, **kwargs: Any) -> None:
        """Rewrite all docstrings."""
        _rewrite(pkg)


def _rewrite(holder: griffe.Object) -> None:
    if holder.docstring is not None:
        text = ROLE.sub(lambda match: _link(holder, match[2], short=bool(match[1])), holder.docstring.value)
        holder.docstring.value = LITERAL.sub(lambda match: f"{match[1]}:" if match[1].strip() else "", text)
    for member in holder.members.values():
        if isinstance(member, griffe.Object):  # not the names that a module imports
            _rewrite(member)


def _link(holder: griffe.Object, name: str, *, short: bool) -> str:
    """A name as a link if the reference has it, otherwise as code."""
    shown = name.rpartition(".")[2] if short else name
    first, dot, rest = name.partition(".")
    try:
        target = name if first == "colbert_prf" else holder.resolve(first) + dot + rest
    except griffe.NameResolutionError:
        return f"`{shown}`"
    return f'<autoref identifier="{target}" optional><code>{shown}</code></autoref>'
