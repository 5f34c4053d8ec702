"""A table of results, apart from how it is printed: systems as rows, measures as columns, collections as groups."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import groupby

from colbert_prf.errors import InputError
from colbert_prf.evaluation.result import Evaluation

__all__ = ["Cell", "Column", "Row", "Table", "comparisons_table", "means_table", "queries_table"]

Value = float | int | str | None


@dataclass(frozen=True)
class Column:
    """A column of results.

    Parameters
    ----------
    title
        Such as ``"MAP"``.
    group
        What stands over neighbouring columns, such as the name of a collection.
    spec
        How numbers are written, in Python's format language.
    highlight
        Whether the highest value is the best and set off.
    """

    title: str
    group: str = ""
    spec: str = ".4f"
    highlight: bool = False


@dataclass(frozen=True)
class Cell:
    """A value with its superscript; None is a value that is not there."""

    value: Value
    letters: str = ""

    def spelled(self, column: Column) -> str:
        """Write the value without its superscript.

        Examples
        --------
        >>> Cell(0.54312).spelled(Column("MAP")), Cell(None).spelled(Column("MAP"))
        ('0.5431', '–')
        """
        if self.value is None or (isinstance(self.value, float) and math.isnan(self.value)):
            return "–"
        return self.value if isinstance(self.value, str) else format(self.value, column.spec)


@dataclass(frozen=True)
class Row:
    """What a row is about, its cells, the letter by which superscripts refer to it, and the heading it stands under.

    Rows of the same group follow each other; no group, no heading.
    """

    labels: tuple[str, ...]
    cells: tuple[Cell, ...]
    letter: str = ""
    group: str = ""


@dataclass(frozen=True)
class Table:
    """Rows and columns of results.

    Parameters
    ----------
    label_titles
        Over the labels of the rows, such as ``("system",)``.
    columns, rows
        As many cells in each row as columns.
    """

    label_titles: tuple[str, ...]
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row.cells) != len(self.columns) or len(row.labels) != len(self.label_titles):
                raise InputError(
                    f"row {row.labels} needs {len(self.label_titles)} labels and {len(self.columns)} cells, "
                    f"found {len(row.labels)} and {len(row.cells)}"
                )

    def groups(self) -> list[tuple[str, list[Row]]]:
        """The rows under their headings, in order.

        Examples
        --------
        >>> rows = [Row((name,), (), group=group) for name, group in (("BM25", "lexical"), ("ANCE", "dense"))]
        >>> [heading for heading, _ in Table(("system",), (), tuple(rows)).groups()]
        ['lexical', 'dense']
        """
        return [(group, list(rows)) for group, rows in groupby(self.rows, key=lambda row: row.group)]

    def with_groups(self, groups: Mapping[str, str]) -> Table:
        """Put each row under a heading, by its first label, and the rows of a heading together."""
        rows = [replace(row, group=groups.get(row.labels[0], "")) for row in self.rows]
        order = list(dict.fromkeys(row.group for row in rows))
        return replace(self, rows=tuple(sorted(rows, key=lambda row: order.index(row.group))))

    def is_best(self, row: Row, column_index: int) -> bool:
        """Tell whether a cell is the highest of a highlighted column, as far as the digits shown tell."""
        column = self.columns[column_index]
        values = [shown for other in self.rows if (shown := _shown(other.cells[column_index], column)) is not None]
        own = _shown(row.cells[column_index], column)
        return column.highlight and own is not None and len(values) > 1 and own == max(values)

    def of_group(self, group: str) -> Table:
        """The columns of one group only."""
        kept = [index for index, column in enumerate(self.columns) if column.group == group]
        rows = (replace(row, cells=tuple(row.cells[index] for index in kept)) for row in self.rows)
        return replace(self, columns=tuple(self.columns[index] for index in kept), rows=tuple(rows))

    def with_column(self, column: Column, values: Mapping[str, Value]) -> Table:
        """Add a column on the right, such as response times, by the first label of each row.

        Examples
        --------
        >>> table = Table(("system",), (), (Row(("BM25",), ()),))
        >>> table.with_column(Column("MRT", spec=".1f"), {"BM25": 132.4}).rows[0].cells
        (Cell(value=132.4, letters=''),)
        """
        rows = (replace(row, cells=(*row.cells, Cell(values.get(row.labels[0])))) for row in self.rows)
        return replace(self, columns=(*self.columns, column), rows=tuple(rows))

    def beside(self, other: Table) -> Table:
        """Put the columns of another table, which has the same rows, to the right of these."""
        own, others = ([(row.labels, row.letter) for row in table.rows] for table in (self, other))
        if own != others:
            raise InputError(f"tables side by side need the same rows, found {own} and {others}")
        rows = (replace(row, cells=row.cells + right.cells) for row, right in zip(self.rows, other.rows, strict=True))
        return replace(self, columns=self.columns + other.columns, rows=tuple(rows))


def means_table(evaluation: Evaluation, *, group: str = "") -> Table:
    """Tabulate the means of an evaluation, with the letters of the baselines that each significantly improves on.

    Parameters
    ----------
    evaluation
        Of one collection.
    group
        The name of the collection, to stand over the columns.

    Examples
    --------
    >>> from colbert_prf.evaluation import evaluate
    >>> found = evaluate({"q1": {"d1": 1}}, {"mine": {"q1": {"d1": 1.0}}}, ["MAP", "P@5"])
    >>> [cell.value for cell in means_table(found).rows[0].cells]
    [1.0, 0.2]
    """
    names = evaluation.measure_names
    rows = (
        Row(
            (system,),
            tuple(Cell(evaluation.mean(system, name), evaluation.letters(system, name)) for name in names),
            evaluation.letter(system),
        )
        for system in evaluation.systems
    )
    return Table(("system",), tuple(Column(name, group, highlight=True) for name in names), tuple(rows))


def queries_table(evaluation: Evaluation) -> Table:
    """Tabulate every value: a row per query and system, and as ``all`` the means."""
    rows = [
        Row((query_id, system), tuple(Cell(value) for value in evaluation.values[index, :, position].tolist()))
        for position, query_id in enumerate(evaluation.query_ids)
        for index, system in enumerate(evaluation.systems)
    ]
    rows += [
        Row(("all", system), tuple(Cell(value) for value in means))
        for system, means in zip(evaluation.systems, evaluation.means.tolist(), strict=True)
    ]
    return Table(("query", "system"), tuple(Column(name) for name in evaluation.measure_names), tuple(rows))


def comparisons_table(evaluation: Evaluation) -> Table:
    """Tabulate the comparisons: difference of the means, p-values, and queries won, tied and lost."""
    columns = (
        Column("difference", spec="+.4f"),
        Column("p", spec=".2g"),
        Column("p (Holm)", spec=".2g"),
        Column("wins", spec="d"),
        Column("ties", spec="d"),
        Column("losses", spec="d"),
    )
    rows = (
        Row(
            (one.system, one.baseline, one.measure),
            tuple(
                map(
                    Cell,
                    (one.difference, one.p_value, one.corrected_p_value, one.wins, one.ties, one.losses),
                )
            ),
        )
        for one in evaluation.comparisons
    )
    return Table(("system", "baseline", "measure"), columns, tuple(rows))


def _shown(cell: Cell, column: Column) -> float | None:
    """The number a reader sees; None where there is none."""
    if isinstance(cell.value, str) or cell.value is None or math.isnan(cell.value):
        return None
    return float(format(cell.value, column.spec))
