"""What a filter costs: searches with and without one, interleaved in one process.

``python benchmarks/filters.py INDEX --queries FILE --where FILTER ...`` prints, for each filter, how many passages it
selects, the mean time of a search by stage, and its ratio to an unfiltered search.
"""

from __future__ import annotations

from statistics import median
from time import perf_counter

import click

from colbert_prf import Encoder, Index, Searcher
from colbert_prf.cli.where import parse_where
from colbert_prf.datasets import read_topics
from colbert_prf.search.filters import filter_mask, parse_filter


@click.command()
@click.argument("folder")
@click.option("--queries", required=True, help="A file of topics.")
@click.option("--where", "wheres", multiple=True, help="A filter; may be repeated, each is measured alone.")
@click.option("--k", default=10, show_default=True)
@click.option("--rounds", default=5, show_default=True)
@click.option("--callable", "with_callable", is_flag=True, help="Also the filter as a Python function.")
def main(folder: str, queries: str, wheres: tuple[str, ...], k: int, rounds: int, with_callable: bool) -> None:
    """Measure."""
    index = Index.open(folder, encoder=Encoder.load(), force=True)
    searcher = Searcher(index)
    encoded = [searcher.encode(text) for text in read_topics(queries).values()]
    filters = {"none": None} | {text: parse_where((text,)) for text in wheres}
    if with_callable:
        filters |= {f"{text}, as a function": parse_filter(parse_where((text,))).matches for text in wheres}
    seconds = {name: [] for name in filters}
    stages = {name: {} for name in filters}
    for round_number in range(rounds + 1):
        for query in encoded if round_number else encoded[:3]:
            for name, where in filters.items():
                started = perf_counter()
                ranking = searcher.search(query, k, where=where)
                if round_number:  # the round before warms up
                    seconds[name].append(perf_counter() - started)
                    for stage, value in ranking.timings.items():
                        stages[name].setdefault(stage, []).append(value)
    base = median(seconds["none"])
    for name, where in filters.items():
        selected = index.num_documents if where is None else "-"
        if isinstance(where, dict):
            selected = int(filter_mask(parse_filter(where), index.snapshot.fields).sum())
        shown = ", ".join(f"{stage} {1000 * median(values):.2f}" for stage, values in stages[name].items())
        spent = median(seconds[name])
        click.echo(f"{name}: {selected} passages, {1000 * spent:.2f} ms, {spent / base:.2f} x none ({shown})")


if __name__ == "__main__":
    main()
