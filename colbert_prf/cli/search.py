"""``colbert-prf search``: questions to a corpus."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from colbert_prf.cli.corpus import Reading, corpus_options, documents_of
from colbert_prf.cli.feedback import feedback_from, feedback_options, marking_options, text_options
from colbert_prf.cli.output import console, json_option, model_option
from colbert_prf.cli.rankings import FORMATS, Shown, print_rankings
from colbert_prf.cli.remote import Answer, is_address, search_remotely
from colbert_prf.cli.where import where_option
from colbert_prf.encoder import Encoder
from colbert_prf.experiments.run import tag_of
from colbert_prf.index import Index, MemoryIndex
from colbert_prf.search.retriever import DEFAULT_K
from colbert_prf.search.searcher import PRESETS, Preset, Searcher
from colbert_prf.types import Ranking

__all__ = ["group_option", "open_source", "search"]

group_option = click.option(
    "--group",
    type=click.Choice(["document"]),
    help="Rank documents by their best passage; of an index made with --passages.",
)


@click.command(short_help="Search an index, a file or a server.")
@click.argument("source")
@click.argument("queries", nargs=-1)
@click.option("--queries", "topics", metavar="FILE", help="More queries: TSV (id, tab, text), JSONL or TREC topics.")
@click.option("-k", "--k", default=DEFAULT_K, show_default=True, type=click.IntRange(min=1), help="Passages per query.")
@where_option
@group_option
@click.option(
    "--preset",
    type=click.Choice(PRESETS),
    default="default",
    show_default=True,
    help="`paper` searches as the authors of ColBERT-PRF did, to compare with: FAISS IVFPQ, then exact scores. It "
    "needs an index made with --bits 16; the first search builds the FAISS index and keeps it in the folder.",
)
@click.option(
    "--exact",
    is_flag=True,
    help="Score every passage exactly: nothing is missed, and the time grows with the index, some 0.1 s for a million "
    "vectors on one core. Without it the best ten are found nearly always.",
)
@click.option("--explain", is_flag=True, help="Show what feedback added and why each passage was found.")
@click.option(
    "--format",
    "output_format",
    type=click.Choice(FORMATS),
    help="Of the result: table for people (default), json, jsonl with a line for each query, csv or trec with a line "
    "for each passage.",
)
@feedback_options
@marking_options
@text_options
@corpus_options(old_format=False)
@model_option
@json_option
def search(
    source: str,
    queries: tuple[str, ...],
    topics: str | None,
    k: int,
    where: dict[str, Any] | None,
    group: Any,
    preset: Preset,
    exact: bool,
    explain: bool,
    output_format: str | None,
    reading: Reading,
    model: str | None,
    as_json: bool,
    relevant: tuple[str, ...],
    non_relevant: tuple[str, ...],
    feedback_text: tuple[str, ...],
    with_passages: bool,
    **options: Any,
) -> None:
    """Search SOURCE, an index folder, a file of passages or an index of a server, for each of QUERIES.

    An index is made with `colbert-prf index`. A file may be anything that command reads; it is encoded again on each
    call and scored exactly, which suits up to a few thousand passages. An index of `colbert-prf serve` is addressed as
    http://host:port/NAME; COLBERT_PRF_READ_KEY in the environment is its key.

    With --feedback the query is expanded with vectors learned from the best passages, or from those you mark, and
    searched again; each hit is shown with its move: ↑3, ↓1, =, or new where the first pass had it not among its best.

    \b
    Examples:
      colbert-prf search my.index "do goldfish grow"
      colbert-prf search my.index "do goldfish grow" -k 3 --explain
      colbert-prf search my.index "do goldfish grow" --where 'year>=2020' --where source=garden
      colbert-prf search my.index "do goldfish grow" --where '{"or": [{"year": 1999}, {"tags": "pond"}]}'
      colbert-prf search my.index --queries queries.tsv --format jsonl > found.jsonl
      colbert-prf search books.index "do goldfish grow" --group document
      colbert-prf search my.index "do goldfish grow" --feedback prf --explain
      colbert-prf search my.index "do goldfish grow" --feedback prf --rerank --relevant d7 --non-relevant d3
      colbert-prf search my.index "do goldfish grow" --feedback prf --feedback-text "A pond lets carp grow larger."
      colbert-prf search my.index "do goldfish grow" --preset paper
      colbert-prf search my.index "xylophone" --exact
      colbert-prf search http://127.0.0.1:8000/my "do goldfish grow"
      zcat corpus.jsonl.gz | colbert-prf search - "do goldfish grow" --json
    """
    if with_passages and not feedback_text:
        raise click.UsageError("--with-passages needs --feedback-text.")
    asked = _queries(queries, topics)
    form = _format(output_format, as_json=as_json, explain=explain)
    given: dict[str, Any] = {"relevant": relevant, "non_relevant": non_relevant}
    feedback = feedback_from({**options, **given, "feedback_text": feedback_text})
    given |= {"feedback_texts": feedback_text, "with_passages": with_passages, "feedback": feedback}
    given |= {"where": where, "group": group, "exact": exact}
    if is_address(source):
        _refuse_local(preset, model)
        key = os.environ.get("COLBERT_PRF_READ_KEY")
        answers = search_remotely(source, asked.values(), k, key=key, explain=explain, **given)
    else:
        searcher = Searcher(open_source(source, reading, model), preset=preset)
        answers = (_answer(searcher, searcher.search(text, k, **given), explain) for text in asked.values())
    found = (
        Shown(query_id, text, answer.ranking, answer.tokens, answer.explanations)
        for (query_id, text), answer in zip(asked.items(), answers, strict=True)
    )
    print_rankings(console(), found, form, explain=explain, tag=tag_of(feedback, preset=preset))


def _answer(searcher: Searcher, ranking: Ranking, explain: bool) -> Answer:
    """A ranking of an index that is here, with what shows it."""
    passages = [hit.passage_id or hit.doc_id for hit in ranking] if explain else []
    explanations = [searcher.explain(ranking.encoded_query, passage) for passage in passages]
    return Answer(ranking, searcher.encoder.tokens, explanations)


def _refuse_local(preset: Preset, model: str | None) -> None:
    for flag, given in (("--preset", preset != "default"), ("--model", model)):
        if given:
            raise click.UsageError(f"{flag} does not apply to an index of a server.")


def _queries(queries: tuple[str, ...], topics: str | None) -> Mapping[str, str]:
    """All queries by their ids; those of the command line are numbered."""
    from colbert_prf.datasets import read_topics

    if not queries and topics is None:
        raise click.UsageError("Missing argument 'QUERIES...': give a query, or a file of them with --queries.")
    numbered = {str(number): text for number, text in enumerate(queries, start=1)}
    read = {} if topics is None else read_topics(topics)
    if twice := numbered.keys() & read.keys():
        raise click.UsageError(f"--queries has the id {min(twice)!r}, a query of the command line too: ask them apart.")
    return numbered | read


def _format(output_format: str | None, *, as_json: bool, explain: bool) -> str:
    if as_json and output_format not in (None, "json"):
        raise click.UsageError(f"--json and --format {output_format} contradict each other; give one.")
    form = "json" if as_json else output_format or "table"
    if explain and form in ("csv", "trec"):
        raise click.UsageError(f"--explain has no place in {form}; take --format table, json or jsonl.")
    return form


def open_source(source: str, reading: Reading, model: str | None) -> Index | MemoryIndex:
    """Open an index folder, or encode a file of passages."""
    if Path(source).is_dir():
        return Index.open(source, encoder=Encoder.load(model) if model else None)
    return MemoryIndex.create(documents_of(source, reading), encoder=Encoder.load(model))
