"""Write a table as Markdown, LaTeX, CSV or HTML."""

from __future__ import annotations

import csv
import html
import io
import re
from itertools import groupby

from colbert_prf.evaluation.tables import Column, Row, Table

__all__ = ["to_csv", "to_html", "to_latex", "to_markdown"]

_LATEX_SPECIAL = re.compile(r"[\\&%$#_{}~^<>|–βσ]")
_LATEX_ESCAPES = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "–": "--",
    "β": r"$\beta$",
    "σ": r"$\sigma$",
}


def to_markdown(table: Table) -> str:
    """Write a table for a README; the best value of a column is bold, letters are superscripts.

    Examples
    --------
    >>> from colbert_prf.evaluation.tables import Cell
    >>> row = Row(("mine",), (Cell(0.5, "ab"),))
    >>> print(to_markdown(Table(("system",), (Column("MAP"),), (row,))), end="")
    | system | MAP |
    |---|---:|
    | mine | 0.5000<sup>ab</sup> |
    """
    titles = [_markdown(title) for title in (*table.label_titles, *map(_whole_title, table.columns))]
    lines = [titles, ["---"] * len(table.label_titles) + ["---:"] * len(table.columns)]
    text = "".join(f"|{'|'.join(line)}|\n" if line[0] == "---" else f"| {' | '.join(line)} |\n" for line in lines)
    for heading, rows in table.groups():
        if heading:
            text += f"| **{_markdown(heading)}** |{' |' * (len(titles) - 1)}\n"
        for row in rows:
            cells = [_markdown(label) for label in _labels(row)]
            for index, (cell, column) in enumerate(zip(row.cells, table.columns, strict=True)):
                shown = _markdown(cell.spelled(column))
                shown = f"**{shown}**" if table.is_best(row, index) else shown
                cells.append(f"{shown}<sup>{cell.letters}</sup>" if cell.letters else shown)
            text += f"| {' | '.join(cells)} |\n"
    return text


def to_latex(table: Table) -> str:
    r"""Write a ``tabular`` for a paper, with the rules of the package booktabs and a heading over each group.

    Examples
    --------
    >>> from colbert_prf.evaluation.tables import Cell
    >>> row = Row(("BM25_docT5q",), (Cell(0.5, "ab"),))
    >>> print(to_latex(Table(("system",), (Column("MAP"),), (row,))), end="")
    \begin{tabular}{lr}
    \toprule
    system & MAP \\
    \midrule
    BM25\_docT5q & 0.5000$^{ab}$ \\
    \bottomrule
    \end{tabular}
    """
    lines = [rf"\begin{{tabular}}{{{'l' * len(table.label_titles)}{'r' * len(table.columns)}}}", r"\toprule"]
    if any(column.group for column in table.columns):
        lines += _latex_groups(table)
    titles = [*table.label_titles, *(column.title for column in table.columns)]
    lines += [" & ".join(map(_latex, titles)) + r" \\", r"\midrule"]
    for number, (heading, rows) in enumerate(table.groups()):
        if heading:
            title = rf"\multicolumn{{{len(titles)}}}{{c}}{{{_latex(heading)}}} \\"
            lines += [*([r"\midrule"] if number else []), title, r"\midrule"]
        lines += [_latex_row(table, row) for row in rows]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", ""])


def to_html(table: Table) -> str:
    """Write a table for a web page; the best value of a column is bold, letters are superscripts.

    Examples
    --------
    >>> from colbert_prf.evaluation.tables import Cell
    >>> row = Row(("mine",), (Cell(0.5, "ab"),))
    >>> print(to_html(Table(("system",), (Column("MAP"),), (row,))), end="")
    <table>
    <thead>
    <tr><th>system</th><th>MAP</th></tr>
    </thead>
    <tbody>
    <tr><th>mine</th><td>0.5000<sup>ab</sup></td></tr>
    </tbody>
    </table>
    """
    lines = ["<table>", "<thead>"]
    if any(column.group for column in table.columns):
        heads = [(group, len(list(columns))) for group, columns in groupby(table.columns, key=lambda one: one.group)]
        cells = "".join(f'<th class="group" colspan="{width}">{html.escape(group)}</th>' for group, width in heads)
        lines.append(f"<tr>{'<th></th>' * len(table.label_titles)}{cells}</tr>")
    titles = [*table.label_titles, *(column.title for column in table.columns)]
    lines += [f"<tr>{''.join(f'<th>{html.escape(title)}</th>' for title in titles)}</tr>", "</thead>", "<tbody>"]
    for heading, rows in table.groups():
        if heading:
            lines.append(f'<tr><th class="group" colspan="{len(titles)}">{html.escape(heading)}</th></tr>')
        lines += [_html_row(table, row) for row in rows]
    return "\n".join([*lines, "</tbody>", "</table>", ""])


