"""``colbert-prf evaluate``: how good runs are, and which is significantly better."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path, PurePath
from typing import Any

import click

from colbert_prf.cli.output import console, json_option, print_json
from colbert_prf.cli.renamed import Renamed
from colbert_prf.cli.tables import print_table
from colbert_prf.datasets import read_qrels, read_run
from colbert_prf.errors import DatasetError
from colbert_prf.evaluation import (
    DEFAULT_MEASURES,
    FAMILIES,
    Evaluation,
    Family,
    Table,
    comparisons_table,
    means_table,
    queries_table,
    read_doc_ids,
    restrict_qrels,
    restrict_run,
    to_csv,
    to_latex,
    to_markdown,
)
from colbert_prf.evaluation import evaluate as evaluate_runs

__all__ = ["evaluate"]

ALL = "all"
RENDERERS: dict[str, Callable[[Table], str]] = {"markdown": to_markdown, "latex": to_latex, "csv": to_csv}

_SUFFIXES = re.compile(r"(\.(res|run|txt|trec|tsv|gz|zst|zstd))+$", re.IGNORECASE)

Runs = dict[str, dict[str, dict[str, float]]]


@click.command(short_help="Score TREC runs by judgements.")
@click.argument("qrels")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@click.option(
    "-m",
    "--measure",
    "measures",
    multiple=True,
    metavar="MEASURE",
    help="An expression of ir_measures, such as P@5; can be repeated. Default: MAP, nDCG@10, MRR, MRR@10 and R@1000.",
)
@click.option(
    "--relevance",
    cls=Renamed,
    old=("--rel",),
    default=1,
    show_default=True,
    type=click.IntRange(min=1),
    help="The lowest relevant grade of binary measures (MAP, MRR, R, P); nDCG keeps its graded gains.",
)
@click.option(
    "--baseline",
    "baselines",
    multiple=True,
    metavar="RUN",
    help="Compare the other runs with this one; can be repeated. `all` compares each with each.",
)
@click.option(
    "--family",
    type=click.Choice(list(FAMILIES)),
    default="measure",
    show_default=True,
    help="What Holm's correction is over: all comparisons by a measure, or only those of one system or one baseline.",
)
@click.option(
    "--alpha", default=0.05, show_default=True, type=click.FloatRange(0, 1, True, True), help="Level of significance."
)
@click.option("--only-found", is_flag=True, help="Average over the judged topics that every run has, not over all.")
@click.option(
    "--only-documents",
    metavar="FILE",
    help="Leave all documents but these out of runs and judgements: a corpus, or one id a line.",
)
@click.option("--per-query", is_flag=True, help="Show the values of every topic.")
@click.option("--comparisons", is_flag=True, help="Show differences, p-values, wins, ties and losses.")
@click.option(
    "--format",
    "output_format",
    type=click.Choice(["terminal", *RENDERERS, "json"]),
    default="terminal",
    show_default=True,
    help="Of the result.",
)
@json_option
def evaluate(
    qrels: str,
    runs: tuple[str, ...],
    measures: tuple[str, ...],
    relevance: int,
    baselines: tuple[str, ...],
    family: Family,
    alpha: float,
    only_found: bool,
    only_documents: str | None,
    per_query: bool,
    comparisons: bool,
    output_format: str,
    as_json: bool,
) -> None:
    """Evaluate each RUN, a file of TREC's six columns, against the judgements QRELS.

    Documents are ordered as by trec_eval: by score, equal scores by falling document id; the rank column is ignored.
    Every judged topic counts, one that a run lacks as 0. With --baseline, a letter behind a value says that it is
    significantly higher than that of the baseline with this letter: paired t-test, Holm's correction.

    \b
    Examples:
      colbert-prf evaluate qrels.txt mine.run
      colbert-prf evaluate qrels.dl19.txt bm25.res.gz mine.res.gz --relevance 2 --baseline bm25.res.gz
      colbert-prf evaluate qrels.txt a.run b.run c.run --baseline all --format latex
      colbert-prf evaluate qrels.txt mine.run -m P@5 -m "AP(rel=2)@100" --per-query --format csv
      colbert-prf evaluate qrels.txt mine.run --only-documents pool.tsv --json
    """
    if per_query and comparisons:
        raise click.UsageError("--per-query and --comparisons are different tables; ask for one of them.")
    if comparisons and not baselines:
        raise click.UsageError("--comparisons needs a --baseline to compare with.")
    baselines = tuple(_as_run(baseline, runs) for baseline in baselines)
    judged, systems, names = _read(qrels, runs, baselines, only_documents)
    found = evaluate_runs(
        judged,
        systems,
        measures or DEFAULT_MEASURES,
        relevance=relevance,
        baselines=ALL if baselines == (ALL,) else [names[baseline] for baseline in baselines],
        family=family,
        alpha=alpha,
        only_found=only_found,
    )
    if as_json or output_format == "json":
        print_json(_as_dict(found, relevance=relevance, family=family, per_query=per_query))
        return
    table = queries_table(found) if per_query else comparisons_table(found) if comparisons else means_table(found)
    if output_format != "terminal":
        click.echo(RENDERERS[output_format](table), nl=False)
        return
    output = console()
    print_table(output, table)
    if len(found.baselines) == 1 and not (per_query or comparisons):
        output.print()
        print_table(output, comparisons_table(found))
    output.print()
    output.print(f"[dim]{_caption(found, relevance, family)}[/dim]")


def _read(
    qrels: str, runs: tuple[str, ...], baselines: tuple[str, ...], only_documents: str | None
) -> tuple[dict[str, dict[str, int]], Runs, dict[str, str]]:
    """Read the files; also give the name of each run by its path and by itself."""
    judged = read_qrels(qrels)
    paths = _named(runs, baselines)
    systems = {name: _read_run(path) for name, path in paths.items()}
    if only_documents is not None:
        kept = read_doc_ids(only_documents)
        judged = restrict_qrels(judged, kept)
        systems = {name: restrict_run(run, kept, name=name) for name, run in systems.items()}
    return judged, systems, {**{name: name for name in paths}, **{path: name for name, path in paths.items()}}


def _named(runs: tuple[str, ...], baselines: tuple[str, ...]) -> dict[str, str]:
    """Name runs by their files, without suffix where that is clear; baselines that are no RUN come first."""
    twice = [path for path, times in Counter(runs).items() if times > 1]
    if twice:
        raise click.UsageError(f"the run {twice[0]} is given twice.")
    if ALL in baselines and len(baselines) > 1:
        raise click.UsageError("--baseline all compares each run with each; leave the other baselines out.")
    stems = Counter(_stem(path) for path in runs)
    for baseline in baselines:
        if stems[baseline] > 1 and baseline not in runs:
            raise click.UsageError(f"--baseline {baseline} is the name of {stems[baseline]} runs; give its path.")
    more = [path for path in dict.fromkeys(baselines) if path not in (*runs, *stems, ALL)]
    paths = [*more, *runs]
    stems = Counter(_stem(path) for path in paths)
    return {_stem(path) if stems[_stem(path)] == 1 else path: path for path in paths}


def _as_run(baseline: str, runs: tuple[str, ...]) -> str:
    """The RUN that is the same file, spelled as it was there."""
    return next((path for path in runs if Path(path).resolve() == Path(baseline).resolve()), baseline)


def _stem(path: str) -> str:
    """What a table calls the run of a file."""
    name = PurePath(path).name
    return _SUFFIXES.sub("", name) or name


def _read_run(path: str) -> dict[str, dict[str, float]]:
    run = read_run(path, check_ranks=True)
    if not run:
        raise DatasetError("no ranked document found; the file is empty", path=path)
    return run


def _caption(found: Evaluation, relevance: int, family: Family) -> str:
    caption = f"{len(found.query_ids)} topics; relevant in binary measures: grade {relevance} or more."
    if found.baselines:
        caption += (
            f" Letters: significantly higher than that baseline, paired t-test, p < {found.alpha:g} after Holm's "
            f"correction over {FAMILIES[family]}."
        )
    return caption


def _as_dict(found: Evaluation, *, relevance: int, family: Family, per_query: bool) -> dict[str, Any]:
    names = found.measure_names
    systems = []
    for system in found.systems:
        facts: dict[str, Any] = {"name": system, "means": {name: _number(found.mean(system, name)) for name in names}}
        if found.baselines:
            facts["letter"] = found.letter(system) or None
            facts["improves_on"] = {name: list(found.improves_on(system, name)) for name in names}
        if per_query:
            facts["per_query"] = {
                query_id: {name: _number(value) for name, value in zip(names, values, strict=True)}
                for query_id, values in zip(
                    found.query_ids, found.values[found.systems.index(system)].T.tolist(), strict=True
                )
            }
        systems.append(facts)
    result: dict[str, Any] = {
        "num_topics": len(found.query_ids),
        "relevance": relevance,
        "measures": {measure.name: measure.expression for measure in found.measures},
        "systems": systems,
    }
    if found.baselines:
        result |= {"alpha": found.alpha, "correction": "holm", "family": family}
        result["comparisons"] = [
            {key: _number(value) if isinstance(value, float) else value for key, value in vars(one).items()}
            for one in found.comparisons
        ]
    return result


def _number(value: float) -> float | None:
    """JSON has no NaN."""
    return value if math.isfinite(value) else None
