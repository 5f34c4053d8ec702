"""``colbert-prf demo``: the main job on what every user has."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from colbert_prf.cli.output import console, json_option, print_json, print_ranking, ranking_as_dict
from colbert_prf.encoder import Encoder

__all__ = ["demo"]


@click.command()
@click.argument("questions", nargs=-1)
@click.option("-k", default=3, show_default=True, type=click.IntRange(min=1), help="Passages per question.")
@click.option("--cache", type=click.Path(file_okay=False, path_type=Path), help="Where to keep the index.")
@json_option
def demo(questions: tuple[str, ...], k: int, cache: Path | None, as_json: bool) -> None:
    """Answer questions from the documentation of Python's own standard library.

    The first run indexes some 3,500 passages, in about a minute on two cores; later runs start at once. Without
    QUESTIONS it answers a few prepared ones and then, on a terminal, yours.

    \b
    Examples:
      colbert-prf demo
      colbert-prf demo "sort a dictionary by value" -k 5
      colbert-prf demo "pad a number with zeros" --json
    """
    from colbert_prf.demo import QUESTIONS, demo_index
    from colbert_prf.search import Searcher

    encoder = Encoder.load()
    searcher = Searcher(demo_index(encoder, cache=cache))
    asked = questions or QUESTIONS
    searcher.search(asked[0], k)  # the first search loads the kernels; the times shown are those of the others
    if as_json:
        print_json([ranking_as_dict(searcher.search(text, k), text=text, tokens=encoder.tokens) for text in asked])
        return
    output = console()
    output.print(
        f"[dim]{searcher.index.num_documents:,} passages, {searcher.index.num_vectors:,} vectors, "
        f"model {encoder.settings.name}[/dim]\n"
    )
    for text in asked:
        print_ranking(output, searcher.search(text, k), text=text)
    if not questions and sys.stdin.isatty() and sys.stdout.isatty():
        while text := click.prompt("Your question (Enter to leave)", default="", show_default=False).strip():
            print_ranking(output, searcher.search(text, k), text=text)
