from __future__ import annotations

import csv
import io

import pytest

from colbert_prf.errors import InputError
from colbert_prf.evaluation import (
    Cell,
    Column,
    Row,
    Table,
    comparisons_table,
    evaluate,
    means_table,
    queries_table,
    to_csv,
    to_latex,
    to_markdown,
)

QRELS = {"q1": {"d1": 1}, "q2": {"d1": 1}, "q3": {"d1": 1}}
OLD = {query_id: {"x": 2.0, "d1": 1.0} for query_id in QRELS}
NEW = {query_id: {"d1": 1.0} for query_id in QRELS}


@pytest.fixture
def evaluation():
    return evaluate(QRELS, {"old_1": OLD, "new": NEW}, ["MRR", "R@5"], baselines=["old_1"])


def test_means_with_letters_in_every_format(evaluation):
    table = means_table(evaluation)
    assert to_markdown(table) == (
        "| system | MRR | R@5 |\n"
        "|---|---:|---:|\n"
        "| old\\_1 (a) | 0.5000 | **1.0000** |\n"
        "| new | **1.0000**<sup>a</sup> | **1.0000** |\n"
    )
    assert to_latex(table) == (
        "\\begin{tabular}{lrr}\n\\toprule\nsystem & MRR & R@5 \\\\\n\\midrule\n"
        "old\\_1 (a) & 0.5000 & \\textbf{1.0000} \\\\\n"
        "new & \\textbf{1.0000}$^{a}$ & \\textbf{1.0000} \\\\\n"
        "\\bottomrule\n\\end{tabular}\n"
    )
    assert to_csv(table) == "system,letter,MRR,MRR letters,R@5\nold_1,a,0.5,,1.0\nnew,,1.0,a,1.0\n"


def test_queries_and_their_means(evaluation):
    assert to_csv(queries_table(evaluation)).splitlines() == [
        "query,system,MRR,R@5",
        "q1,old_1,0.5,1.0",
        "q1,new,1.0,1.0",
        "q2,old_1,0.5,1.0",
        "q2,new,1.0,1.0",
        "q3,old_1,0.5,1.0",
        "q3,new,1.0,1.0",
        "all,old_1,0.5,1.0",
        "all,new,1.0,1.0",
    ]


def test_comparisons(evaluation):
    rows = list(csv.DictReader(io.StringIO(to_csv(comparisons_table(evaluation)))))
    assert rows[0] == {
        "system": "new",
        "baseline": "old_1",
        "measure": "MRR",
        "difference": "0.5",
        "p": "0.0",
        "p (Holm)": "0.0",
        "wins": "3",
        "ties": "0",
        "losses": "0",
    }
    assert (rows[1]["measure"], rows[1]["p (Holm)"], rows[1]["ties"]) == ("R@5", "1.0", "3")


def test_collections_side_by_side_with_response_times(evaluation):
    """The shape of the paper's table."""
    first = means_table(evaluation, group="TREC 2019").with_column(
        Column("MRT", "TREC 2019", ".1f"), {"old_1": 132.4, "new": 4391.21}
    )
    both = first.beside(means_table(evaluation, group="TREC 2020"))
    lines = to_latex(both).splitlines()
    assert lines[0] == r"\begin{tabular}{lrrrrr}"
    assert lines[2] == r" & \multicolumn{3}{c}{TREC 2019} & \multicolumn{2}{c}{TREC 2020} \\"
    assert lines[3] == r"\cmidrule(lr){2-4}\cmidrule(lr){5-6}"
    assert lines[4] == r"system & MRR & R@5 & MRT & MRR & R@5 \\"
    assert lines[6].startswith(r"old\_1 (a) & 0.5000 & \textbf{1.0000} & 132.4 & 0.5000")
    assert to_markdown(both).splitlines()[0].startswith("| system | TREC 2019 MRR | TREC 2019 R@5 | TREC 2019 MRT |")


def test_tables_side_by_side_need_the_same_rows(evaluation):
    other = evaluate(QRELS, {"new": NEW}, ["MRR"])
    with pytest.raises(InputError, match="need the same rows"):
        means_table(evaluation).beside(means_table(other))


def test_the_best_is_as_the_digits_shown_tell():
    values = {"a": 0.50001, "b": 0.50002, "c": 0.4, "d": float("nan"), "e": None}
    rows = tuple(Row((name,), (Cell(value),)) for name, value in values.items())
    table = Table(("system",), (Column("MAP", highlight=True),), rows)
    assert [row.labels[0] for row in rows if table.is_best(row, 0)] == ["a", "b"]
    assert [row.cells[0].spelled(table.columns[0]) for row in rows[2:]] == ["0.4000", "–", "–"]
    alone = Table(("system",), (Column("MAP", highlight=True),), rows[:1])
    assert not alone.is_best(rows[0], 0)


def test_names_cannot_break_a_format():
    name = r"a|b_c*d\e&f%g$h#i{j}~^<k>[l]`"
    table = Table(("system",), (Column("MAP"),), (Row((name,), (Cell(1.0),)),))
    (line,) = to_markdown(table).splitlines()[2:]
    assert line == "| a\\|b\\_c\\*d\\\\e&f%g$h#i{j}~^\\<k>\\[l]\\` | 1.0000 |"
    assert to_latex(table).splitlines()[4] == (
        r"a\textbar{}b\_c*d\textbackslash{}e\&f\%g\$h\#i\{j\}\textasciitilde{}\textasciicircum{}"
        r"\textless{}k\textgreater{}[l]` & 1.0000 \\"
    )
    assert list(csv.reader(io.StringIO(to_csv(table))))[1] == [name, "1.0"]


def test_a_row_needs_its_cells():
    with pytest.raises(InputError, match="needs 1 labels and 2 cells, found 1 and 1"):
        Table(("system",), (Column("MAP"), Column("MRR")), (Row(("mine",), (Cell(1.0),)),))


def test_labels_that_would_break_a_row_do_not():
    table = Table(("system",), (Column("MAP"),), (Row(("two\nlines",), (Cell(0.5),)), Row(("[how]",), (Cell(0.25),))))
    assert "| two lines |" in to_markdown(table)
    assert "\n{}[how] & " in to_latex(table)
