from __future__ import annotations

import pytest

from colbert_prf.datasets.formats import format_by_first_line, format_by_name

ALL = ("tsv", "jsonl", "trec", "parquet")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("c.tsv", "tsv"),
        ("c.tsv.gz", "tsv"),
        ("C.TSV.GZ", "tsv"),
        ("c.jsonl.zst", "jsonl"),
        ("c.ndjson.zstd", "jsonl"),
        ("c.json", "jsonl"),
        ("c.trec", "trec"),
        ("c.sgml", "trec"),
        ("c.sgm.gz", "trec"),
        ("c.xml", "trec"),
        ("c.parquet", "parquet"),
        ("c.txt.gz", None),
        ("c.gz", None),
        ("tsv", None),
        ("folder.tsv/c", None),
        ("-", None),
    ],
)
def test_the_suffix_before_the_compression_tells_the_format(name: str, expected: str | None) -> None:
    assert format_by_name(name, requested=None, allowed=ALL) == expected


def test_the_lines_looked_at_are_given_again() -> None:
    lines = [(1, ""), (2, " "), (3, "<DOC>"), (4, "</DOC>")]
    found, again = format_by_first_line(iter(lines), "-", ALL)
    assert found == "trec"
    assert list(again) == lines
