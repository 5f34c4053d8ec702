"""The tables of an experiment: systems under their headings, collections as groups of columns; and times per stage."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import reduce

from colbert_prf.evaluation import Cell, Column, Row, Table, comparisons_table, means_table
from colbert_prf.experiments.experiment import Outcome, Results

__all__ = ["comparisons_of", "results_table", "stages_table"]

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
