"""Options under a new name that still take their old one, which ``--help`` does not show."""

from __future__ import annotations

from typing import Any

import click

__all__ = ["Renamed"]


class Renamed(click.Option):
    """An option with old names.

    Parameters
    ----------
    param_decls
        The names of the option.
    old
        Those among them that are understood and not shown.
    attributes
        As of every option.
    """

    def __init__(self, param_decls: list[str], *, old: tuple[str, ...], **attributes: Any) -> None:
        super().__init__([*param_decls, *old], **attributes)
        self.old = old

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """The help without the old names."""
        record = super().get_help_record(ctx)
        if record is None:
            return None
        names, text = record
        for name in self.old:
            names = names.replace(f", {name} ", " ").replace(f"{name}, ", "")
        return names, text
