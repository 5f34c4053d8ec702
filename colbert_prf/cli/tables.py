"""Show a table of results on a terminal."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape
from rich.table import Table as TerminalTable

from colbert_prf.evaluation import Table

__all__ = ["print_table"]


def print_table(output: Console, table: Table) -> None:
    """Print a table: the best value of a column is bold, letters stand behind the values, aligned.

    Groups of columns are printed one below the other, so that they fit on a screen.
    """
    groups = list(dict.fromkeys(column.group for column in table.columns)) or [""]
    for number, group in enumerate(groups):
        if group:
            output.print(("\n" if number else "") + f"[bold]{escape(group)}[/bold]")
        _print_group(output, table.of_group(group))


def _print_group(output: Console, table: Table) -> None:
    shown = TerminalTable(box=None, pad_edge=False)
    for title in table.label_titles:
        shown.add_column(escape(title), overflow="fold")
    for column in table.columns:
        shown.add_column(escape(column.title), justify="right", no_wrap=True)
    widths = [
        max((len(row.cells[index].letters) for row in table.rows), default=0) for index in range(len(table.columns))
    ]
    heading = ""
    for row in table.rows:
        if row.group != heading:
            heading = row.group
            shown.add_row()
            shown.add_row(f"[italic]{escape(heading)}[/italic]")
        first, *others = map(escape, row.labels)
        cells = [f"{first} ({row.letter})" if row.letter else first, *others]
        for index, (cell, column) in enumerate(zip(row.cells, table.columns, strict=True)):
            value = escape(cell.spelled(column))
            value = f"[bold]{value}[/bold]" if table.is_best(row, index) else value
            cells.append(f"{value} [dim]{cell.letters:<{widths[index]}}[/dim]" if widths[index] else value)
        shown.add_row(*cells)
    output.print(shown)
