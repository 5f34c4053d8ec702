"""Small random documents, and what an index holds as plain values that can be compared."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from colbert_prf import EncodedDocument, EncodedQuery, Index

DIM = 8
VOCABULARY = 50


def random_document(seed: int, length: int | None = None, dim: int = DIM) -> EncodedDocument:
    random = np.random.default_rng(seed)
    length = int(random.integers(1, 9)) if length is None else length
    vectors = random.standard_normal((length, dim)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return EncodedDocument(random.integers(0, VOCABULARY, length).astype(np.int32), vectors)


def random_documents(count: int, first: int = 0) -> list[tuple]:
    """Documents with ids, texts and, for every third, metadata."""
    return [
        (f"d{i}", random_document(i), f"text of {i}", {"number": i} if i % 3 == 0 else {})
        for i in range(first, first + count)
    ]


def everything_in(index: Index) -> list[tuple]:
    """The live documents in order, with all that is kept of each."""
    return [
        (
            index.doc_id(position),
            index.text(position),
            index.metadata(position),
            index.token_ids(position).tolist(),
            index.vectors(position).tolist(),
        )
        for position in range(index.num_positions)
        if index.snapshot.live[position]
    ]


def ranked(index: Index, query: EncodedQuery) -> list[tuple[str, float]]:
    scores = index.score(query)
    order = np.argsort(-scores, kind="stable")
    return [(index.doc_id(int(p)), float(scores[p])) for p in order if np.isfinite(scores[p])]


@pytest.fixture(scope="session", autouse=True)
def no_waiting_for_the_disk():
    """Most of the time of these tests; that files are synced is tested in test_durable, kills need no sync."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        yield


@pytest.fixture(scope="session")
def make_document() -> Callable[..., EncodedDocument]:
    return random_document


@pytest.fixture(scope="session")
def make_documents() -> Callable[..., list[tuple]]:
    return random_documents


@pytest.fixture(scope="session")
def contents() -> Callable[[Index], list[tuple]]:
    return everything_in


@pytest.fixture(scope="session")
def ranking_of() -> Callable[[Index, EncodedQuery], list[tuple[str, float]]]:
    return ranked


@pytest.fixture(scope="session")
def a_query() -> EncodedQuery:
    document = random_document(99, 4)
    return EncodedQuery(document.token_ids, document.vectors, np.array([1, 2, 0.5, 1], dtype=np.float32))


@pytest.fixture
def index(tmp_path: Path) -> Index:
    """Ten documents with texts, two bits."""
    return Index.create_from_vectors(
        tmp_path / "my.index", random_documents(10), vocabulary_size=VOCABULARY, texts=True, progress=False
    )
