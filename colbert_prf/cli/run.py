"""``colbert-prf run``: topics into a run file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from colbert_prf.cli.feedback import feedback_from, feedback_options
from colbert_prf.cli.output import console, json_option, print_json
from colbert_prf.cli.search import group_option
from colbert_prf.cli.where import where_option
from colbert_prf.index import Index
from colbert_prf.search.retriever import RUN_DEPTH
from colbert_prf.search.searcher import PRESETS, Preset, Searcher

if TYPE_CHECKING:
    from colbert_prf.experiments.run import RunSummary

__all__ = ["run"]


@click.command(short_help="Write a TREC run for a file of topics.")
@click.argument("index", type=click.Path(path_type=Path))
@click.argument("topics")
@click.option(
    "--output", "-o", required=True, type=click.Path(path_type=Path), metavar="FILE", help="The run; .gz compresses it."
)
@click.option("-k", "--k", default=RUN_DEPTH, show_default=True, type=click.IntRange(min=1), help="Passages per topic.")
@click.option("--preset", type=click.Choice(PRESETS), default="default", show_default=True, help="As in search.")
@click.option("--exact", is_flag=True, help="Score every passage exactly, as in search.")
@click.option("--tag", metavar="WORD", help="The name of the run in its last column. Default: the configuration.")
@click.option("--threads", type=click.IntRange(min=1), help="Per search. Default: one per core.")
@click.option("--overwrite", is_flag=True, help="Replace a run of another configuration.")
@where_option
@group_option
@feedback_options
@json_option
def run(
    index: Path,
    topics: str,
    output: Path,
    k: int,
    preset: Preset,
    exact: bool,
    tag: str | None,
    threads: int | None,
    overwrite: bool,
    where: dict[str, Any] | None,
    group: Any,
    as_json: bool,
    **options: Any,
) -> None:
    """Search INDEX for each of TOPICS and write a TREC run file.

    TOPICS is TSV (id, tab, text), JSONL or TREC topics, plain or compressed, or `irds:NAME`. Interrupted, the same
    command continues after the last whole topic; the file takes its name when it is complete, and FILE.json beside it
    says how it was made and how long a topic took. A run of another configuration is never replaced unasked.

    \b
    Examples:
      colbert-prf run my.index queries.tsv --output e2e.run.gz
      colbert-prf run my.index queries.tsv -o prf.run.gz --feedback prf
      colbert-prf run my.index queries.tsv -o recent.run.gz --where 'year>=2020'
      colbert-prf run my.index irds:vaswani -o rerank.run --feedback prf --rerank --weight 0.1 --json
    """
    from colbert_prf.datasets import read_topics
    from colbert_prf.experiments.run import feedback_facts, run_topics, tag_of

    if str(output) == "-":
        raise click.UsageError("--output: a run that can be continued is a file, not standard output; name one.")
    feedback = feedback_from(options)
    opened = Index.open(index)
    defaults: dict[str, Any] = {"feedback": feedback, "exact": exact, "where": where, "group": group}
    searcher = Searcher(opened, preset=preset, threads=threads, **defaults)
    summary = run_topics(
        searcher,
        read_topics(topics),
        output,
        tag=tag or tag_of(feedback, preset=preset) + (".exact" if exact else ""),
        configuration={
            "index": _identity(opened),
            "preset": preset,
            "feedback": feedback_facts(feedback),
            **({"exact": True} if exact else {}),
            **{name: value for name, value in (("where", where), ("group", group)) if value is not None},
        },
        k=k,
        existing="replace" if overwrite else "refuse",
    )
    if as_json:
        print_json(_as_dict(summary))
    else:
        console().print(_told(summary), markup=False)


def _identity(index: Index) -> dict[str, Any]:
    """What tells an index from another."""
    facts = index.info()
    return {
        "documents": facts.num_documents,
        "vectors": facts.num_vectors,
        "bits": facts.bits,
        "generation": facts.generation,
        "content": index.snapshot.manifest.digest,
        "model": facts.model.fingerprint,
        "queries": index.encoder.query_fingerprint if index.encoder else None,
    }


def _as_dict(summary: RunSummary) -> dict[str, Any]:
    return {
        "run": summary.path,
        "tag": summary.tag,
        "num_topics": summary.num_topics,
        "num_resumed": summary.num_resumed,
        "num_empty": summary.num_empty,
        "mean_response_milliseconds": 1000 * summary.seconds,
        "mean_stage_milliseconds": {stage: 1000 * seconds for stage, seconds in summary.stages.items()},
    }


def _told(summary: RunSummary) -> str:
    stages = ", ".join(f"{stage} {1000 * seconds:.1f} ms" for stage, seconds in summary.stages.items())
    resumed = f", {summary.num_resumed} of them before" if summary.num_resumed else ""
    return (
        f"{summary.path}: {summary.num_topics} topics{resumed}, tag {summary.tag}, {1000 * summary.seconds:.1f} ms a "
        f"topic ({stages})."
    )
