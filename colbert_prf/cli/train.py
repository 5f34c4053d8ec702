"""``colbert-prf train``: a model of one's own, from questions with good and bad passages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from colbert_prf.cli.output import console, json_option, print_json
from colbert_prf.errors import InputError

if TYPE_CHECKING:
    from colbert_prf.training import Example, TrainingReport

__all__ = ["train"]

Command = TypeVar("Command", bound=Callable[..., Any])
AT_LEAST_ONE = click.IntRange(min=1)


def _together(*options: Callable[[Any], Any]) -> Callable[[Command], Command]:
    """Several options as one decorator, shown in this order."""

    def decorate(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


_data_options = _together(
    click.option("--queries", help="Topics: the triples then hold ids, and --collection has the texts."),
    click.option("--collection", help="A corpus whose ids the triples hold."),
    click.option("--limit", type=AT_LEAST_ONE, help="Read so many examples only."),
    click.option(
        "--mine",
        metavar="SOURCE",
        help="Replace the negatives, or supply them: an index with texts, or a TREC run of any system, such as BM25 "
        "(with --queries and --collection).",
    ),
    click.option("--negatives", type=AT_LEAST_ONE, default=7, show_default=True, help="Mined per example."),
    click.option("--depth", type=AT_LEAST_ONE, default=100, show_default=True, help="Mine the best so many passages."),
    click.option("--skip", type=click.IntRange(min=0), default=0, show_default=True, help="Ranks to pass over."),
    click.option("--ceiling", type=float, help="Pass over what scores above this share of the positive's score."),
    click.option(
        "--teacher",
        metavar="MODEL",
        help="Score the passages with this ColBERT model or cross-encoder, to learn from; `embedded` is the one that "
        "comes with the package.",
    ),
    click.option("--save-examples", metavar="FILE", help="Write what was mined and scored as JSON lines."),
    click.option("--validation", multiple=True, metavar="TRIPLES", help="Evaluate on these while training."),
    click.option("--hold-out", type=AT_LEAST_ONE, metavar="N", help="Evaluate on the last N questions instead."),
)

_training_options = _together(
    click.option(
        "--loss",
        type=click.Choice(["pairwise", "in-batch", "distill"]),
        help="Default: distill if the examples have scores, else pairwise as the paper's.",
    ),
    click.option("--rate", "learning_rate", type=float, default=3e-6, show_default=True, help="Learning rate."),
    click.option("--batch-size", type=AT_LEAST_ONE, default=32, show_default=True, help="Examples per step."),
    click.option("--epochs", type=float, default=1.0, show_default=True, help="Passes over the examples."),
    click.option("--steps", type=AT_LEAST_ONE, help="Steps in all, instead of epochs; the paper's 44,000."),
    click.option(
        "--layers", type=click.IntRange(min=0), help="Train the last so many layers; 0: the projection alone."
    ),
    click.option("--dropout", type=float, help="While training; default: the base's own."),
    click.option("--temperature", type=float, default=1.0, show_default=True, help="Of distill."),
    click.option(
        "--checkpoint-every", type=AT_LEAST_ONE, default=500, show_default=True, help="Steps between saved states."
    ),
    click.option("--seed", type=int, default=42, show_default=True),
)

_form_options = _together(
    click.option("--dim", type=AT_LEAST_ONE, default=128, show_default=True, help="Components of a vector."),
    click.option("--projection", type=click.Choice(["pca", "random"]), default="pca", show_default=True),
    click.option("--query-length", type=AT_LEAST_ONE, default=32, show_default=True, help="Tokens of a query."),
    click.option("--document-length", type=AT_LEAST_ONE, default=180, show_default=True, help="Tokens of a passage."),
    click.option("--augment/--no-augment", default=True, show_default=True, help="Fill queries up with [MASK]."),
    click.option("--markers/--no-markers", default=True, show_default=True, help="Mark queries and passages."),
    click.option(
        "--skip-punctuation/--keep-punctuation", default=True, show_default=True, help="In passages, for matching."
    ),
)


@click.command(short_help="Train a ColBERT model or a cross-encoder.")
@click.argument("triples", nargs=-1, required=True)
@click.option("--base", required=True, metavar="MODEL", help="A text encoder or a ColBERT checkpoint.")
@click.option("--output", required=True, type=click.Path(path_type=Path), help="The folder of the new model.")
@click.option(
    "--kind",
    type=click.Choice(["colbert", "cross-encoder"]),
    default="colbert",
    show_default=True,
    help="What to make.",
)
@_data_options
@_training_options
@_form_options
@click.option("--device", help="cpu or cuda; default: the best there is.")
@click.option("--float32", is_flag=True, help="Export without quantizing to 8 bits.")
@click.option("--resume", is_flag=True, help="Continue an interrupted run of the same examples and settings.")
@json_option
def train(triples: tuple[str, ...], base: str, output: Path, kind: str, as_json: bool, **options: Any) -> None:
    """Train a model on TRIPLES and write it as the folder OUTPUT, which opens without PyTorch.

    A line of TRIPLES is `query TAB positive TAB negative ...`, texts or with --queries and --collection ids; or JSON:
    `{"query": ..., "documents": [positive, negative, ...], "scores": [...]}`. With --mine a line needs no negative.
    BASE is a text encoder, which gets a projection, or a ColBERT checkpoint, which keeps its form. States are saved
    beside OUTPUT, in OUTPUT.training, until the model is complete. Needs the extra [hub].

    \b
    Examples:
      colbert-prf train triples.tsv --base bert-base-uncased --output my-model --steps 44000 --projection random
      colbert-prf train pairs.tsv --mine my.index --teacher big-model --base small-encoder --output my-model
      colbert-prf train qidpidtriples.tsv --queries queries.tsv --collection passages.tsv --base my-encoder \\
        --output my-model --hold-out 200 --resume
      colbert-prf train triples.tsv --kind cross-encoder --base small-encoder --output my-reranker --rate 2e-5
    """
    from colbert_prf.training import TrainingSettings
    from colbert_prf.training.fitting import require_trainer
    from colbert_prf.training.run import TrainingRun

    require_trainer()
    TrainingRun(output).check(resume=options["resume"])  # said before an hour of mining, not after
    settings = {name: options[name] for name in TrainingSettings.__dataclass_fields__ if options.get(name) is not None}
    checked = TrainingSettings(**settings)  # a bad setting is an error before anything is read
    examples, validation = _examples(triples, options)
    if options["loss"] is None and examples[0].scores:
        checked = TrainingSettings(**{**settings, "loss": "distill"})
    try:
        report = _run(kind, examples, validation, base, output, checked, options)
    except KeyboardInterrupt:
        click.echo(f"The states so far are in {output}.training: continue with --resume.", err=True)
        raise
    if as_json:
        print_json({**asdict(report), "output": str(report.output)})
        return
    _print_report(report)


def _run(
    kind: str,
    examples: Sequence[Example],
    validation: Sequence[Example],
    base: str,
    output: Path,
    settings: Any,
    options: dict[str, Any],
) -> TrainingReport:
    from colbert_prf.training import ModelForm, train_colbert, train_cross_encoder

    common = {
        "settings": settings,
        "validation": validation,
        "resume": options["resume"],
        "int8": not options["float32"],
        "device": options["device"],
    }
    if kind == "cross-encoder":
        length = options["query_length"] + options["document_length"]
        return train_cross_encoder(examples, base, output, max_length=length, **common)
    form = ModelForm(**{name: options[name] for name in ModelForm.__dataclass_fields__})
    return train_colbert(examples, base, output, form=form, **common)


def _examples(triples: Sequence[str], options: dict[str, Any]) -> tuple[list[Example], list[Example]]:
    """Read, mine, score and hold out, as the options say."""
    from colbert_prf.training import read_examples, write_examples

    queries, collection = _texts(options)
    # Pairs are enough to mine for; otherwise the first example says how many negatives there are.
    read = read_examples(triples, queries=queries, collection=collection)
    examples = list(islice(read, options["limit"]))
    held = [list(read_examples([file], queries=queries, collection=collection)) for file in options["validation"]]
    validation = [example for part in held for example in part]
    if options["hold_out"]:
        examples, validation = _held_out(examples, options["hold_out"], validation)
    if options["mine"]:
        examples, validation = (_mined(part, options, queries, collection) for part in (examples, validation))
    if options["teacher"]:
        examples = _scored(examples, options)
    if options["save_examples"]:
        write_examples(options["save_examples"], examples)
    return examples, validation


def _texts(options: dict[str, Any]) -> tuple[dict[str, str] | None, dict[str, str] | None]:
    from colbert_prf.datasets import read_corpus, read_topics

    if bool(options["queries"]) != bool(options["collection"]):
        raise click.UsageError("--queries and --collection go together: both give texts to ids.")
    if not options["queries"]:
        return None, None
    return read_topics(options["queries"]), dict(read_corpus(options["collection"], empty="keep"))


def _held_out(examples: list[Example], number: int, validation: list[Example]) -> tuple[list[Example], list[Example]]:
    """The last questions, with all their examples."""
    if validation:
        raise click.UsageError("--hold-out and --validation are two ways to the same thing: give one.")
    questions = list(dict.fromkeys(example.query for example in examples))
    if number >= len(questions):
        raise click.UsageError(f"--hold-out {number} leaves nothing to train on: there are {len(questions)} questions.")
    kept_out = set(questions[-number:])
    return [e for e in examples if e.query not in kept_out], [e for e in examples if e.query in kept_out]


def _mined(
    examples: list[Example],
    options: dict[str, Any],
    queries: dict[str, str] | None,
    collection: dict[str, str] | None,
) -> list[Example]:
    from colbert_prf.progress import progress_bar
    from colbert_prf.training import Mining, mine_negatives

    if not examples:
        return []
    names = ("negatives", "depth", "skip", "ceiling", "seed")
    found = _search(options["mine"], options["depth"], queries, collection)
    mined = []
    with progress_bar("Mining", total=len(examples), unit="examples") as advance:
        for example in mine_negatives(examples, found, Mining(**{name: options[name] for name in names})):
            mined.append(example)
            advance(1)
    if not mined:
        raise InputError(f"{options['mine']} gave no example enough negatives; lower --negatives or raise --depth")
    return mined


def _search(source: str, depth: int, queries: dict[str, str] | None, collection: dict[str, str] | None) -> Any:
    """An index to search, or the rankings of a run."""
    from colbert_prf.training import find_in_run, find_with

    if Path(source).is_dir():
        from colbert_prf.index import Index
        from colbert_prf.search.searcher import Searcher

        return find_with(Searcher(Index.open(source)), depth)
    from colbert_prf.datasets import read_run

    if queries is None or collection is None:
        raise click.UsageError("--mine with a run needs --queries and --collection, which give texts to its ids.")
    return find_in_run(read_run(source), queries, collection)


def _scored(examples: list[Example], options: dict[str, Any]) -> list[Example]:
    from colbert_prf.progress import progress_bar
    from colbert_prf.training import open_teacher, score_examples

    model = None if options["teacher"] == "embedded" else options["teacher"]
    scored = []
    with progress_bar("Scoring", total=len(examples), unit="examples") as advance:
        for example in score_examples(examples, open_teacher(model, device=options["device"])):
            scored.append(example)
            advance(1)
    return scored


def _print_report(report: TrainingReport) -> None:
    fitted, output = report.fitted, console()
    output.print(
        f"Wrote {report.output}: {report.num_examples:,} examples, {fitted.steps:,} steps, {fitted.seconds:,.0f} s, "
        f"{report.num_parameters:,} parameters trained.",
        markup=False,
    )
    if fitted.losses:
        output.print(f"Loss: {fitted.losses[0][1]:.4f} at first, {fitted.losses[-1][1]:.4f} at last.")
    if fitted.validation:
        best = max(fitted.validation, key=lambda entry: entry[1])
        output.print(
            f"Validation, reciprocal rank: {fitted.validation[0][1]:.4f} before, {best[1]:.4f} at step {best[0]:,}."
        )
        if not fitted.improved:
            click.echo("Warning: training did not improve the model on the validation set.", err=True)
