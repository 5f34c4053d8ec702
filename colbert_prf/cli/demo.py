"""``colbert-prf demo``: the main job on what every user has."""

from __future__ import annotations

import sys
from pathlib import Path

import click
from rich.console import Console

from colbert_prf.cli.output import console, json_option, print_json, print_ranking, ranking_as_dict
from colbert_prf.encoder import Encoder
from colbert_prf.feedback import ColbertPRF, Feedback
from colbert_prf.search.searcher import Searcher

__all__ = ["answer", "demo"]

DEPTH = 10
"""Ranks of the first pass a passage's move is told from, where fewer are shown."""


@click.command(short_help="Search Python's own documentation.")
@click.argument("questions", nargs=-1)
@click.option("-k", "--k", default=3, show_default=True, type=click.IntRange(min=1), help="Passages per question.")
@click.option("--cache", type=click.Path(file_okay=False, path_type=Path), help="Where to keep the index.")
@click.option("--plain", is_flag=True, help="Search once, without feedback.")
@json_option
def demo(questions: tuple[str, ...], k: int, cache: Path | None, plain: bool, as_json: bool) -> None:
    """Answer questions from the documentation of Python's own standard library.

    The first run indexes some 3,500 passages, in about a minute on two cores; later runs start at once. Without
    QUESTIONS it answers a few prepared ones and then, on a terminal, yours.

    Each question is searched twice, the second time with what feedback learned from the best passages: behind the + are
    the words added, beside each passage its move. `--plain` leaves feedback out.

    \b
    Examples:
      colbert-prf demo
      colbert-prf demo "sort a dictionary by value" -k 5
      colbert-prf demo "pad a number with zeros" --json
    """
    from colbert_prf.demo import QUESTIONS, demo_index

    feedback = None if plain else ColbertPRF()
    encoder = Encoder.load()
    searcher = Searcher(demo_index(encoder, cache=cache))
    asked = questions or QUESTIONS
    searcher.search(
        asked[0], k, feedback=feedback
    )  # the first search loads the kernels; the times shown are those of the others
    if as_json:
        rankings = [searcher.search(text, k, feedback=feedback) for text in asked]
        shown = zip(asked, rankings, strict=True)
        print_json([ranking_as_dict(ranking, text=text, tokens=encoder.tokens) for text, ranking in shown])
        return
    output = console()
    output.print(
        f"[dim]{searcher.index.num_documents:,} passages, {searcher.index.num_vectors:,} vectors, "
        f"model {encoder.settings.name}[/dim]\n"
    )
    for text in asked:
        answer(output, searcher, text, k, feedback)
    if not questions and sys.stdin.isatty() and sys.stdout.isatty():
        while text := click.prompt("Your question (Enter to leave)", default="", show_default=False).strip():
            answer(output, searcher, text, k, feedback)


def answer(output: Console, searcher: Searcher, text: str, k: int, feedback: Feedback | None) -> None:
    """Print the ``k`` best passages for a question, after feedback with their moves and the words it added."""
    ranking = searcher.search(text, max(k, DEPTH), feedback=feedback)
    print_ranking(output, ranking, text=text, tokens=searcher.encoder.tokens, limit=k)
