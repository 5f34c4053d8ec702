"""What a filter costs: searches with and without one, interleaved in one process.

``python benchmarks/filters.py my.16.index --queries queries.tsv --cache FOLDER`` makes a 4-bit index of the vectors of
an index, each passage with a number from 0 to 99 and the same as a string, keeps it in FOLDER, and prints for filters
that select 1, 2, 10, 50 and 99 % the median time of a search and its ratio to one without a filter.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from statistics import median
from time import perf_counter

import click
import numpy as np

from colbert_prf import EncodedDocument, Encoder, Index, Searcher
from colbert_prf.datasets import read_topics

FILTERS = {
    "none": None,
    "1 %, number": {"number": 7},
    "1 %, string": {"name": "n07"},
    "2 %, or": {"or": [{"name": "n07"}, {"number": 8}], "number": {">": 1}},
    "10 %": {"number": {"<": 10}},
    "50 %": {"number": {"<": 50}},
    "99 %": {"number": {"<": 99}},
}


def with_metadata(source: Index) -> Iterator[tuple]:
    """The documents of an index, numbered from 0 to 99 again and again."""
    for position in range(source.num_positions):
        vectors = source.vectors(position)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        number = position % 100
        metadata = {"number": number, "name": f"n{number:02}"}
        yield source.doc_id(position), EncodedDocument(source.token_ids(position), vectors), metadata


@click.command()
@click.argument("source")
@click.option("--queries", required=True, help="A file of topics.")
@click.option("--cache", required=True, type=click.Path(path_type=Path), help="Where the index is kept.")
@click.option("--k", default=10, show_default=True)
@click.option("--rounds", default=5, show_default=True)
def main(source: str, queries: str, cache: Path, k: int, rounds: int) -> None:
    """Measure."""
    path = cache / "filters.4.index"
    if not path.exists():
        vectors = Index.open(source)
        total = vectors.num_documents
        Index.create_from_vectors(
            path, with_metadata(vectors), bits=4, vocabulary_size=vectors.vocabulary_size, total=total
        )
    index = Index.open(path, encoder=Encoder.load(), force=True)
    searcher = Searcher(index)
    encoded = [searcher.encode(text) for text in read_topics(queries).values()]
    seconds: dict[str, list[float]] = {name: [] for name in FILTERS}
    stages: dict[str, list[float]] = {name: [] for name in FILTERS}
    for number in range(rounds + 1):
        for query in encoded if number else encoded[:3]:  # the first searches load the kernels
            for name, where in FILTERS.items():
                started = perf_counter()
                ranking = searcher.search(query, k, where=where)
                seconds[name].append(perf_counter() - started)
                stages[name].append(ranking.timings.get("filter", 0.0))
        if not number:
            for values in (*seconds.values(), *stages.values()):
                values.clear()
    click.echo(f"{index.num_documents:,} passages, {len(encoded)} queries, {rounds} rounds, k = {k}")
    for name in FILTERS:
        ratio = median(seconds[name]) / median(seconds["none"])
        spent, filtering = (1000 * median(values) for values in (seconds[name], stages[name]))
        click.echo(f"{name:<12} {spent:6.2f} ms, {ratio:.2f} of none, {filtering:.2f} ms for the filter itself")


if __name__ == "__main__":
    main()
