"""``colbert-prf expansions``: what feedback adds to queries, in words."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from colbert_prf.cli.expansion import expansion_as_dict, expansion_words
from colbert_prf.cli.feedback import feedback_from, feedback_options
from colbert_prf.cli.output import console, json_option, print_json
from colbert_prf.cli.tables import print_table
from colbert_prf.errors import InputError
from colbert_prf.evaluation import Row, Table, to_csv, to_latex, to_markdown
from colbert_prf.index import Index
from colbert_prf.search.searcher import Searcher
from colbert_prf.types import Ranking

__all__ = ["expansions"]

RENDERERS = {"markdown": to_markdown, "latex": to_latex, "csv": to_csv}
TITLES = ("query", "query tokens", "most likely tokens of the vectors added")


@click.command(short_help="Tabulate what feedback adds to queries.")
@click.argument("index", type=click.Path(path_type=Path))
@click.argument("queries", nargs=-1)
@click.option("--topics", metavar="FILE", help="Queries from a file of topics, or `irds:NAME`.")
@click.option("--topic", "topic_ids", multiple=True, metavar="ID", help="Of these topics only; can be repeated.")
@click.option(
    "--format", "output_format", type=click.Choice(["terminal", *RENDERERS]), default="terminal", show_default=True
)
@click.option(
    "--output", "-o", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Instead of printing."
)
@feedback_options
@json_option
def expansions(
    index: Path,
    queries: tuple[str, ...],
    topics: str | None,
    topic_ids: tuple[str, ...],
    output_format: str,
    output: Path | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Tabulate what feedback adds to QUERIES over INDEX: the tokens of each query, and those its new vectors stand for.

    Where several tokens are likely for one vector, they stand together: (swiss|switzerland). The heaviest vectors come
    first. --feedback is prf unless another is asked for.

    \b
    Examples:
      colbert-prf expansions my.index "do goldfish grow" "what is mamey"
      colbert-prf expansions my.index --topics queries.tsv --topic 490595 --format latex
      colbert-prf expansions my.index --topics queries.tsv --beta 1 --format csv -o expansions.csv
    """
    asked = _asked(queries, topics, topic_ids)
    feedback = feedback_from({**options, "feedback": options.get("feedback") or "prf"})
    assert feedback is not None
    if output is not None and as_json:
        raise click.UsageError("--json prints; leave --output out, or give a --format instead.")
    if output is not None and output_format == "terminal":
        raise click.UsageError("--output needs a --format: markdown, latex or csv.")
    if output is not None and not output.parent.is_dir():
        raise InputError(f"{output}: the folder {output.parent} does not exist; make it first")
    searcher = Searcher(Index.open(index))
    rankings = {name: searcher.search(text, feedback.feedback_docs, feedback=feedback) for name, text in asked.items()}
    if as_json:
        print_json([_as_dict(asked[name], ranking, searcher) for name, ranking in rankings.items()])
        return
    table = Table(TITLES, (), tuple(_row(asked[name], ranking, searcher) for name, ranking in rankings.items()))
    if output_format == "terminal":
        print_table(console(), table)
    elif output is not None:
        output.write_text(RENDERERS[output_format](table), encoding="utf-8")
    else:
        click.echo(RENDERERS[output_format](table), nl=False)


def _asked(queries: tuple[str, ...], topics: str | None, topic_ids: tuple[str, ...]) -> Mapping[str, str]:
    """The texts of all queries asked for."""
    from colbert_prf.datasets import read_topics

    if topic_ids and topics is None:
        raise click.UsageError("--topic needs --topics, the file it is in.")
    if not queries and topics is None:
        raise click.UsageError("there is no query: write some, or name a file with --topics.")
    found = {f"\0{number}": text for number, text in enumerate(queries)}  # names that no topic has
    if topics is not None:
        known = read_topics(topics)
        for topic_id in topic_ids:
            if topic_id not in known:
                raise click.UsageError(f"{topics} has no topic {topic_id!r}; its first is {next(iter(known), None)!r}.")
        found |= {topic_id: known[topic_id] for topic_id in topic_ids or known}
    return found


def _tokens(ranking: Ranking, searcher: Searcher) -> list[str]:
    """The tokens of the query as it was asked, without special ones."""
    assert ranking.expansion is not None
    token_ids = ranking.encoded_query.token_ids[: ranking.expansion.num_original].tolist()
    special = searcher.encoder.special_ids
    return searcher.encoder.tokens([token_id for token_id in token_ids if token_id not in special])


def _row(text: str, ranking: Ranking, searcher: Searcher) -> Row:
    assert ranking.expansion is not None
    words = expansion_words(ranking.expansion, searcher.encoder.tokens)
    return Row((text, " ".join(_tokens(ranking, searcher)), " ".join(words)), ())


def _as_dict(text: str, ranking: Ranking, searcher: Searcher) -> dict[str, Any]:
    tokens = searcher.encoder.tokens
    facts = expansion_as_dict(ranking, tokens)["expansion"]
    assert ranking.expansion is not None
    return {
        "query": text,
        "query_tokens": _tokens(ranking, searcher),
        "expansion_tokens": expansion_words(ranking.expansion, tokens),
        **facts,
    }
