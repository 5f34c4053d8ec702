"""Run every system of an experiment over every collection, once, and evaluate what they found."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from colbert_prf.datasets import read_run
from colbert_prf.errors import DatasetError, InputError
from colbert_prf.evaluation import Evaluation, evaluate, restrict_run
from colbert_prf.experiments.config import Collection, Experiment, Row
from colbert_prf.experiments.context import Context, slug
from colbert_prf.experiments.digests import digest_of_encoder
from colbert_prf.experiments.entries import configuration_of
from colbert_prf.experiments.judged import Judged, located, read_judged
from colbert_prf.experiments.models import absent_models, digests_of
from colbert_prf.experiments.running import RunSummary, run_topics
from colbert_prf.search.retriever import DEFAULT_K, Retriever
from colbert_prf.types import Ranking

__all__ = ["Outcome", "Results", "run_experiment"]

INDEXES, RUNS = "indexes", "runs"
"""Folders of the output."""


@dataclass(frozen=True)
class Outcome:
    """What was found on one collection.

    Parameters
    ----------
    collection
        Which.
    evaluation
        Of all rows shown.
    summaries
        Response times of the systems that were run, by row.
    """

    collection: Collection
    evaluation: Evaluation
    summaries: Mapping[str, RunSummary]


@dataclass(frozen=True)
class Results:
    """What an experiment found.

    Parameters
    ----------
    experiment
        As configured.
    rows
        Those shown; published runs that were not given are left out, and optional rows without their models.
    outcomes
        One for each collection.
    notes
        What a reader of the table has to know.
    """

    experiment: Experiment
    rows: tuple[Row, ...]
    outcomes: tuple[Outcome, ...]
    notes: tuple[str, ...]


def run_experiment(
    experiment: Experiment,
    data: str | Path,
    output: str | Path,
    *,
    published: str | Path | None = None,
    tell: Callable[[str], object] = lambda message: None,
    progress: bool = True,
) -> Results:
    """Run what is missing, and evaluate everything.

    Runs and indexes are kept in the output folder. A finished run is run again only if the configuration of its system,
    of a system it builds on, a model either opens, or its topics have changed; an interrupted one is continued.

    Parameters
    ----------
    experiment
        From :func:`~colbert_prf.experiments.config.read_experiment`.
    data
        The folder that the names of files are under.
    output
        A folder, made if need be. An index that is in its ``indexes`` is used, not built.
    published
        The folder of published runs; without it those rows are left out, and a note says so.
    tell
        Called with a line on each run.
    progress
        Whether bars may be shown.

    Raises
    ------
    InputError
        Judgements in which nothing is relevant, topics and judgements that share nothing, a published run that cannot
        be used.
    """
    data, output = Path(data), Path(output)
    judged = {one.name: read_judged(one, data) for one in experiment.collections}
    rows, notes = _shown_rows(experiment, published)
    for note in notes:
        tell(note)
    contexts: dict[str, Context] = {}
    outcomes = []
    for collection in experiment.collections:
        context = contexts.setdefault(collection.corpus_name, _context(experiment, collection, data, output))
        runs: dict[str, dict[str, dict[str, float]]] = {}
        summaries: dict[str, RunSummary] = {}
        for row in rows:
            if row.entry is None:
                assert published is not None  # else the row is not shown
                runs[row.name] = _published(row, Path(published) / row.runs[collection.name], context)
                continue
            summary = _run(experiment, row, collection, judged[collection.name].topics, context, output, progress)
            tell(f"{collection.name}: {row.name}, {summary.num_topics} topics, {1000 * summary.seconds:.1f} ms a topic")
            summaries[row.name], runs[row.name] = summary, read_run(summary.path)
        outcomes.append(_evaluated(experiment, collection, judged[collection.name], runs, rows, summaries))
    return Results(experiment, rows, tuple(outcomes), notes)


def _context(experiment: Experiment, collection: Collection, data: Path, output: Path) -> Context:
    return Context(
        located(collection.corpus, data),
        collection.corpus_name,
        output / INDEXES,
        experiment.entries,
        bits=experiment.bits,
        model=experiment.model,
    )


def _shown_rows(experiment: Experiment, published: str | Path | None) -> tuple[tuple[Row, ...], tuple[str, ...]]:
    rows = [row for row in experiment.rows if not row.hidden]
    unpublished = [row for row in rows if row.entry is None] if published is None else []
    absent = absent_models(experiment.rows)
    kept = tuple(row for row in rows if row not in unpublished and row.name not in absent)
    notes = _notes(unpublished, {row.name: absent[row.name] for row in rows if row.name in absent})
    if not kept:
        raise InputError(f"{experiment.path}: there is no row to show. {' '.join(notes)}")
    for row in kept:
        for file in row.runs.values():
            if not (path := Path(published or "") / file).is_file():
                raise DatasetError(f"there is no such file; it is the published run of {row.name!r}", path=str(path))
    return kept, notes


def _notes(unpublished: Sequence[Row], absent: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Which rows are left out, and why."""
    notes = []
    if unpublished:
        notes.append(f"{len(unpublished)} rows of published runs are left out, for their folder was not given.")
    if absent:
        models = dict.fromkeys(model for missing in absent.values() for model in missing)
        notes.append(f"Left out, for there is no {' and no '.join(models)}: {'; '.join(absent)}.")
    return tuple(notes)


def _run(
    experiment: Experiment,
    row: Row,
    collection: Collection,
    topics: Mapping[str, str],
    context: Context,
    output: Path,
    progress: bool,
) -> RunSummary:
    assert row.entry is not None
    folder = output / RUNS / slug(collection.name)
    folder.mkdir(parents=True, exist_ok=True)
    return run_topics(
        _Deferred(context, row.name),
        topics,
        folder / f"{slug(row.name)}.run.gz",
        tag=slug(row.name),
        configuration={
            "corpus": collection.corpus,
            "corpus_digest": context.corpus_digest,
            "bits": experiment.bits,
            "model": experiment.model,
            "encoder": digest_of_encoder(experiment.model),
            "system": configuration_of(row.entry, experiment.entries),
            **({"models": models} if (models := digests_of(row.entry, experiment.entries)) else {}),
        },
        k=experiment.depth,
        existing="update",
        progress=progress,
    )


class _Deferred(Retriever):
    """A system that is built with its first search: a finished run needs none."""

    def __init__(self, context: Context, name: str) -> None:
        self._context = context
        self._name = name

    def search(self, query: str, k: int = DEFAULT_K) -> Ranking:
        return self._context.system(self._name).search(query, k)


def _published(row: Row, path: Path, context: Context) -> dict[str, dict[str, float]]:
    """A run that others made, as if they had searched this corpus only."""
    return restrict_run(read_run(path, check_ranks=True), context.doc_ids, name=row.name)


def _evaluated(
    experiment: Experiment,
    collection: Collection,
    judged: Judged,
    runs: Mapping[str, Mapping[str, Mapping[str, float]]],
    rows: tuple[Row, ...],
    summaries: Mapping[str, RunSummary],
) -> Outcome:
    baselines = [row.name for row in rows if row.baseline] if len(rows) > 1 else []
    try:
        evaluation = evaluate(
            judged.qrels,
            runs,
            experiment.measures,
            relevance=collection.relevance,
            baselines=baselines,
            family=experiment.family,
            alpha=experiment.alpha,
        )
    except InputError as error:
        raise InputError(f"{collection.name}: {error}") from error
    return Outcome(collection, evaluation, summaries)
