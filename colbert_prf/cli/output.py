"""How results are shown: readable on a terminal, plain in a pipe, JSON on demand."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any, TypeVar

import click
from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table

from colbert_prf.cli.expansion import Spelling, expansion_as_dict, expansion_words, moves
from colbert_prf.types import Explanation, Match, Ranking

__all__ = [
    "console",
    "json_option",
    "model_option",
    "print_explanation",
    "print_json",
    "print_ranking",
    "ranking_as_dict",
]

MANY_ALIKE = 4
"""Matches of one query token in a row that are shown together."""

Command = TypeVar("Command", bound=Callable[..., Any])

json_option = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
model_option = click.option(
    "--model",
    metavar="MODEL",
    help="A folder made by `colbert-prf export`, or with [hub] any ColBERT checkpoint. Default: the embedded model.",
)


class _Console(Console):
    """A console that leaves it to the command what to do when the reader of a pipe has gone."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def console() -> Console:
    """Open standard output: colours only on a terminal, and in a pipe lines as long as they are."""
    output = _Console(highlight=False)
    return output if output.is_terminal else _Console(highlight=False, width=1_000_000, soft_wrap=True)


def print_json(value: Any) -> None:
    """Print one JSON document."""
    click.echo(json.dumps(value, ensure_ascii=False, indent=2))


def ranking_as_dict(
    ranking: Ranking, *, text: str, tokens: Spelling, explanations: list[Explanation] | None = None
) -> dict[str, Any]:
    """Spell a ranking for JSON; where there was feedback, also what it did."""
    hits: list[dict[str, Any]] = [
        {"rank": rank, "doc_id": hit.doc_id, "score": hit.score, "text": hit.text}
        for rank, hit in enumerate(ranking, start=1)
    ]
    for hit, explanation in zip(hits, explanations or [], strict=False):
        hit["matches"] = [
            {
                "query_token": tokens([match.query_token_id])[0],
                "token": tokens([match.token_id])[0],
                "position": match.position,
                "similarity": match.similarity,
                "weight": match.weight,
                "contribution": match.contribution,
            }
            for match in explanation.matches
        ]
    return {
        "query": text,
        "tokens": tokens(ranking.encoded_query.token_ids.tolist()),
        "hits": hits,
        **expansion_as_dict(ranking, tokens),
        "milliseconds": {stage: 1000 * seconds for stage, seconds in ranking.timings.items()},
    }


def print_explanation(output: Console, explanation: Explanation, tokens: Spelling) -> None:
    """Print what each query token matched in one passage, and what it gave; filling tokens share one row."""
    table = Table("query token", "matched", "similarity", "weight", "contribution", box=None, title_justify="left")
    table.title = f"[cyan]{escape(explanation.doc_id)}[/cyan]"
    for _, group in groupby(explanation.matches, key=lambda match: match.query_token_id):
        matches = list(group)
        for match in matches if len(matches) < MANY_ALIKE else []:
            query_token, token = tokens([match.query_token_id, match.token_id])
            row = (f"{match.similarity:.3f}", f"{match.weight:.2f}", f"{match.contribution:.3f}")
            table.add_row(escape(query_token), escape(token), *row)
        if len(matches) >= MANY_ALIKE:
            table.add_row(*_together(matches, tokens))
    table.add_row("", "", "", "[bold]score[/bold]", f"[bold]{explanation.score:.3f}[/bold]")
    output.print(table)


def _together(matches: Sequence[Match], tokens: Spelling) -> tuple[str, ...]:
    """One row for the matches of a token that stands many times in a row, such as the [MASK] of a query."""
    name = tokens([matches[0].query_token_id])[0]
    matched = Counter(tokens([match.token_id for match in matches])).most_common(1)[0][0]
    weight, contribution = (sum(getattr(match, part) for match in matches) for part in ("weight", "contribution"))
    similarity = sum(match.similarity for match in matches) / len(matches)
    return (
        escape(f"{name} × {len(matches)}"),
        escape(f"mostly {matched}"),
        f"{similarity:.3f}",
        f"{weight:.2f}",
        f"{contribution:.3f}",
    )


def print_ranking(
    output: Console, ranking: Ranking, *, text: str, tokens: Spelling | None = None, limit: int | None = None
) -> None:
    """Print a question, its hits with their texts, and how long each stage took.

    Parameters
    ----------
    output
        Where to.
    ranking
        If there was feedback, each hit is shown with its move against the first pass.
    text
        The question.
    tokens
        To spell the words feedback added, in one line; they are left out without it.
    limit
        Hits shown; all if left out.
    """
    output.print(f"[bold]{escape(text)}[/bold]")
    for rank, (hit, move) in enumerate(list(zip(ranking, moves(ranking), strict=True))[:limit], start=1):
        moved = f" [yellow]{move:>3}[/yellow]" if move else ""
        output.print(f"{rank:>3}.{moved} [green]{hit.score:7.3f}[/green]  [cyan]{escape(hit.doc_id)}[/cyan]")
        if (passage := hit.text) is not None:
            _print_indented(output, escape(_shortened(passage)), 18 if move else 14)
    if ranking.expansion is not None and tokens is not None:
        _print_indented(
            output, f"[magenta]+[/magenta] {escape(' '.join(expansion_words(ranking.expansion, tokens)))}", 5
        )
    stages = ", ".join(f"{stage} {1000 * seconds:.1f} ms" for stage, seconds in ranking.timings.items())
    _print_indented(output, f"[dim]{stages}[/dim]", 5)
    output.print()


def _print_indented(output: Console, markup: str, spaces: int) -> None:
    """Keep the indent of every line a terminal breaks; in a pipe nothing is broken."""
    output.print(Padding(markup, (0, 0, 0, spaces)) if output.is_terminal else " " * spaces + markup)


def _shortened(text: str, characters: int = 240) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= characters else flat[:characters].rsplit(" ", 1)[0] + " …"
