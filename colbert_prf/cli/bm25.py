"""``colbert-prf bm25``: the same questions by terms, to compare with."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from colbert_prf.baselines.lexical import BM25, LexicalIndex, TermFeedback
from colbert_prf.baselines.lexical.manifest import LexicalManifest
from colbert_prf.baselines.lexical.methods import METHODS
from colbert_prf.cli.corpus import Reading, corpus_options, documents_of
from colbert_prf.cli.output import console, json_option, print_json, print_ranking
from colbert_prf.cli.where import where_option
from colbert_prf.index import Index
from colbert_prf.search.retriever import DEFAULT_K
from colbert_prf.storage.layout import IndexLayout
from colbert_prf.storage.manifest import kind_of
from colbert_prf.types import Ranking, TermExplanation

__all__ = ["bm25"]


@click.command(short_help="Search by terms, to compare with.")
@click.argument("source")
@click.argument("queries", nargs=-1, required=True)
@click.option("-k", "--k", default=DEFAULT_K, show_default=True, type=click.IntRange(min=1), help="Passages per query.")
@click.option("--k1", default=1.2, show_default=True, type=click.FloatRange(min=0), help="How slowly tf saturates.")
@click.option("--b", default=0.75, show_default=True, type=click.FloatRange(0, 1), help="How much length counts.")
@click.option("--feedback", type=click.Choice(list(METHODS)), help="Expand the query with terms of the best passages.")
@click.option("--feedback-docs", type=click.IntRange(min=1), help="Passages learned from: by default 3.")
@click.option("--feedback-terms", type=click.IntRange(min=1), help="Terms learned: by default 10.")
@click.option("--original", type=click.FloatRange(0, 1), help="λ of rm3, what the query keeps: by default 0.6.")
@where_option
@click.option("--explain", is_flag=True, help="Show what each term gives to each score.")
@corpus_options()
@json_option
def bm25(
    source: str,
    queries: tuple[str, ...],
    k: int,
    k1: float,
    b: float,
    where: dict[str, Any] | None,
    explain: bool,
    reading: Reading,
    as_json: bool,
    **options: Any,
) -> None:
    """Search SOURCE, an index folder or a file of passages, by the terms of each of QUERIES.

    An index folder gets a lexical index of the texts it keeps on first use; it follows what is added and deleted. A
    folder made by LexicalIndex.create is searched as it is. A file is indexed again on each call.

    \b
    Examples:
      colbert-prf bm25 my.index "do goldfish grow"
      colbert-prf bm25 my.index "do goldfish grow" --feedback rm3 --original 0.5 --explain
      colbert-prf bm25 my.index "do goldfish grow" --where "year>=2020"
      colbert-prf bm25 passages.tsv "do goldfish grow" -k 3 --json
    """
    feedback = _feedback_from(**options)
    with TemporaryDirectory() as folder:
        index = _open(source, reading, Path(folder))
        system = BM25(index, k1=k1, b=b, feedback=feedback, where=where)
        shown = []
        for text in queries:
            ranking = system.search(text, k)
            explanations = [system.explain(text, hit.doc_id) for hit in ranking] if explain else []
            if as_json:
                shown.append(_as_dict(ranking, text, explanations))
            else:
                _print(console(), ranking, text, explanations)
        if as_json:
            print_json(shown)


def _feedback_from(feedback: str | None, **given: Any) -> TermFeedback | None:
    options = {name: value for name, value in given.items() if value is not None}
    if feedback is None:
        if options:
            raise click.UsageError(f"--{next(iter(options)).replace('_', '-')} needs --feedback")
        return None
    if "original" in options and feedback != "rm3":
        raise click.UsageError(f"--original is λ of rm3; {feedback} has none")
    return METHODS[feedback](**options)


def _open(source: str, reading: Reading, folder: Path) -> LexicalIndex:
    path = Path(source)
    if not path.is_dir():
        return LexicalIndex.create(folder / "lexical", documents_of(source, reading))
    if kind_of(IndexLayout.at(path)) == LexicalManifest.KIND:
        return LexicalIndex.open(path)
    return LexicalIndex.of(Index.open(path))


def _as_dict(ranking: Ranking, text: str, explanations: list[TermExplanation]) -> dict[str, Any]:
    hits: list[dict[str, Any]] = [
        {"rank": rank, "doc_id": hit.doc_id, "score": hit.score, "text": hit.text, "metadata": hit.metadata}
        for rank, hit in enumerate(ranking, start=1)
    ]
    for hit, explanation in zip(hits, explanations, strict=False):
        hit["matches"] = [asdict(match) for match in explanation.matches]
    result: dict[str, Any] = {"query": text, "hits": hits}
    if (expansion := ranking.term_expansion) is not None:
        result["expansion"] = {"feedback": list(expansion.feedback), "weights": dict(expansion.weights)}
    return {**result, "milliseconds": {stage: 1000 * seconds for stage, seconds in ranking.timings.items()}}


def _print(output: Console, ranking: Ranking, text: str, explanations: list[TermExplanation]) -> None:
    print_ranking(output, ranking, text=text)
    if (expansion := ranking.term_expansion) is not None:
        words = " ".join(f"{term}^{weight:.2f}" for term, weight in expansion.weights.items())
        output.print(f"[magenta]+[/magenta] {escape(words)}")
    for explanation in explanations:
        table = Table("term", "tf", "passages", "weight", "contribution", box=None, title_justify="left")
        table.title = f"[cyan]{escape(explanation.doc_id)}[/cyan]"
        for match in explanation.matches:
            numbers = (str(match.frequency), str(match.document_frequency), f"{match.weight:.2f}")
            table.add_row(escape(match.term), *numbers, f"{match.contribution:.3f}")
        table.add_row("", "", "", "[bold]score[/bold]", f"[bold]{explanation.score:.3f}[/bold]")
        output.print(table)
