"""``colbert-prf term-weights``: learn how much the words of a passage matter, for DeepCT rows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import click

from colbert_prf.baselines.lexical import TermRegression
from colbert_prf.cli.output import console, json_option, model_option, print_json
from colbert_prf.datasets.opening import read_lines
from colbert_prf.encoder import Encoder
from colbert_prf.errors import DatasetError, InputError
from colbert_prf.progress import progress_bar

__all__ = ["read_answers", "term_weights"]


@click.command("term-weights", short_help="Learn how much words matter, for BM25.")
@click.argument("pairs", nargs=-1, required=True)
@click.argument("output", type=click.Path(path_type=Path))
@click.option("--passages", type=click.IntRange(min=1), help="Learn from the first so many passages only.")
@click.option("--ridge", default=1.0, show_default=True, type=click.FloatRange(min=0), help="Cost of coefficients.")
@model_option
@json_option
def term_weights(
    pairs: tuple[str, ...], output: Path, passages: int | None, ridge: float, model: str | None, as_json: bool
) -> None:
    """Learn from PAIRS of query and passage how much words matter, and write that as OUTPUT, a small JSON file.

    A line of PAIRS is `query<TAB>passage`, further columns are passed over, so that triples serve as well; or JSON with
    `query` and `documents`, of which the first counts. Lines may come in any order: the queries of a passage are put
    together.

    \b
    Examples:
      colbert-prf term-weights triples.tsv.gz weights.json
      colbert-prf term-weights triples.tsv.gz more.jsonl weights.json --passages 10000
    """
    if output.is_dir() or not output.parent.is_dir():
        raise InputError(f"{output}: name a file in a folder that is there")
    examples = list(read_answers(pairs).items())[:passages]
    with progress_bar("Learning", total=len(examples)) as advance:
        learned = TermRegression.train(examples, encoder=Encoder.load(model), ridge=ridge, progress=advance)
    learned.save(output)
    if as_json:
        print_json({"path": str(output), "passages": len(examples), "intercept": learned.intercept})
        return
    console().print(f"{output}: learned from {len(examples):,} passages.", markup=False)


def read_answers(sources: tuple[str, ...]) -> dict[str, list[str]]:
    """The queries of each passage, in the order they come."""
    found: dict[str, dict[str, None]] = {}
    for source in sources:
        for query, passage in _pairs(source):
            found.setdefault(passage, {})[query] = None
    return {passage: list(queries) for passage, queries in found.items()}


def _pairs(source: str) -> Iterator[tuple[str, str]]:
    for number, line in read_lines(source):
        if not line.strip():
            continue
        if line.lstrip().startswith("{"):
            try:
                content = json.loads(line)
                query, (passage, *_) = content["query"], list(content["documents"])
                if not (isinstance(query, str) and isinstance(passage, str) and isinstance(content["documents"], list)):
                    raise TypeError("'query' is a text, 'documents' a list of texts")
            except (ValueError, KeyError, IndexError, TypeError) as error:
                message = f"expected JSON with 'query' and 'documents' ({error})"
                raise DatasetError(message, path=source, line=number) from error
        else:
            query, tab, rest = line.partition("\t")
            passage = rest.partition("\t")[0]
            if not tab or not passage:
                raise DatasetError("expected a query, a tab and a passage", path=source, line=number)
        yield str(query), str(passage)
