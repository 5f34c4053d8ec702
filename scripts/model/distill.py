"""What a model learns from: the scores of a cross-encoder, and the passages of other questions."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from sets import SEED

TEMPERATURE = 2.0
"""Of the teacher's scores, which lie between -11 and 11."""
VALIDATION = 300
CONTRAST = 0.5
"""How much finding a passage among those of the other questions counts."""


@dataclass(frozen=True)
class Example:
    """A question, some passages, and what the teacher says of each."""

    query: str
    documents: tuple[str, ...]
    scores: tuple[float, ...]


def read_examples(path: Path) -> tuple[list[Example], list[Example]]:
    """Examples to learn from, and those held out to validate."""
    entries = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    found = [Example(entry["query"], tuple(entry["documents"]), tuple(entry["scores"])) for entry in entries]
    random.Random(SEED).shuffle(found)
    return found[VALIDATION:], found[:VALIDATION]


def maxsim(queries: Any, query_mask: Any, documents: Any, document_mask: Any) -> Any:
    """The score of every document for every query, of shape (num_queries, num_documents).

    Vectors are padded: queries have shape (num_queries, query_length, dim), masks are true where there is a vector.
    """
    similar = queries.flatten(0, 1) @ documents.flatten(0, 1).T
    similar = similar.view(*queries.shape[:2], *documents.shape[:2])
    best = similar.masked_fill(~document_mask, -2.0).amax(-1)
    return (best * query_mask[..., None]).sum(1)


def losses(scores: Any, examples: list[Example], columns: dict[str, int]) -> Any:
    """Kullback-Leibler divergence from the teacher, and cross-entropy against passages of other questions."""
    divergence, contrast = [], []
    for row, example in zip(scores, examples, strict=True):
        own = torch.tensor([columns[doc_id] for doc_id in example.documents])
        given = torch.tensor(example.scores) / TEMPERATURE
        target, found = torch.log_softmax(given, 0), torch.log_softmax(row[own], 0)
        divergence.append((target.exp() * (target - found)).sum())
        others = torch.ones(len(row), dtype=torch.bool)
        others[own] = False
        best = row[own[int(given.argmax())]]
        contrast.append(torch.logsumexp(torch.cat([best[None], row[others]]), 0) - best)
    return torch.stack(divergence).mean(), torch.stack(contrast).mean()
