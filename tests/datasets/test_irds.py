from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import NamedTuple

import pytest

from colbert_prf.datasets import read_corpus, read_corpus_with_metadata, read_qrels, read_run, read_topics
from colbert_prf.errors import DatasetError


class Doc(NamedTuple):
    doc_id: str
    title: str
    body: str
    marks: tuple[str, ...] = ("m",)

    def default_text(self) -> str:
        return f"{self.title} / {self.body}"


class OldDoc(NamedTuple):
    doc_id: str
    title: str
    text: str
    year: int


class Query(NamedTuple):
    query_id: str
    text: str


class Qrel(NamedTuple):
    query_id: str
    doc_id: str
    relevance: int


class ScoredDoc(NamedTuple):
    query_id: str
    doc_id: str
    score: float


READERS = [
    lambda source: list(read_corpus(source)),
    read_topics,
    read_qrels,
    read_run,
]


def message_of(read: Callable[[str], object], source: str) -> str:
    with pytest.raises(DatasetError) as caught:
        read(source)
    return str(caught.value)


def test_documents_by_their_default_text(irds: dict[str, object], fake_dataset: Callable[..., object]) -> None:
    irds["some/docs"] = fake_dataset(docs=[Doc("d1", "T", "B")])
    [(document, metadata)] = read_corpus_with_metadata("irds:some/docs")
    assert document == ("d1", "T / B")
    assert json.dumps(metadata) == '{"title": "T", "marks": ["m"]}'


def test_documents_of_a_version_without_default_text(
    irds: dict[str, object], fake_dataset: Callable[..., object]
) -> None:
    irds["old"] = fake_dataset(docs=[OldDoc("d1", "T", "B", 1999)])
    assert list(read_corpus_with_metadata("irds:old")) == [(("d1", "T B"), {"title": "T", "year": 1999})]


def test_topics_judgements_and_scored_documents(irds: dict[str, object], fake_dataset: Callable[..., object]) -> None:
    irds["all"] = fake_dataset(
        queries=[Query("q1", "a question")],
        qrels=[Qrel("q1", "d1", 2), Qrel("q1", "d2", 0)],
        scoreddocs=[ScoredDoc("q1", "d2", 0.5), ScoredDoc("q1", "d3", 2), ScoredDoc("q1", "d1", 0.5)],
    )
    assert read_topics("irds:all") == {"q1": "a question"}
    assert read_qrels("irds:all") == {"q1": {"d1": 2, "d2": 0}}
    assert list(read_run("irds:all")["q1"].items()) == [("d3", 2.0), ("d2", 0.5), ("d1", 0.5)]


def test_a_dataset_is_checked_like_a_file(irds: dict[str, object], fake_dataset: Callable[..., object]) -> None:
    irds["bad"] = fake_dataset(
        docs=[Doc("d1", "T", "B"), Doc("d1", "T", "B")],
        queries=[Query("q1", " ")],
        qrels=[Qrel("q1", "d1", 2), Qrel("q1", "d1", 0)],
        scoreddocs=[ScoredDoc("q1", "d2", float("nan"))],
    )
    assert [message_of(read, "irds:bad") for read in READERS] == [
        "irds:bad, line 2: the document id 'd1' was used before, at line 1; make the ids unique",
        "irds:bad, line 1: query 'q1' has no text; write one, or remove the query",
        "irds:bad, line 2: document 'd1' of query 'q1' has grade 0, but 2 at line 1; keep one",
        "irds:bad, line 1: the score is nan; write a finite number",
    ]


def test_an_unknown_dataset(irds: dict[str, object]) -> None:
    for read in READERS:
        expected = "irds:nothing: ir_datasets knows no such dataset; see https://ir-datasets.com"
        assert message_of(read, "irds:nothing") == expected


def test_a_dataset_without_that_part(irds: dict[str, object], fake_dataset: Callable[..., object]) -> None:
    irds["empty"] = fake_dataset()
    for read, part in zip(READERS, ("docs", "queries", "qrels", "scoreddocs"), strict=True):
        expected = f"irds:empty: this dataset has no {part}; choose another of https://ir-datasets.com"
        assert message_of(read, "irds:empty") == expected


@pytest.mark.usefixtures("irds")
def test_a_download_that_fails() -> None:
    assert message_of(read_topics, "irds:failing") == (
        "irds:failing: ir_datasets could not provide the queries: no network"
    )


def test_without_ir_datasets_the_message_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ir_datasets", None)
    for read in READERS:
        expected = "irds:vaswani: reading an irds: name needs ir_datasets: pip install ir_datasets"
        assert message_of(read, "irds:vaswani") == expected
