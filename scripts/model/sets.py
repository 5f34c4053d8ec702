"""The sets a model is trained, chosen and reported on, all in one form."""

from __future__ import annotations

import gzip
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from colbert_prf.datasets import read_corpus, read_qrels, read_topics

SEED = 42
TRAINING = {"nq-qed": 1800, "squad11dev": 900, "selqa": 700, "medquad": 500, "acl": 900}
"""Questions of each source of the mix; NFCorpus is left out, because its passages are those of a choosing set."""
HELD_OUT = {"nq-qed": 150, "squad11dev": 75, "selqa": 75}
NUM_PARAGRAPHS = 1500
NUM_NEGATIVES = 3
"""Passages of a mix question besides its positives, at most."""


@dataclass(frozen=True)
class TextSet:
    """Questions, passages, and which passages are relevant to which question, by grade."""

    queries: dict[str, str]
    documents: dict[str, str]
    qrels: dict[str, dict[str, int]]
    relevance: int = 1
    sources: dict[str, str] = field(default_factory=dict)


SETS = {
    "train": None,
    "held-out": None,
    "dl21": ("msmarco-v2-dl21", "queries.tsv", "qrels.txt", 2),
    "vaswani": ("vaswani", "queries.tsv", "qrels.txt", 1),
    "nfcorpus-dev": ("nfcorpus", "dev.queries.tsv", "dev.qrels.txt", 1),
    "scifact": ("scifact", "queries.tsv", "qrels.txt", 1),
}
CHOOSING = ("dl21", "vaswani", "nfcorpus-dev", "scifact")


def read_set(data: Path, name: str) -> TextSet:
    if name in ("train", "held-out"):
        return _mix(data)[name]
    folder, queries, judgements, relevance = SETS[name]  # type: ignore[misc]
    qrels = {query: dict(grades) for query, grades in read_qrels(data / folder / judgements).items()}
    topics = {query: text for query, text in read_topics(data / folder / queries).items() if query in qrels}
    documents = {
        document.doc_id: document.text for document in read_corpus(data / folder / "collection.tsv.gz", empty="keep")
    }
    return TextSet(topics, documents, {query: qrels[query] for query in topics}, relevance)


@cache
def _mix(data: Path) -> dict[str, TextSet]:
    """Questions to train on and questions held out, drawn from the training mix; no question is in both."""
    mix = data / "train"
    positives: dict[str, dict[str, dict[str, int]]] = {source: {} for source in TRAINING}
    negatives: dict[str, set[str]] = {}
    known: dict[str, set[str]] = {source: set() for source in TRAINING}
    for source, question, positive, negative in _lines(mix / "mix.triples.ids.tsv.gz", 4):
        if source in TRAINING:
            positives[source].setdefault(question, {})[positive] = 1
            negatives.setdefault(question, set()).add(negative)
            known[source] |= {positive, negative}
    texts, passages = (dict(_lines(mix / f"mix.{what}.tsv.gz", 2)) for what in ("queries", "passages"))
    drawing = random.Random(SEED)
    held: dict[str, dict[str, int]] = {}
    drawn: dict[str, dict[str, int]] = {}
    sources: dict[str, str] = {}
    for source, count in TRAINING.items():
        questions = [*{texts[q]: q for q in sorted(positives[source]) if texts[q].strip()}.values()]
        drawing.shuffle(questions)
        split = HELD_OUT.get(source, 0)
        held |= {question: positives[source][question] for question in questions[:split]}
        chosen = questions[split : split + count]
        drawn |= {question: positives[source][question] for question in chosen}
        sources |= dict.fromkeys(chosen, source)
    wanted = sorted({doc_id for relevant in held.values() for doc_id in relevant})
    others = sorted(set().union(*(known[source] for source in HELD_OUT)) - set(wanted))
    paragraphs = wanted + drawing.sample(others, NUM_PARAGRAPHS - len(wanted))
    to_learn = {doc_id for question, relevant in drawn.items() for doc_id in relevant}
    to_learn |= {d for question in drawn for d in sorted(negatives[question])[:NUM_NEGATIVES]}
    train = TextSet(
        {question: texts[question] for question in drawn},
        {doc_id: passages[doc_id] for doc_id in sorted(to_learn - set(wanted))},
        drawn,
        sources=sources,
    )
    _add_msmarco(train, data)
    held_out = TextSet({q: texts[q] for q in held}, {d: passages[d] for d in paragraphs}, held)
    return {"train": train, "held-out": held_out}


def _add_msmarco(train: TextSet, data: Path) -> None:
    """The sample of MS MARCO, except passages that are in the pools results are reported on."""
    reported = {text for _, text in read_corpus(data / "msmarco-dl1920" / "collection.tsv.gz", empty="keep")}
    numbers: dict[str, str] = {}
    questions: dict[str, str] = {}
    for _, question, positive, negative in _lines(data / "train" / "msmarco-sample.triples.tsv.gz", 4):
        if positive in reported or negative in reported or not question.strip():
            continue
        query = questions.setdefault(question, f"msmarco-q{len(questions)}")
        for text in (positive, negative):
            doc_id = numbers.setdefault(text, f"msmarco-p{len(numbers)}")
            train.documents[doc_id] = text
        train.queries[query] = question
        train.qrels.setdefault(query, {})[numbers[positive]] = 1
        train.sources[query] = "msmarco"


def _lines(path: Path, fields: int) -> Iterator[list[str]]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            yield line.rstrip("\n").split("\t", fields - 1)
