"""Run every system of an experiment over every collection, once, and evaluate what they found."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from colbert_prf.datasets import read_qrels, read_run, read_topics
from colbert_prf.datasets.irds import is_irds
from colbert_prf.errors import DatasetError, DatasetWarning, InputError
from colbert_prf.evaluation import Evaluation, evaluate, restrict_run
from colbert_prf.evaluation.checks import check_qrels
from colbert_prf.experiments.config import Collection, Experiment, Row
from colbert_prf.experiments.context import Context, digest_of_encoder, digest_of_model, slug
from colbert_prf.experiments.registry import Entry, configuration_of
from colbert_prf.experiments.run import RunSummary, run_topics
from colbert_prf.search.retriever import Retriever
from colbert_prf.types import Ranking

__all__ = [
    "Judged",
    "Outcome",
    "Results",
    "absent_models",
    "digests_of",
    "judged_topics",
    "located",
    "read_judged",
    "run_experiment",
]


class Judged(NamedTuple):
    """Texts and grades of the same queries."""

    topics: dict[str, str]
    qrels: dict[str, dict[str, int]]


def located(name: str, folder: Path) -> str:
    """Where a file of a configuration is: under the data folder, unless it is a dataset of ir_datasets.

    Examples
    --------
    >>> located("irds:vaswani", Path("data")), located("vaswani/qrels.txt", Path("data"))
    ('irds:vaswani', 'data/vaswani/qrels.txt')
    """
    return name if is_irds(name) else str(folder / name)


def read_judged(collection: Collection, data: Path) -> Judged:
    """Read the topics of a collection and their judgements; see :func:`judged_topics`."""
    topics, qrels = read_topics(located(collection.topics, data)), read_qrels(located(collection.qrels, data))
    return judged_topics(topics, qrels, collection.relevance, collection.name)


def judged_topics(topics: Mapping[str, str], qrels: Mapping[str, dict[str, int]], relevance: int, name: str) -> Judged:
    """Keep what has both a text and judgements, and check before anything runs that something is relevant.

    Parameters
    ----------
    topics, qrels
        By query id.
    relevance
        The lowest relevant grade.
    name
        Of the collection, for messages.

    Raises
    ------
    InputError
        Where they share nothing, or nothing is relevant.

    Warns
    -----
    DatasetWarning
        Topics without judgements, judgements without topics.
    """
    both = [query_id for query_id in topics if query_id in qrels]
    if not both:
        raise InputError(
            f"{name}: none of the {len(topics)} topics (first: {next(iter(topics), None)!r}) is judged (first: "
            f"{next(iter(qrels))!r}); use the judgements of the same topics"
        )
    for what, more in (("topics have no judgements", set(topics)), ("judged queries have no topic", set(qrels))):
        if alone := sorted(more - set(both)):
            message = f"{name}: {len(alone)} of {len(more)} {what} (first: {alone[0]!r}); they are left out"
            warnings.warn(message, DatasetWarning, stacklevel=3)
    kept = {query_id: qrels[query_id] for query_id in both}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DatasetWarning)  # the evaluation will say it
        try:
            check_qrels(kept, relevance)
        except InputError as error:
            raise InputError(f"{name}: {error}") from error
    return Judged({query_id: topics[query_id] for query_id in both}, kept)


def absent_models(rows: Sequence[Row]) -> dict[str, list[str]]:
    """The optional rows that cannot run, and those that build on them, with the models that are not there.

    Parameters
    ----------
    rows
        Of an experiment, all of them.

    Returns
    -------
    dict
        By the name of the row.
    """
    entries = {row.name: row.entry for row in rows if row.entry is not None}
    absent = {
        row.name: [name for name in row.entry.models if not Path(name).exists()]
        for row in rows
        if row.optional and row.entry is not None
    }

    def missing(name: str) -> list[str]:
        """Of a row and of all it builds on; there are no circles in a configuration that was read."""
        below = [one for first in entries[name].references for one in missing(first)]
        return list(dict.fromkeys([*absent.get(name, []), *below]))

    return {name: found for name in entries if (found := missing(name))}


def digests_of(entry: Entry, entries: Mapping[str, Entry]) -> dict[str, str]:
    """What the models hold that a system opens, and those it builds on; a name on the hub is not looked up."""
    found = {name: digest_of_model(name) for name in entry.models if Path(name).exists()}
    for first in entry.references:
        found |= digests_of(entries[first], entries)
    return dict(sorted(found.items()))


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

    def search(self, query: str, k: int = 1000) -> Ranking:
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
