"""What every transformer here is: parameters and nothing else, so that it can be pickled, compared and inspected."""

from __future__ import annotations

from typing import Any

import pyterrier as pt

__all__ = ["Component"]


class Component(pt.Transformer):
    """A transformer that is its parameters; what it opens is opened on first use, under a private name."""

    def parameters(self) -> dict[str, Any]:
        """What it was made with."""
        return {attribute.name: attribute.value for attribute in pt.inspect.transformer_attributes(self)}

    def changed(self, **parameters: Any) -> Component:
        """The same with some parameters replaced."""
        return type(self)(**{**self.parameters(), **parameters})

    def __repr__(self) -> str:
        attributes = pt.inspect.transformer_attributes(self)
        shown = [f"{one.name}={one.value!r}" for one in attributes if not _equal(one.value, one.init_default_value)]
        return f"{type(self).__name__}({', '.join(shown)})"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.parameters() == other.parameters()

    def __hash__(self) -> int:
        return hash(repr(self))

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if not name.startswith("_")}


def _equal(value: object, default: object) -> bool:
    """Whether a parameter need not be shown."""
    return type(value) is type(default) and value == default
