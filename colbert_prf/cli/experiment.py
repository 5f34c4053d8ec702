"""``colbert-prf experiment``: many systems over many collections, in one table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from colbert_prf.cli.output import console, json_option, print_json
from colbert_prf.cli.tables import print_table

if TYPE_CHECKING:
    from colbert_prf.experiments.experiment import Results

__all__ = ["experiment"]

FOLDER = click.Path(file_okay=False, path_type=Path)


@click.command(short_help="Run systems over collections, from a file.")
@click.argument("config", type=click.Path(path_type=Path))
@click.option("--data", required=True, type=FOLDER, help="Where the collections are that CONFIG names.")
@click.option("--output", "-o", required=True, type=FOLDER, help="Where indexes, runs and the report are kept.")
@click.option("--published", type=FOLDER, help="Where the published runs are; without it their rows are left out.")
@json_option
def experiment(config: Path, data: Path, output: Path, published: Path | None, as_json: bool) -> None:
    """Run the systems of CONFIG over its collections and compare them.

    CONFIG is TOML: docs/guide/evaluation.md describes it. The index of a corpus is built once, and
    everything is kept in --output: interrupted, the same command continues; later, it runs only what has changed. The
    table is printed, and written as Markdown, LaTeX and CSV beside report.html, which holds everything on one page,
    with figures if the extra [plots] is there.

    \b
    Examples:
      colbert-prf experiment experiments/vaswani.toml --data DATA --output results
      colbert-prf experiment experiments/trec-dl-pool.toml --data DATA -o results --published DATA/paper-runs --json
    """
    from colbert_prf.experiments.config import read_experiment
    from colbert_prf.experiments.experiment import run_experiment
    from colbert_prf.experiments.report import caption_of, results_table, write_report

    configured = read_experiment(config)
    results = run_experiment(
        configured, data, output, published=published, tell=lambda message: click.echo(message, err=True)
    )
    written = write_report(results, output)
    if as_json:
        print_json(_as_dict(results, written))
        return
    printed = console()
    print_table(printed, results_table(results))
    printed.print()
    for sentence in caption_of(results):
        printed.print(f"{sentence}", style="dim", markup=False)
    printed.print(f"Written: {', '.join(map(str, written))}", style="dim", markup=False)


def _as_dict(results: Results, written: list[Path]) -> dict[str, Any]:
    collections = []
    for outcome in results.outcomes:
        found = outcome.evaluation
        systems = []
        for row in results.rows:
            facts: dict[str, Any] = {
                "name": row.name,
                "group": row.group,
                "letter": found.letter(row.name) or None,
                "means": {name: found.mean(row.name, name) for name in found.measure_names},
                "improves_on": {name: list(found.improves_on(row.name, name)) for name in found.measure_names},
            }
            if (summary := outcome.summaries.get(row.name)) is not None:
                facts["run"] = summary.path
                facts["mean_response_milliseconds"] = 1000 * summary.seconds
                facts["mean_stage_milliseconds"] = {stage: 1000 * seconds for stage, seconds in summary.stages.items()}
            systems.append(facts)
        collections.append({"name": outcome.collection.name, "num_topics": len(found.query_ids), "systems": systems})
    return {"title": results.experiment.title, "collections": collections, "files": list(map(str, written))}