def to_csv(table: Table) -> str:
    """Write a table for programs: numbers in full, letters in columns of their own.

    Examples
    --------
    >>> from colbert_prf.evaluation.tables import Cell
    >>> rows = (Row(("old",), (Cell(0.25),), "a"), Row(("mine",), (Cell(0.5, "a"),)))
    >>> print(to_csv(Table(("system",), (Column("MAP"),), rows)), end="")
    system,letter,MAP,MAP letters
    old,a,0.25,
    mine,,0.5,a
    """
    lettered, grouped = (any(getattr(row, name) for row in table.rows) for name in ("letter", "group"))
    marked = [any(row.cells[index].letters for row in table.rows) for index in range(len(table.columns))]
    header = [*(["group"] if grouped else []), *table.label_titles, *(["letter"] if lettered else [])]
    for column, has_letters in zip(table.columns, marked, strict=True):
        header += [_whole_title(column), *([f"{_whole_title(column)} letters"] if has_letters else [])]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    for row in table.rows:
        line: list[object] = [*([row.group] if grouped else []), *row.labels, *([row.letter] if lettered else [])]
        for cell, has_letters in zip(row.cells, marked, strict=True):
            line += [cell.value, *([cell.letters] if has_letters else [])]
        writer.writerow(line)
    return text.getvalue()


def _latex_row(table: Table, row: Row) -> str:
    cells = [_latex(label) for label in _labels(row)]
    for index, (cell, column) in enumerate(zip(row.cells, table.columns, strict=True)):
        shown = _latex(cell.spelled(column))
        shown = rf"\textbf{{{shown}}}" if table.is_best(row, index) else shown
        cells.append(f"{shown}$^{{{cell.letters}}}$" if cell.letters else shown)
    return " & ".join(cells) + r" \\"


def _html_row(table: Table, row: Row) -> str:
    cells = [f"<th>{html.escape(label)}</th>" for label in _labels(row)]
    for index, (cell, column) in enumerate(zip(row.cells, table.columns, strict=True)):
        shown = html.escape(cell.spelled(column))
        shown = f"<b>{shown}</b>" if table.is_best(row, index) else shown
        cells.append(f"<td>{shown}<sup>{cell.letters}</sup></td>" if cell.letters else f"<td>{shown}</td>")
    return f"<tr>{''.join(cells)}</tr>"


def _labels(row: Row) -> list[str]:
    first, *others = row.labels
    return [f"{first} ({row.letter})" if row.letter else first, *others]


def _whole_title(column: Column) -> str:
    return f"{column.group} {column.title}".strip()


def _markdown(text: str) -> str:
    return re.sub(r"([\\|*_<`\[])", r"\\\1", " ".join(text.split()))


def _latex(text: str) -> str:
    escaped = _LATEX_SPECIAL.sub(lambda found: _LATEX_ESCAPES.get(found[0], "\\" + found[0]), text)
    # After the end of a row these would be its argument.
    return f"{{}}{escaped}" if escaped.startswith(("[", "*")) else escaped


def _latex_groups(table: Table) -> list[str]:
    """One heading over each run of columns of the same group, and a rule under it."""
    heads, rules, position = [""] * len(table.label_titles), [], len(table.label_titles) + 1
    for group, columns in groupby(table.columns, key=lambda column: column.group):
        width = len(list(columns))
        heads.append(rf"\multicolumn{{{width}}}{{c}}{{{_latex(group)}}}")
        if group:
            rules.append(rf"\cmidrule(lr){{{position}-{position + width - 1}}}")
        position += width
    return [" & ".join(heads) + r" \\", "".join(rules)]
