"""``effectiveness.py gives`` on sixty passages: the table has the figures that the ranks of the answers give."""

from __future__ import annotations

import shutil
from math import log2
from pathlib import Path

import effectiveness
import pytest

from colbert_prf import ColbertPRF, Index, Searcher

ANSWERS = {"goldfish in a bowl": "p1", "bank near the river": "p38", "the army's old tank": "p17"}


@pytest.fixture(scope="module")
def collections(data, tmp_path_factory):
    """The passages of ``data`` in the place of each collection; every topic has one relevant passage."""
    folder = tmp_path_factory.mktemp("collections")
    for topics in effectiveness.GIVES.values():
        collection = folder / topics.collection
        if not collection.exists():
            collection.mkdir()
            shutil.copy(data / "collection.tsv.gz", collection)
        rows = list(enumerate(ANSWERS.items()))
        (collection / topics.queries).write_text("".join(f"q{number}\t{text}\n" for number, (text, _) in rows))
        (collection / topics.judgements).write_text(
            "".join(f"q{number} 0 {answer} 3\n" for number, (_, answer) in rows)
        )
    return folder


def test_gives_prints_a_row_for_each_collection(collections, tmp_path, capsys):
    effectiveness.report_gains(collections, tmp_path)
    header, line, *rows = capsys.readouterr().out.splitlines()
    assert header.count("|") == line.count("|") == 6
    assert [row.split(" | ")[0].strip("| ") for row in rows] == list(effectiveness.GIVES)
    searcher = Searcher(Index.open(tmp_path / "vaswani.4.index"))
    before, after = (
        [searcher.search(text, 60, feedback=method).doc_ids.index(answer) + 1 for text, answer in ANSWERS.items()]
        for method in (None, ColbertPRF())
    )
    means = [
        sum(map(value, ranks)) / len(ranks)
        for value in (lambda rank: 1 / rank, lambda rank: 1 / log2(rank + 1) if rank <= 10 else 0)
        for ranks in (before, after)
    ]
    printed = [float(cell.split()[0].rstrip("*")) for cell in rows[-1].strip("| ").split(" | ")[1:]]
    assert printed == pytest.approx(means, abs=5e-5)


def test_the_front_page_has_the_rows_that_gives_prints():
    readme = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    assert all(f"| {name} |" in readme for name in effectiveness.GIVES)
