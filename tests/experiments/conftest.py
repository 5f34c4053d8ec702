"""A collection small enough to check by hand, and systems whose answers are written down."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from colbert_prf.experiments import Context, known_kinds, registry, system
from colbert_prf.search.retriever import Retriever
from colbert_prf.types import EncodedQuery, Hit, Ranking

QUERY = EncodedQuery(np.array([7], dtype=np.int32), np.array([[0.6, 0.8]], dtype=np.float32))
CONFIG = """
title = "Three topics"
measures = ["MRR", "P@1"]

[[collections]]
name = "Fish"
corpus = "corpus.tsv"
corpus_name = "fish"
topics = "topics.tsv"
qrels = "qrels.txt"

[[systems]]
name = "old"
group = "Before"
kind = "told"
order = ["b", "a"]
baseline = true

[[systems]]
name = "new"
group = "After"
kind = "told"
order = ["a", "b"]
"""


class Told(Retriever):
    """Gives every query the documents it was told."""

    def __init__(self, order: list[str]) -> None:
        self.order = order
        self.asked: list[str] = []

    def search(self, query, k=1000):
        self.asked.append(query)
        hits = tuple(Hit(doc_id, 1 / rank) for rank, doc_id in enumerate(self.order, start=1))
        return Ranking(QUERY, hits[:k], {"find": 0.001})


@pytest.fixture
def built(monkeypatch) -> list[Told]:
    """Make the kind ``told`` known; every system of it that is built is appended here."""
    known_kinds()
    monkeypatch.setattr(registry, "_KINDS", dict(registry._KINDS))
    made: list[Told] = []

    @system("told")
    def told(context: Context, *, order: list[str]) -> Retriever:
        made.append(Told(order))
        return made[-1]

    return made


@pytest.fixture
def data(tmp_path) -> Path:
    """Three topics, for each of which ``a`` alone is relevant."""
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "corpus.tsv").write_text("a\tGoldfish grow.\nb\tBank rates fell.\n")
    (folder / "topics.tsv").write_text("q1\tone\nq2\ttwo\nq3\tthree\n")
    (folder / "qrels.txt").write_text("".join(f"q{number} 0 a 1\nq{number} 0 b 0\n" for number in (1, 2, 3)))
    return folder


@pytest.fixture
def configured(tmp_path) -> Callable[[str], Path]:
    """Write a configuration and give its path."""

    def write(text: str = CONFIG) -> Path:
        path = tmp_path / "experiment.toml"
        path.write_text(text)
        return path

    return write
