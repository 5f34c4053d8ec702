"""How much faster many queries are answered together: `search_many` against a loop of `search`.

    python benchmarks/many.py DATA --cache DIR [--k 10] [--feedback prf] [--rounds 7]

Over the pool of DATA/msmarco-dl1920 at 4 bits with the 97 topics of TREC DL 2019 and 2020 as texts: encoding counts.
Both take turns in one process, all topics each. A machine has slow seconds: speeds are those of the fastest round, and
the ratio is given for these and as the median of the rounds.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter

from effectiveness import POOL, open_searcher

from colbert_prf import Ranking


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--cache", type=Path, required=True)
    parser.add_argument("--bits", type=int, default=4)
    parser.add_argument("--k", type=int, default=10)
    parser.add_argument("--feedback", help="such as prf")
    parser.add_argument("--rounds", type=int, default=7)
    arguments = parser.parse_args()
    searcher = open_searcher(arguments.data, arguments.cache, "msmarco-dl1920", arguments.bits)
    system = searcher.with_defaults(k=arguments.k, feedback=arguments.feedback)
    queries = [text for topics in POOL.values() for text in topics.read(arguments.data)[0].values()]

    def one_by_one() -> list[Ranking]:
        return [system.search(query) for query in queries]

    def together() -> list[Ranking]:
        return list(system.search_many(queries))

    assert [ranking.doc_ids for ranking in one_by_one()] == [ranking.doc_ids for ranking in together()]
    rounds = [(seconds(one_by_one), seconds(together)) for _ in range(arguments.rounds)]
    loop, many = (min(times) for times in zip(*rounds, strict=True))
    print(f"search      {len(queries) / loop:6.1f} queries a second")
    print(f"search_many {len(queries) / many:6.1f} queries a second")
    ratios = [first / second for first, second in rounds]
    print(f"search_many is {loop / many:.2f} times as fast (median of {len(rounds)} rounds: {median(ratios):.2f})")


def seconds(run: Callable[[], object]) -> float:
    started = perf_counter()
    run()
    return perf_counter() - started


if __name__ == "__main__":
    main()
