"""``colbert-prf search``: questions to a corpus."""

from __future__ import annotations

import click

from colbert_prf.cli.output import console, json_option, model_option, print_json, print_ranking, ranking_as_dict
from colbert_prf.datasets import CorpusFormat, EmptyPolicy
from colbert_prf.encoder import Encoder

__all__ = ["search"]


@click.command()
@click.argument("corpus")
@click.argument("queries", nargs=-1, required=True)
@click.option("-k", default=10, show_default=True, type=click.IntRange(min=1), help="Passages per query.")
@click.option(
    "--format",
    "corpus_format",
    type=click.Choice(["tsv", "jsonl", "trec", "parquet"]),
    help="The format of CORPUS, where its name and first line do not tell.",
)
@click.option(
    "--empty",
    type=click.Choice(["error", "keep", "skip"]),
    default="error",
    show_default=True,
    help="What to do with a passage without text.",
)
@model_option
@json_option
def search(
    corpus: str,
    queries: tuple[str, ...],
    k: int,
    corpus_format: CorpusFormat | None,
    empty: EmptyPolicy,
    model: str | None,
    as_json: bool,
) -> None:
    """Search CORPUS, a file of passages, for each of QUERIES.

    CORPUS is TSV (id, tab, text), JSONL (_id, title, text), TREC SGML or Parquet, plain or compressed with gzip or
    zstd; `-` is standard input, `irds:NAME` a dataset of ir_datasets. It is encoded anew on each call and scored
    exactly, which suits up to a few thousand passages.

    \b
    Examples:
      colbert-prf search passages.tsv "do goldfish grow"
      zcat corpus.jsonl.gz | colbert-prf search - "do goldfish grow" -k 3 --json
    """
    from colbert_prf.datasets import read_corpus
    from colbert_prf.index import MemoryIndex
    from colbert_prf.search import Searcher

    encoder = Encoder.load(model)
    passages = read_corpus(corpus, format=corpus_format, empty=empty)
    searcher = Searcher(MemoryIndex.create(passages, encoder=encoder))
    rankings = [(text, searcher.search(text, k)) for text in queries]
    if as_json:
        print_json([ranking_as_dict(ranking, text=text, encoder=encoder) for text, ranking in rankings])
        return
    output = console()
    for text, ranking in rankings:
        print_ranking(output, ranking, text=text)
