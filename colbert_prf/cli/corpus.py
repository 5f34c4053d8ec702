"""The options of every command that reads a corpus, and what they read."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from tempfile import TemporaryFile
from typing import Any, TypeVar

import click

from colbert_prf.cli.renamed import Renamed
from colbert_prf.datasets.opening import STANDARD_INPUT
from colbert_prf.progress import progress_bar

__all__ = ["Reading", "checked_documents", "corpus_options", "documents_of"]

Command = TypeVar("Command", bound=Callable[..., Any])
Reading = dict[str, Any]
"""What the options say, as keywords of :func:`~colbert_prf.datasets.read_corpus`."""
Documents = Iterator[tuple[str, str, dict[str, Any]]]

_FORMATS = click.Choice(["tsv", "jsonl", "csv", "trec", "parquet"])
_POLICIES = click.Choice(["error", "keep", "skip"])


def corpus_options(*, old_format: bool = True) -> Callable[[Command], Command]:
    """The options of a command that reads a corpus; it gets them together, as ``reading``.

    Parameters
    ----------
    old_format
        Whether ``--format``, the old name of ``--corpus-format``, is understood.
    """
    options = [
        click.option(
            "--corpus-format",
            cls=Renamed,
            old=("--format",) if old_format else (),
            type=_FORMATS,
            help="Of the corpus, where its name and first line do not tell.",
        ),
        click.option("--id-field", metavar="NAME", help="Of JSONL, CSV or Parquet. Default: _id, doc_id, docno or id."),
        click.option("--text-field", metavar="NAME", help="The text that is encoded. Default: text or contents."),
        click.option(
            "--title-field", metavar="NAME", help="Goes before the text. Default: title; '' leaves titles out."
        ),
        click.option(
            "--empty",
            type=_POLICIES,
            default="error",
            show_default=True,
            help="What to do with a passage without text.",
        ),
    ]

    def decorate(command: Command) -> Command:
        @wraps(command)
        def bundled(
            *,
            corpus_format: str | None,
            id_field: str | None,
            text_field: str | None,
            title_field: str | None,
            empty: str,
            **others: Any,
        ) -> Any:
            fields = {"id_field": id_field, "text_field": text_field, "title_field": title_field}
            reading: Reading = {"format": corpus_format, "empty": empty, **fields}
            return command(reading=reading, **others)

        decorated: Any = bundled
        for option in reversed(options):
            decorated = option(decorated)
        return decorated  # type: ignore[no-any-return]

    return decorate


def documents_of(corpus: str, reading: Reading) -> Documents:
    """The documents of a corpus with their metadata."""
    from colbert_prf.datasets import read_corpus_with_metadata

    passages = read_corpus_with_metadata(corpus, **reading)
    return ((doc_id, text, metadata) for (doc_id, text), metadata in passages)


@contextmanager
def checked_documents(corpus: str, reading: Reading) -> Iterator[tuple[Documents, int]]:
    """Read the whole corpus, so that every id and text is checked, and then give it from its beginning, with its size.

    Standard input can be read once: it is kept in a temporary file meanwhile.
    """
    count = 0
    with TemporaryFile("w+", encoding="utf-8") as kept:
        with progress_bar("Checking", total=None) as advance:
            for document in documents_of(corpus, reading):
                count += 1
                advance(1)
                if corpus == STANDARD_INPUT:
                    kept.write(json.dumps(document) + "\n")
        if corpus != STANDARD_INPUT:
            yield documents_of(corpus, reading), count
            return
        kept.seek(0)
        yield (tuple(json.loads(line)) for line in kept), count
