"""``colbert-prf index``, ``add``, ``delete``, ``merge`` and ``verify``: the life of an index on disk."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from colbert_prf.cli.output import console, corpus_options, json_option, model_option, print_json
from colbert_prf.datasets import CorpusFormat, EmptyPolicy
from colbert_prf.encoder import Encoder

__all__ = ["add", "delete", "index", "merge", "verify"]

INDEX = click.Path(path_type=Path)


@click.command()
@click.argument("corpus")
@click.argument("output", type=INDEX)
@click.option("--bits", type=click.Choice(["2", "4", "16"]), default="2", show_default=True, help="Per dimension.")
@click.option("--no-texts", is_flag=True, help="Keep vectors only.")
@click.option("--resume", is_flag=True, help="Continue an interrupted build of the same corpus.")
@corpus_options
@model_option
@json_option
def index(
    corpus: str,
    output: Path,
    bits: str,
    no_texts: bool,
    resume: bool,
    corpus_format: CorpusFormat | None,
    empty: EmptyPolicy,
    model: str | None,
    as_json: bool,
) -> None:
    """Encode CORPUS and write it as the index folder OUTPUT.

    CORPUS is TSV (id, tab, text), JSONL (_id, title, text), TREC SGML or Parquet, plain or compressed with gzip or
    zstd; `-` is standard input, `irds:NAME` a dataset of ir_datasets. Fields of JSONL and Parquet other than id and
    text are kept as metadata.

    \b
    Examples:
      colbert-prf index passages.tsv my.index
      colbert-prf index corpus.jsonl.gz my.index --bits 4 --resume
    """
    from colbert_prf.index import Index

    made = Index.create(
        output,
        _documents(corpus, corpus_format, empty),
        encoder=Encoder.load(model),
        bits=int(bits),
        texts=not no_texts,
        resume=resume,
    )
    _report(made, as_json)


@click.command()
@click.argument("index", type=INDEX)
@click.argument("corpus")
@corpus_options
@json_option
def add(index: Path, corpus: str, corpus_format: CorpusFormat | None, empty: EmptyPolicy, as_json: bool) -> None:
    """Add the passages of CORPUS to INDEX, all of them or none.

    \b
    Examples:
      colbert-prf add my.index more.tsv
      zcat more.jsonl.gz | colbert-prf add my.index - --json
    """
    from colbert_prf.index import Index

    opened = Index.open(index)
    opened.add(_documents(corpus, corpus_format, empty))
    _report(opened, as_json)


@click.command()
@click.argument("index", type=INDEX)
@click.argument("doc_ids", nargs=-1, required=True)
@json_option
def delete(index: Path, doc_ids: tuple[str, ...], as_json: bool) -> None:
    """Delete the passages DOC_IDS from INDEX, all of them or none.

    \b
    Examples:
      colbert-prf delete my.index passage-7 passage-9
    """
    from colbert_prf.index import Index

    opened = Index.open(index)
    opened.delete(doc_ids)
    _report(opened, as_json)


@click.command()
@click.argument("index", type=INDEX)
@click.option("--retrain", is_flag=True, help="Also train the codec anew, for an index that has outgrown it.")
@json_option
def merge(index: Path, retrain: bool, as_json: bool) -> None:
    """Join the segments of INDEX and drop what was deleted; rankings stay as they are.

    \b
    Examples:
      colbert-prf merge my.index
      colbert-prf merge my.index --retrain
    """
    from colbert_prf.index import Index

    opened = Index.open(index)
    opened.merge(retrain=retrain)
    _report(opened, as_json)


@click.command()
@click.argument("index", type=INDEX)
@json_option
def verify(index: Path, as_json: bool) -> None:
    """Check every byte of INDEX against its checksum, and its arrays against each other.

    \b
    Examples:
      colbert-prf verify my.index
    """
    from colbert_prf.index import Index

    verified = Index.open(index).verify()
    if as_json:
        print_json(asdict(verified))
        return
    console().print(
        f"{index}: {verified.num_files} files, {verified.num_bytes:,} bytes, all as they were written.", markup=False
    )


def _documents(
    corpus: str, corpus_format: CorpusFormat | None, empty: EmptyPolicy
) -> Iterator[tuple[str, str, dict[str, Any]]]:
    from colbert_prf.datasets import read_corpus_with_metadata

    passages = read_corpus_with_metadata(corpus, format=corpus_format, empty=empty)
    return ((doc_id, text, metadata) for (doc_id, text), metadata in passages)


def _report(index: Any, as_json: bool) -> None:
    info = index.info()
    if as_json:
        print_json(asdict(info))
        return
    console().print(
        f"{info.path}: {info.num_documents:,} passages, {info.num_vectors:,} vectors of {info.bits} bits, "
        f"{sum(info.num_bytes.values()) / 1e6:.1f} MB, generation {info.generation}.",
        markup=False,
    )
