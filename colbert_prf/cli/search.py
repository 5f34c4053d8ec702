"""``colbert-prf search``: questions to a corpus."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from colbert_prf.cli.expansion import print_expansion
from colbert_prf.cli.feedback import feedback_from, feedback_options, marking_options
from colbert_prf.cli.output import (
    console,
    corpus_options,
    json_option,
    model_option,
    print_explanation,
    print_json,
    print_ranking,
    ranking_as_dict,
)
from colbert_prf.cli.remote import Shown, is_address, search_remotely
from colbert_prf.datasets import CorpusFormat, EmptyPolicy
from colbert_prf.encoder import Encoder
from colbert_prf.index import Index, MemoryIndex
from colbert_prf.search.searcher import PRESETS, Preset, Searcher
from colbert_prf.types import Ranking

__all__ = ["open_source", "search"]


@click.command()
@click.argument("source")
@click.argument("queries", nargs=-1, required=True)
@click.option("-k", default=10, show_default=True, type=click.IntRange(min=1), help="Passages per query.")
@click.option(
    "--preset",
    type=click.Choice(PRESETS),
    default="default",
    show_default=True,
    help="`paper` searches as the authors of ColBERT-PRF did, to compare with: FAISS IVFPQ, then exact scores. It "
    "needs an index made with --bits 16; the first search builds the FAISS index and keeps it in the folder.",
)
@click.option("--explain", is_flag=True, help="Show what feedback added and why each passage was found.")
@feedback_options
@marking_options
@corpus_options
@model_option
@json_option
def search(
    source: str,
    queries: tuple[str, ...],
    k: int,
    preset: Preset,
    explain: bool,
    corpus_format: CorpusFormat | None,
    empty: EmptyPolicy,
    model: str | None,
    as_json: bool,
    relevant: tuple[str, ...],
    non_relevant: tuple[str, ...],
    **options: Any,
) -> None:
    """Search SOURCE, an index folder, a file of passages or an index of a server, for each of QUERIES.

    An index is made with `colbert-prf index`. A file may be anything that command reads; it is encoded anew on each
    call and scored exactly, which suits up to a few thousand passages. An index of `colbert-prf serve` is addressed as
    http://host:port/NAME; COLBERT_PRF_READ_KEY in the environment is its key.

    With --feedback the query is expanded with vectors learned from the best passages, or from those you mark, and
    searched again; each hit is shown with its move: ↑3, ↓1, =, or new where the first pass had it not among its best.

    \b
    Examples:
      colbert-prf search my.index "do goldfish grow"
      colbert-prf search my.index "do goldfish grow" -k 3 --explain
      colbert-prf search my.index "do goldfish grow" --feedback prf --explain
      colbert-prf search my.index "do goldfish grow" --feedback prf --rerank --relevant d7 --non-relevant d3
      colbert-prf search my.index "do goldfish grow" --preset paper
      colbert-prf search http://127.0.0.1:8000/my "do goldfish grow"
      zcat corpus.jsonl.gz | colbert-prf search - "do goldfish grow" --json
    """
    feedback = feedback_from({**options, "relevant": relevant, "non_relevant": non_relevant})
    marks: dict[str, Any] = {"feedback": feedback, "relevant": relevant, "non_relevant": non_relevant}
    if is_address(source):
        _refuse_local(preset, corpus_format, model)
        key = os.environ.get("COLBERT_PRF_READ_KEY")
        answers = iter(search_remotely(source, queries, k, explain=explain, key=key, **marks))
    else:
        searcher = Searcher(open_source(source, corpus_format, empty, model), preset=preset)
        answers = (_answer(searcher, searcher.search(text, k, **marks), explain) for text in queries)
    output, shown = console(), []
    for text, (ranking, tokens, explanations) in zip(queries, answers, strict=True):
        if as_json:
            given = explanations if explain else None
            shown.append(ranking_as_dict(ranking, text=text, tokens=tokens, explanations=given))
            continue
        print_ranking(output, ranking, text=text)
        if explain:
            print_expansion(output, ranking, tokens)
            for explanation in explanations:
                print_explanation(output, explanation, tokens)
    if as_json:
        print_json(shown)


def _answer(searcher: Searcher, ranking: Ranking, explain: bool) -> Shown:
    """A ranking of an index that is here, with what shows it."""
    explanations = [searcher.explain(ranking.encoded_query, hit.doc_id) for hit in ranking] if explain else []
    return Shown(ranking, searcher.encoder.tokens, explanations)


def _refuse_local(preset: Preset, corpus_format: CorpusFormat | None, model: str | None) -> None:
    for flag, given in (("--preset", preset != "default"), ("--format", corpus_format), ("--model", model)):
        if given:
            raise click.UsageError(f"{flag} does not apply to an index of a server.")


def open_source(
    source: str, corpus_format: CorpusFormat | None, empty: EmptyPolicy, model: str | None
) -> Index | MemoryIndex:
    """Open an index folder, or encode a file of passages."""
    from colbert_prf.datasets import read_corpus

    if Path(source).is_dir():
        return Index.open(source, encoder=Encoder.load(model) if model else None)
    return MemoryIndex.create(read_corpus(source, format=corpus_format, empty=empty), encoder=Encoder.load(model))
