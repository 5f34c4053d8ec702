"""How results are shown: readable on a terminal, plain in a pipe, JSON on demand."""

from __future__ import annotations

import json
from typing import Any

import click
from rich.console import Console
from rich.markup import escape
from rich.padding import Padding

from colbert_prf.encoder import Encoder
from colbert_prf.types import Ranking

__all__ = ["console", "json_option", "model_option", "print_json", "print_ranking", "ranking_as_dict"]

json_option = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
model_option = click.option(
    "--model",
    metavar="MODEL",
    help="A folder made by `colbert-prf export`, or with [hub] any ColBERT checkpoint. Default: the embedded model.",
)


def console() -> Console:
    """Open standard output: colours only on a terminal, and in a pipe lines as long as they are."""
    output = Console(highlight=False)
    return output if output.is_terminal else Console(highlight=False, width=1_000_000, soft_wrap=True)


def print_json(value: Any) -> None:
    """Print one JSON document."""
    click.echo(json.dumps(value, ensure_ascii=False, indent=2))


def ranking_as_dict(ranking: Ranking, *, text: str, encoder: Encoder) -> dict[str, Any]:
    """Spell a ranking for JSON."""
    return {
        "query": text,
        "tokens": encoder.tokens(ranking.query.token_ids),
        "hits": [
            {"rank": rank, "doc_id": hit.doc_id, "score": hit.score, "text": hit.text}
            for rank, hit in enumerate(ranking, start=1)
        ],
        "milliseconds": {stage: 1000 * seconds for stage, seconds in ranking.timings.items()},
    }


def print_ranking(output: Console, ranking: Ranking, *, text: str) -> None:
    """Print a question, its hits with their texts, and how long each stage took."""
    output.print(f"[bold]{escape(text)}[/bold]")
    for rank, hit in enumerate(ranking, start=1):
        output.print(f"{rank:>3}. [green]{hit.score:7.3f}[/green]  [cyan]{escape(hit.doc_id)}[/cyan]")
        if hit.text is not None:
            output.print(
                Padding(escape(_shortened(hit.text)), (0, 0, 0, 14)) if output.is_terminal else _indented(hit.text)
            )
    stages = ", ".join(f"{stage} {1000 * seconds:.1f} ms" for stage, seconds in ranking.timings.items())
    output.print(f"     [dim]{stages}[/dim]\n")


def _shortened(text: str, characters: int = 240) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= characters else flat[:characters].rsplit(" ", 1)[0] + " …"


def _indented(text: str) -> str:
    return " " * 14 + escape(_shortened(text))
