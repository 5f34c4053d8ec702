"""``colbert-prf index``, ``add``, ``upsert``, ``delete``, ``merge`` and ``verify``: the life of an index on disk."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from colbert_prf.cli.cluster import Cluster, cluster_options
from colbert_prf.cli.corpus import Reading, checked_documents, corpus_options, documents_of
from colbert_prf.cli.output import console, json_option, model_option, print_json
from colbert_prf.encoder import Encoder
from colbert_prf.errors import ColbertPrfError
from colbert_prf.index.codec import DEFAULT_BITS
from colbert_prf.storage.index import StoredIndex

__all__ = ["add", "delete", "index", "merge", "upsert", "verify"]

INDEX = click.Path(path_type=Path)


@click.command(short_help="Make an index of a corpus.")
@click.argument("corpus")
@click.argument("output", type=INDEX)
@click.option(
    "--bits", type=click.Choice(["2", "4", "16"]), default=str(DEFAULT_BITS), show_default=True, help="Per dimension."
)
@click.option("--no-texts", is_flag=True, help="Keep vectors only.")
@click.option(
    "--passages",
    "length",
    type=click.IntRange(min=1),
    metavar="LENGTH",
    help="Split texts at sentences into passages of at most so many tokens, which are called ID#0, ID#1 and so on.",
)
@click.option(
    "--stride",
    type=click.IntRange(min=1),
    help="Tokens from the beginning of a passage to that of the next. Default: half of --passages.",
)
@click.option("--resume", is_flag=True, help="Continue an interrupted build of the same corpus with the same options.")
@cluster_options
@corpus_options()
@model_option
@json_option
def index(
    corpus: str,
    output: Path,
    bits: str,
    no_texts: bool,
    length: int | None,
    stride: int | None,
    resume: bool,
    cluster: Cluster | None,
    reading: Reading,
    model: str | None,
    as_json: bool,
) -> None:
    """Encode CORPUS and write it as the index folder OUTPUT.

    CORPUS is TSV (id, tab, text), JSONL (_id, title, text), CSV with a header, TREC SGML or Parquet, plain or
    compressed with gzip or zstd; `-` is standard input, `irds:NAME` a dataset of ir_datasets. Fields of JSONL, CSV and
    Parquet other than id and text are kept as metadata, for --where. A title goes before the text.

    The whole corpus is checked before anything is encoded: an id used twice, a passage without text. An interrupted
    build is continued by the same command with --resume; at most a few seconds of work are lost.

    \b
    Examples:
      colbert-prf index passages.tsv my.index
      colbert-prf index corpus.jsonl.gz my.index --bits 4 --resume
      colbert-prf index products.csv my.index --id-field sku --text-field description --title-field name
      colbert-prf index books.jsonl books.index --passages 180 --stride 90
      colbert-prf index passages.tsv /shared/my.index --ray 10.0.0.1:6379
    """
    from colbert_prf.index import Index, Passages

    if stride is not None and length is None:
        raise click.UsageError("--stride needs --passages.")
    split = Passages(length, stride) if length is not None else None
    options: dict[str, Any] = {"bits": int(bits), "texts": not no_texts, "passages": split, "resume": resume}
    if cluster is not None:
        from colbert_prf.distributed import create_index

        with _kept_if_interrupted(output):
            documents = documents_of(corpus, reading)
            made = create_index(output, documents, encoder=Encoder.load(model), **options, **cluster)
    else:
        with checked_documents(corpus, reading) as (documents, count), _kept_if_interrupted(output):
            made = Index.create(output, documents, encoder=Encoder.load(model), total=count, **options)
    _report(made, as_json)


@click.command(short_help="Add passages to an index.")
@click.argument("index", type=INDEX)
@click.argument("corpus")
@cluster_options
@corpus_options()
@json_option
def add(index: Path, corpus: str, cluster: Cluster | None, reading: Reading, as_json: bool) -> None:
    """Add the passages of CORPUS to INDEX, all of them or none; of an index made with --passages they are split.

    A passage whose id is in INDEX is refused; `colbert-prf upsert` replaces it.

    \b
    Examples:
      colbert-prf add my.index more.tsv
      zcat more.jsonl.gz | colbert-prf add my.index - --json
    """
    _report(_grown(index, corpus, reading, cluster, replacing=False), as_json)


@click.command(short_help="Add passages, replacing those that are there.")
@click.argument("index", type=INDEX)
@click.argument("corpus")
@cluster_options
@corpus_options()
@json_option
def upsert(index: Path, corpus: str, cluster: Cluster | None, reading: Reading, as_json: bool) -> None:
    """Add the passages of CORPUS to INDEX, and replace those whose ids are there, all of them or none.

    A search meanwhile finds each passage as it was or as it is now, and never misses it.

    \b
    Examples:
      colbert-prf upsert my.index changed.tsv
      zcat changed.jsonl.gz | colbert-prf upsert my.index - --json
    """
    _report(_grown(index, corpus, reading, cluster, replacing=True), as_json)


@click.command(short_help="Delete passages from an index.")
@click.argument("index", type=INDEX)
@click.argument("doc_ids", nargs=-1, required=True)
@json_option
def delete(index: Path, doc_ids: tuple[str, ...], as_json: bool) -> None:
    """Delete the passages DOC_IDS from INDEX, all of them or none; of an index made with --passages, documents.

    \b
    Examples:
      colbert-prf delete my.index passage-7 passage-9
    """
    from colbert_prf.index import Index

    opened = Index.open(index)
    opened.delete(doc_ids)
    _report(opened, as_json)


@click.command(short_help="Drop deleted passages and join segments.")
@click.argument("index", type=INDEX)
@click.option("--retrain", is_flag=True, help="Also train the codec again, for an index that has outgrown it.")
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


@click.command(short_help="Check every byte of an index.")
@click.argument("index", type=INDEX)
@json_option
def verify(index: Path, as_json: bool) -> None:
    """Check every byte of INDEX against its checksum, and its arrays against each other.

    INDEX may also be a folder that LexicalIndex or VectorIndex made.

    \b
    Examples:
      colbert-prf verify my.index
    """
    from colbert_prf.baselines.lexical import LexicalIndex
    from colbert_prf.baselines.lexical.manifest import LexicalManifest
    from colbert_prf.baselines.single_vector import VectorIndex
    from colbert_prf.baselines.single_vector.snapshot import VectorManifest
    from colbert_prf.index import Index
    from colbert_prf.storage.layout import IndexLayout
    from colbert_prf.storage.manifest import kind_of

    kinds: dict[str | None, Callable[[Path], StoredIndex[Any]]] = {
        LexicalManifest.KIND: LexicalIndex.open,
        VectorManifest.KIND: VectorIndex.open,
    }
    verified = kinds.get(kind_of(IndexLayout.at(index)), Index.open)(index).verify()
    if as_json:
        print_json(asdict(verified))
        return
    console().print(
        f"{index}: {verified.num_files} files, {verified.num_bytes:,} bytes, all as they were written.", markup=False
    )


def _grown(path: Path, corpus: str, reading: Reading, cluster: Cluster | None, *, replacing: bool) -> Any:
    """Add the documents of a corpus to an index, or replace those that are there."""
    from colbert_prf.index import Index

    opened = Index.open(path)
    if cluster is not None:
        from colbert_prf.distributed import add_documents

        add_documents(opened, documents_of(corpus, reading), replacing=replacing, **cluster)
        return opened
    with checked_documents(corpus, reading) as (documents, _):
        (opened.upsert if replacing else opened.add)(documents)
    return opened


@contextmanager
def _kept_if_interrupted(output: Path) -> Iterator[None]:
    """Say how an interrupted build goes on."""
    from colbert_prf.index.build_state import unfinished_build
    from colbert_prf.storage.layout import IndexLayout

    try:
        yield
    except BaseException:
        with suppress(ColbertPrfError, OSError):
            if (state := unfinished_build(IndexLayout.at(output))) is not None:
                click.echo(
                    f"{output}: {state.num_documents:,} passages are kept; the same command with --resume goes on.",
                    err=True,
                )
        raise


def _report(index: Any, as_json: bool) -> None:
    info = index.info()
    if as_json:
        print_json(asdict(info))
        return
    passages = "1 passage" if info.num_documents == 1 else f"{info.num_documents:,} passages"
    console().print(
        f"{info.path}: {passages}, {info.num_vectors:,} vectors of {info.bits} bits, "
        f"{sum(info.num_bytes.values()) / 1e6:.1f} MB, generation {info.generation}.",
        markup=False,
    )
