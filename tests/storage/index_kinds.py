"""The three kinds of index behind one interface: documents are ids and texts of numbers, "3 7 7"."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from colbert_prf import EncodedDocument, Index
from colbert_prf.baselines import LexicalIndex
from colbert_prf.baselines.lexical import Analyzer
from colbert_prf.baselines.single_vector import VectorEncoder, VectorIndex

DIM, VOCABULARY = 8, 50
Pairs = list[tuple[str, str]]


class Counts(VectorEncoder):
    """The vector of a text of numbers counts each of them."""

    name = "counts"

    def encode_query(self, text):
        return np.bincount([int(word) % DIM for word in text.split()], minlength=DIM).astype(np.float32)

    def encode_documents(self, texts, *, progress=None):
        for text in texts:
            yield self.encode_query(text)[None]


@dataclass(frozen=True)
class IndexKind:
    """An index of one unit vector for each number of a text."""

    def create(self, path: Path, pairs: Pairs, **options: Any) -> Index:
        options = {"vocabulary_size": VOCABULARY, "texts": True, "bits": 16, "progress": False, **options}
        return Index.create_from_vectors(path, self.documents(pairs), **options)

    def open(self, path: Path) -> Index:
        return Index.open(path)

    def add(self, index: Index, pairs: Pairs) -> None:
        index.add_vectors(self.documents(pairs))

    def upsert(self, index: Index, pairs: Pairs) -> None:
        self.upsert_documents(index, self.documents(pairs))

    def upsert_documents(self, index: Index, documents: Iterable[tuple]) -> None:
        index.upsert_vectors(documents)

    def content(self, index: Index, position: int) -> object:
        return index.vectors(position).tolist()

    def expected(self, text: str) -> object:
        return np.eye(DIM)[self._tokens(text)].tolist()

    def _tokens(self, text: str) -> np.ndarray:
        return np.array([int(word) % DIM for word in text.split()], np.int32)

    def documents(self, pairs: Pairs) -> list[tuple]:
        units = np.eye(DIM, dtype=np.float32)
        return [(name, EncodedDocument(self._tokens(text), units[self._tokens(text)]), text) for name, text in pairs]


@dataclass(frozen=True)
class LexicalKind:
    """An index of the numbers of a text as terms."""

    def create(self, path: Path, pairs: Pairs) -> LexicalIndex:
        return LexicalIndex.create(path, pairs, analyzer=Analyzer(stop_words="none", stemmer="none"), progress=False)

    def open(self, path: Path) -> LexicalIndex:
        return LexicalIndex.open(path)

    def add(self, index: LexicalIndex, pairs: Pairs) -> None:
        index.add(pairs)

    def upsert(self, index: LexicalIndex, pairs: Pairs) -> None:
        index.upsert(pairs)

    upsert_documents = upsert

    def documents(self, pairs: Pairs) -> Pairs:
        return pairs

    def content(self, index: LexicalIndex, position: int) -> object:
        return index.snapshot.term_frequencies(position)

    def expected(self, text: str) -> object:
        return {word: text.split().count(word) for word in text.split()}


@dataclass(frozen=True)
class SingleKind:
    """An index of the counts of the numbers of a text."""

    def create(self, path: Path, pairs: Pairs) -> VectorIndex:
        return VectorIndex.create(path, pairs, encoder=Counts(), progress=False)

    def open(self, path: Path) -> VectorIndex:
        return VectorIndex.open(path, encoder=Counts())

    def add(self, index: VectorIndex, pairs: Pairs) -> None:
        index.add(pairs)

    def upsert(self, index: VectorIndex, pairs: Pairs) -> None:
        index.upsert(pairs)

    upsert_documents = upsert

    def documents(self, pairs: Pairs) -> Pairs:
        return pairs

    def content(self, index: VectorIndex, position: int) -> object:
        return index.vectors[position].tolist()

    def expected(self, text: str) -> object:
        return Counts().encode_query(text).tolist()


KINDS = {"index": IndexKind(), "lexical": LexicalKind(), "single": SingleKind()}


def contents(kind: Any, index: Any) -> list[tuple[str, str, object]]:
    """The live documents in order: id, text, and what the kind keeps of it."""
    snapshot = index.snapshot
    return [
        (snapshot.doc_id(position), snapshot.text(position), kind.content(index, position))
        for position in np.flatnonzero(snapshot.live).tolist()
    ]
