"""A report of an experiment: tables in three formats, and one page that holds everything, figures included."""

from __future__ import annotations

import base64
import csv
import html
import io
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

from colbert_prf.errors import MissingExtraError
from colbert_prf.evaluation import (
    FAMILIES,
    Cell,
    Column,
    Row,
    Table,
    comparisons_table,
    means_table,
    queries_table,
    to_csv,
    to_html,
    to_latex,
    to_markdown,
)
from colbert_prf.experiments.experiment import Outcome, Results
from colbert_prf.plots.results import plot_bars, plot_differences
from colbert_prf.storage.durable import write_atomically

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["caption_of", "comparisons_of", "results_table", "stages_table", "write_report"]


RESPONSE = "MRT"
"""Mean response time, in milliseconds."""


def results_table(results: Results) -> Table:
    """The table of the paper: measures and mean response time on each collection, letters for significance."""
    table = reduce(Table.beside, [_of_collection(outcome) for outcome in results.outcomes])
    return table.with_groups({row.name: row.group for row in results.rows})


def stages_table(results: Results) -> Table:
    """The mean milliseconds of each stage, for each system that was run and each collection."""
    summaries = [(outcome, name, one) for outcome in results.outcomes for name, one in outcome.summaries.items()]
    stages = list(dict.fromkeys(stage for _, _, summary in summaries for stage in summary.stages))
    columns = [Column(stage, spec=".1f") for stage in [*stages, "response"]]
    rows = [
        Row(
            (name, outcome.collection.name),
            tuple(Cell(_milliseconds(spent)) for spent in [*map(summary.stages.get, stages), summary.seconds]),
        )
        for outcome, name, summary in summaries
    ]
    return Table(("system", "collection"), tuple(columns), tuple(rows))


def comparisons_of(results: Results) -> Table:
    """Every comparison with a baseline, on every collection."""
    tables = [comparisons_table(outcome.evaluation) for outcome in results.outcomes]
    rows = _labelled(zip((outcome.collection.name for outcome in results.outcomes), tables, strict=True))
    return Table(("collection", *tables[0].label_titles), tables[0].columns, tuple(rows))


def _of_collection(outcome: Outcome) -> Table:
    group = f"{outcome.collection.name} ({len(outcome.evaluation.query_ids)} queries)"
    times = {name: _milliseconds(summary.seconds) for name, summary in outcome.summaries.items()}
    return means_table(outcome.evaluation, group=group).with_column(Column(RESPONSE, group, ".1f"), times)


def _labelled(tables: Iterable[tuple[str, Table]]) -> Iterable[Row]:
    for name, table in tables:
        for row in table.rows:
            yield replace(row, labels=(name, *row.labels))


def _milliseconds(seconds: float | None) -> float | None:
    return None if seconds is None else 1000 * seconds


STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 100rem; padding: 0 1rem; color: #1a1a1a; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .87rem; }
th, td { padding: .2rem .6rem; text-align: right; white-space: nowrap; }
th:first-child { text-align: left; font-weight: normal; }
thead th { border-bottom: 1px solid #333; font-weight: 600; }
th.group { text-align: center; font-weight: 600; font-style: italic; border-bottom: 1px solid #bbb; }
tbody th.group { border-top: 1px solid #bbb; }
tbody tr:hover { background: #f2f6fa; }
sup { font-size: .65em; }
.wide { overflow-x: auto; }
img { max-width: 100%; height: auto; display: block; margin: 1rem 0; }
.note { color: #555; max-width: 60rem; }
"""


def write_report(results: Results, output: str | Path) -> list[Path]:
    """Write ``results.md``, ``.tex``, ``.csv``, ``stages.csv``, ``comparisons.csv``, ``queries.csv``, ``report.html``.

    Parameters
    ----------
    results
        From :func:`~colbert_prf.experiments.experiment.run_experiment`.
    output
        A folder that is there.

    Returns
    -------
    list of Path
        The files, the page last. Without the extra ``[plots]`` it has no figures, and says so.
    """
    output = Path(output)
    table = results_table(results)
    texts = {
        "results.md": to_markdown(table),
        "results.tex": to_latex(table),
        "results.csv": to_csv(table),
        "queries.csv": _queries(results),
    }
    if any(outcome.summaries for outcome in results.outcomes):
        texts["stages.csv"] = to_csv(stages_table(results))
    if any(outcome.evaluation.comparisons for outcome in results.outcomes):
        texts["comparisons.csv"] = to_csv(comparisons_of(results))
    texts["report.html"] = _page(results, table)
    for name, text in texts.items():
        write_atomically(output / name, text.encode())
    return [output / name for name in texts]


def caption_of(results: Results) -> list[str]:
    """What a reader of the table has to know, sentence by sentence."""
    experiment = results.experiment
    told = [experiment.note] if experiment.note else []
    grades = dict.fromkeys(outcome.collection.relevance for outcome in results.outcomes)
    told.append(f"Relevant in binary measures: grade {' and '.join(map(str, grades))} or more.")
    if any(outcome.evaluation.baselines for outcome in results.outcomes):
        told.append(
            "Letters: significantly higher than the row with that letter, paired t-test, "
            f"p < {experiment.alpha:g} after Holm's correction over {FAMILIES[experiment.family]}."
        )
    if any(outcome.summaries for outcome in results.outcomes):
        told.append(
            "MRT: mean response time in milliseconds, one query at a time, after a first search that is not counted."
        )
    return [*told, *results.notes]


def _queries(results: Results) -> str:
    """The values of every query, one table below the other."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for number, outcome in enumerate(results.outcomes):
        header, *rows = csv.reader(io.StringIO(to_csv(queries_table(outcome.evaluation))))
        if number == 0:
            writer.writerow(["collection", *header])
        writer.writerows([outcome.collection.name, *row] for row in rows)
    return text.getvalue()


def _page(results: Results, table: Table) -> str:
    title = html.escape(results.experiment.title)
    parts = [
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{title}</title>',
        f"<style>{STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>",
        f'<div class="wide">{to_html(table)}</div>',
        *(f'<p class="note">{html.escape(sentence)}</p>' for sentence in caption_of(results)),
        *_figures(results),
    ]
    if any(outcome.summaries for outcome in results.outcomes):
        parts += ["<h2>Response times</h2>", '<p class="note">Mean milliseconds per stage.</p>']
        parts.append(f'<div class="wide">{to_html(stages_table(results))}</div>')
    if any(outcome.evaluation.comparisons for outcome in results.outcomes):
        shown = to_html(comparisons_of(results))
        parts.append(f'<details><summary>All comparisons</summary><div class="wide">{shown}</div></details>')
    configured = html.escape(results.experiment.path.read_text(encoding="utf-8"))
    parts.append(f"<details><summary>Configuration</summary><pre>{configured}</pre></details>")
    return "\n".join([*parts, "</body>\n</html>\n"])


def _figures(results: Results) -> Iterator[str]:
    yield "<h2>Figures</h2>"
    try:
        for outcome in results.outcomes:
            for figure, told in _drawn(results, outcome):
                yield _embedded(figure, told)
    except MissingExtraError as error:
        yield f'<p class="note">{html.escape(str(error))}</p>'


def _drawn(results: Results, outcome: Outcome) -> Iterator[tuple[Figure, str]]:
    evaluation, name = outcome.evaluation, outcome.collection.name
    shown = [row.name for row in results.rows]
    means = {measure: [evaluation.mean(row, measure) for row in shown] for measure in evaluation.measure_names}
    published = [row.name for row in results.rows if row.entry is None]
    told = f"{name}: every measure of every system" + ("; published runs in grey" if published else "")
    yield plot_bars(name, shown, means, pale=published), told
    reference = results.experiment.reference
    if reference is None or reference not in shown:
        return
    measure = evaluation.measure_names[0]
    before: Any = evaluation.values[evaluation.systems.index(reference), 0]
    others = [row.name for row in results.rows if row.name != reference and row.entry is not None]
    if others:
        changes = {row: evaluation.values[evaluation.systems.index(row), 0] - before for row in others}
        told = f"{name}: {measure} of each query against {reference}"
        yield plot_differences(name, reference, measure, changes), told


def _embedded(figure: Figure, told: str) -> str:
    """A figure as part of the page: nothing is loaded from elsewhere."""
    from matplotlib import rc_context

    with io.BytesIO() as stream, rc_context({"svg.hashsalt": "colbert-prf"}):  # equal figures are equal bytes
        figure.savefig(stream, format="svg", metadata={"Date": None})
        encoded = base64.b64encode(stream.getvalue()).decode("ascii")
    return f'<img alt="{html.escape(told)}" src="data:image/svg+xml;base64,{encoded}">'
