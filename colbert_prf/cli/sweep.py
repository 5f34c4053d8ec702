"""``colbert-prf sweep``: how much each parameter of feedback matters."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from colbert_prf.cli.feedback import absolute_beta_option
from colbert_prf.cli.output import console, json_option, print_json
from colbert_prf.cli.renamed import Renamed
from colbert_prf.errors import MissingExtraError
from colbert_prf.experiments.experiment import judged_topics
from colbert_prf.experiments.sweep import GRID, STUDIES, Sweep, run_sweep, sweep_settings, varied_values
from colbert_prf.index import Index
from colbert_prf.search.retriever import RUN_DEPTH

__all__ = ["sweep"]


@click.command(short_help="Study the parameters of feedback.")
@click.argument("index", type=click.Path(path_type=Path))
@click.argument("topics")
@click.argument("qrels")
@click.option(
    "--output", "-o", required=True, type=click.Path(file_okay=False, path_type=Path), help="A folder, made if need be."
)
@click.option(
    "--param",
    "parameters",
    multiple=True,
    metavar="NAME=VALUES",
    help=f"Values to try, with commas between: {', '.join(GRID)}. Can be repeated. One value of a parameter that "
    "no chosen study varies holds for all.",
)
@click.option(
    "--study",
    "studies",
    multiple=True,
    type=click.Choice(list(STUDIES)),
    help="Can be repeated. Default: expansion, feedback_docs, and of weight and beta the one --param names, or weight.",
)
@click.option(
    "-m", "--measure", "measures", multiple=True, default=["MAP"], show_default=True, help="The first is drawn."
)
@click.option(
    "--relevance",
    cls=Renamed,
    old=("--rel",),
    default=1,
    show_default=True,
    type=click.IntRange(min=1),
    help="As in evaluate.",
)
@click.option("-k", "--k", default=RUN_DEPTH, show_default=True, type=click.IntRange(min=1), help="Passages per topic.")
@absolute_beta_option
@click.option("--title", help="Over the figures, such as the name of the collection. Default: the name of the index.")
@click.option("--format", "figure_format", type=click.Choice(["png", "svg", "pdf"]), default="png", show_default=True)
@json_option
def sweep(
    index: Path,
    topics: str,
    qrels: str,
    output: Path,
    parameters: tuple[str, ...],
    studies: tuple[str, ...],
    measures: tuple[str, ...],
    relevance: int,
    k: int,
    title: str | None,
    figure_format: str,
    as_json: bool,
) -> None:
    """Vary the parameters of ColBERT-PRF over TOPICS with judgements QRELS: the studies of the paper.

    Four studies, each for Ranker and ReRanker: `expansion` varies the clusters K and the vectors added f_e,
    `feedback_docs` the passages learned from, `weight` what the vectors added weigh relative to the query, `beta` the
    paper's β, with which one weighs β·σ; the rest stays at its default. Every topic is searched once and clustered
    once, so that a study takes minutes. sweep.csv has all values; with the extra [plots] there are lines over the first
    pass and heat maps of K against f_e. Choose on other topics than those you report on.

    \b
    Examples:
      colbert-prf sweep my.index queries.tsv qrels.txt --output study
      colbert-prf sweep my.index queries.tsv qrels.txt -o study --study weight --param weight=0,0.1,0.2
      colbert-prf sweep my.index queries.tsv qrels.txt -o study --study beta --param beta=0,0.1,0.5,1
      colbert-prf sweep my.index queries.tsv qrels.txt -o study --param clusters=8,24 -m nDCG@10 --json
    """
    from colbert_prf.datasets import read_qrels, read_topics
    from colbert_prf.evaluation import to_csv
    from colbert_prf.feedback import ColbertPRF

    asked = _asked(parameters)
    studies = studies or _default_studies(asked)
    varied = {name for study in studies for name in STUDIES[study]}
    chosen = sweep_settings({**GRID, **asked}, studies, base=ColbertPRF(**_fixed(asked, varied)))
    judged = judged_topics(read_topics(topics), read_qrels(qrels), relevance, topics)
    output.mkdir(parents=True, exist_ok=True)
    found = run_sweep(Index.open(index), judged, chosen, measures, relevance=relevance, k=k)
    table = output / "sweep.csv"
    table.write_text(to_csv(found.table()), encoding="utf-8")
    figures, missing = _draw(found, output, title or index.resolve().stem, figure_format)
    if as_json:
        print_json(_as_dict(found, [table, *figures]))
        return
    for line in [*_told(found), *([missing] if missing else [])]:
        console().print(line, markup=False)
    console().print(f"Written: {', '.join(map(str, [table, *figures]))}", markup=False)


def _default_studies(asked: Collection[str]) -> tuple[str, ...]:
    """Of ``weight`` and ``beta`` those that values were given for; otherwise the one that feedback has by default."""
    from colbert_prf.feedback.strength import DEFAULT

    strengths = [name for name in ("weight", "beta") if name in asked] or [DEFAULT.name]
    return "expansion", "feedback_docs", *strengths


def _told(found: Sweep) -> Iterator[str]:
    """The first pass, and what each study ranges over."""
    name = found.measures[0].name
    yield f"first pass: {name} {found.first_pass[0]:.4f}, {found.num_topics} topics"
    for study, settings in found.studies.items():
        for rerank, system in ((False, "Ranker"), (True, "ReRanker")):
            tried = [one for one in settings if one.rerank == rerank]
            best = max(tried, key=found.mean)
            values = ", ".join(f"{name} {value:g}" for name, value in varied_values(best).items() if value is not None)
            yield (
                f"{study}, {system}: {len(tried)} settings, {name} {min(map(found.mean, tried)):.4f} to "
                f"{found.mean(best):.4f}, highest with {values}"
            )


def _asked(parameters: tuple[str, ...]) -> dict[str, tuple[float, ...]]:
    """The values of each parameter; given twice, the values of both."""
    found: dict[str, tuple[float, ...]] = {}
    for name, values in map(_values, parameters):
        found[name] = tuple(sorted({*found.get(name, ()), *values}))
    return found


def _fixed(asked: Mapping[str, tuple[float, ...]], varied: Collection[str]) -> dict[str, Any]:
    """What no study varies: one value each."""
    fixed = {name: values for name, values in asked.items() if name not in varied}
    for name, values in fixed.items():
        if len(values) > 1:
            raise click.UsageError(f"--param {name}: no study that was chosen varies it; give one value, or its study.")
    return {name: value for name, (value,) in fixed.items()}


def _values(written: str) -> tuple[str, tuple[float, ...]]:
    """Read ``clusters=8,24``."""
    name, _, values = written.partition("=")
    name = name.strip().replace("-", "_")
    if name not in GRID:
        raise click.UsageError(f"--param {written}: there is no parameter {name!r}; choose {', '.join(GRID)}.")
    kind = float if name in ("weight", "beta") else int
    try:
        return name, tuple(sorted({kind(value) for value in values.split(",")}))
    except ValueError:
        raise click.UsageError(f"--param {written}: write numbers with commas, such as {name}=1,2,3.") from None


def _draw(found: Sweep, output: Path, title: str, figure_format: str) -> tuple[list[Path], str]:
    """Draw the figures; without matplotlib there are none, and a line that says so."""
    from colbert_prf.experiments.figures import sweep_figures
    from colbert_prf.plots import save_figure

    try:
        figures = sweep_figures(found, title)
    except MissingExtraError as error:
        return [], str(error)
    paths = {output / f"{name}.{figure_format}": figure for name, figure in figures.items()}
    for path, figure in paths.items():
        save_figure(figure, path)
    return list(paths), ""


def _as_dict(found: Sweep, files: list[Path]) -> dict[str, Any]:
    names = [measure.name for measure in found.measures]
    studies = {
        study: [
            {
                **varied_values(one),
                "rerank": one.rerank,
                "means": dict(zip(names, found.means[one].tolist(), strict=True)),
            }
            for one in settings
        ]
        for study, settings in found.studies.items()
    }
    first = dict(zip(names, found.first_pass.tolist(), strict=True))
    return {"num_topics": found.num_topics, "first_pass": first, "studies": studies, "files": list(map(str, files))}
