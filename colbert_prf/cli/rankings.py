"""Rankings in every form a command prints: for people, as JSON, as CSV, as a TREC run."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable
from typing import Any, NamedTuple

import click
from rich.console import Console

from colbert_prf.cli.expansion import print_expansion
from colbert_prf.cli.output import print_explanation, print_json, print_ranking, ranking_as_dict
from colbert_prf.errors import InputError
from colbert_prf.search.spelling import Spelling
from colbert_prf.types import Explanation, Hit, Ranking

__all__ = ["FORMATS", "Shown", "print_rankings"]

FORMATS = ("table", "json", "jsonl", "csv", "trec")
CSV_COLUMNS = ("query_id", "rank", "doc_id", "passage_id", "score", "text")


class Shown(NamedTuple):
    """A query, what was found for it, what spells its token ids, and the explanations if there are any."""

    query_id: str
    text: str
    ranking: Ranking
    tokens: Spelling
    explanations: list[Explanation]


def print_rankings(output: Console, found: Iterable[Shown], form: str, *, explain: bool = False, tag: str = "") -> None:
    """Print rankings, each as soon as it is there, except as JSON.

    Parameters
    ----------
    output
        For tables.
    found
        The rankings.
    form
        One of ``FORMATS``.
    explain
        Whether to say why each passage was found.
    tag
        For the last column of a TREC run.
    """

    def as_dict(one: Shown) -> dict[str, Any]:
        return {"query_id": one.query_id, **_as_dict(one, explain=explain)}

    if form == "json":
        print_json([as_dict(one) for one in found])
    elif form == "csv":
        click.echo(_csv_line(CSV_COLUMNS), nl=False)
    for one in found if form != "json" else ():
        if form == "table":
            _print_table(output, one, explain=explain)
        elif form == "jsonl":
            click.echo(json.dumps(as_dict(one), ensure_ascii=False))
        else:
            lines = _csv_lines(one) if form == "csv" else _trec_lines(one, tag)
            click.echo("".join(lines), nl=False)


def _as_dict(one: Shown, *, explain: bool) -> dict[str, Any]:
    explanations = one.explanations if explain else None
    spelled = ranking_as_dict(one.ranking, text=one.text, tokens=one.tokens, explanations=explanations)
    for hit, shown in zip(one.ranking, spelled["hits"], strict=True):
        shown |= {"passage_id": hit.passage_id} if hit.passage_id else {}
        shown["metadata"] = hit.metadata
    return spelled


def _print_table(output: Console, one: Shown, *, explain: bool) -> None:
    print_ranking(output, one.ranking, text=one.text)
    if explain:
        print_expansion(output, one.ranking, one.tokens)
        for explanation in one.explanations:
            print_explanation(output, explanation, one.tokens)


def _csv_lines(one: Shown) -> Iterable[str]:
    for rank, hit in enumerate(one.ranking, start=1):
        yield _csv_line((one.query_id, rank, hit.doc_id, _passage(hit), hit.score, hit.text))


def _csv_line(values: Iterable[Any]) -> str:
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerow(values)
    return buffer.getvalue()


def _trec_lines(one: Shown, tag: str) -> Iterable[str]:
    for rank, hit in enumerate(one.ranking, start=1):
        for value in (one.query_id, hit.doc_id):
            if not value or any(map(str.isspace, value)):
                raise InputError(f"the id {value!r} has a space in it, which ends a column of TREC; take --format csv")
        yield f"{one.query_id} Q0 {hit.doc_id} {rank} {hit.score!r} {tag}\n"


def _passage(hit: Hit) -> str:
    return hit.passage_id or hit.doc_id
