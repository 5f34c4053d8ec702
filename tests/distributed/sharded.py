"""A collection of several segments with deletions, texts and metadata, and what its searches must equal."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np

from colbert_prf import EncodedDocument, EncodedQuery, Index, Ranking

DIM, VOCABULARY, NUM_DOCUMENTS, NUM_SEGMENTS = 16, 60, 900, 5
RARE = 50
"""Tokens from here on are in few documents."""


def documents(seed: int = 3, count: int = NUM_DOCUMENTS, first: int = 0) -> list[tuple]:
    random, made = np.random.default_rng(seed), []
    topics = random.standard_normal((12, DIM))
    for number in range(first, first + count):
        length = int(random.integers(1, 25)) if number % 97 else 0
        vectors = topics[random.integers(12, size=length)] + 0.8 * random.standard_normal((length, DIM))
        vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
        token_ids = random.integers(0, RARE, length, dtype=np.int32)
        if length and number % 40 == 0:
            token_ids[0] = RARE + number // 40 % (VOCABULARY - RARE)
        metadata = {"year": 1990 + number % 30, "source": "garden" if number % 3 else "pond"}
        made.append((f"d{number}", EncodedDocument(token_ids, vectors), f"text {number}", metadata))
    return made


def make_index(folder: Path, bits: int = 4) -> Index:
    """Segments of unlike sizes, of which some documents are deleted."""
    made = documents()
    bounds = [0, 350, 380, 600, 700, NUM_DOCUMENTS]
    index = Index.create_from_vectors(
        folder, made[: bounds[1]], bits=bits, vocabulary_size=VOCABULARY, special_ids=[0, 1], texts=True, progress=False
    )
    for first, last in pairwise(bounds[1:]):
        index.add_vectors(made[first:last])
    index.delete([f"d{number}" for number in range(5, NUM_DOCUMENTS, 11)])
    assert len(index.segments) == NUM_SEGMENTS
    return index


def asked(seed: int, *tokens: int) -> EncodedQuery:
    random = np.random.default_rng(seed)
    vectors = random.standard_normal((max(5, len(tokens)), DIM)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    token_ids = np.array([*tokens, *random.integers(2, RARE, len(vectors) - len(tokens))], np.int32)
    return EncodedQuery(token_ids, vectors, random.uniform(0.5, 1.5, len(vectors)).astype(np.float32))


def answer_of(ranking: Ranking) -> tuple:
    """All of an answer: ids, scores to the last bit, texts, expansion, and the answer before feedback."""
    expansion = ranking.expansion
    learned = None
    if expansion is not None:
        query = expansion.query
        learned = (expansion.vectors, expansion.feedback, query.vectors.tobytes(), query.weights.tobytes())
    before = None if ranking.before is None else answer_of(ranking.before)
    texts = [(hit.text, hit.metadata, hit.passage_id) for hit in ranking.hits[:5]]
    return ranking.doc_ids, ranking.scores, texts, learned, before
