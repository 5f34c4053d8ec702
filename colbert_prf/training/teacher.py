"""Scores of a stronger model, for another to learn from."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from colbert_prf.encoder import Encoder
from colbert_prf.encoder.checkpoint import no_progress_bar, quiet_logger
from colbert_prf.errors import MissingExtraError
from colbert_prf.kernels.maxsim import maxsim
from colbert_prf.training.examples import Example

__all__ = ["Teacher", "colbert_teacher", "cross_encoder_teacher", "open_teacher", "score_examples"]

Teacher = Callable[[Sequence[Example]], list[tuple[float, ...]]]
"""Examples to the scores of their passages."""

EXAMPLES_AT_ONCE = 64


def open_teacher(model: str | None, *, device: str | None = None) -> Teacher:
    """Open what is to score.

    Parameters
    ----------
    model
        A ColBERT model, as :meth:`Encoder.load` opens it, the embedded one if None; or a cross-encoder: a folder of
        :func:`~colbert_prf.training.train_cross_encoder` or a checkpoint with one score as its output.
    device
        Of a cross-encoder; the best there is if left out.
    """
    if model is not None and (folder := _cross_encoder_folder(Path(model))):
        return cross_encoder_teacher(folder, device=device)
    return colbert_teacher(Encoder.load(model))


def score_examples(examples: Iterable[Example], teacher: Teacher) -> Iterator[Example]:
    """Give each passage of each example its teacher's score, a few examples at a time."""
    remaining = iter(examples)
    while some := list(islice(remaining, EXAMPLES_AT_ONCE)):
        for example, scores in zip(some, teacher(some), strict=True):
            yield replace(example, scores=scores)


def colbert_teacher(encoder: Encoder) -> Teacher:
    """MaxSim over the vectors of an encoder; a passage that stands in several examples is encoded once."""

    def score(examples: Sequence[Example]) -> list[tuple[float, ...]]:
        texts = list(dict.fromkeys(document for example in examples for document in example.documents))
        vectors = {text: encoded.vectors for text, encoded in zip(texts, encoder.encode_documents(texts), strict=True)}
        scores = []
        for example, query in zip(examples, encoder.encode_queries([e.query for e in examples]), strict=True):
            rows = [vectors[document] for document in example.documents]
            offsets = np.cumsum([0, *map(len, rows)])
            given = maxsim(query.vectors, query.weights, np.concatenate(rows), offsets)
            scores.append(tuple(float(value) for value in given))
        return scores

    return score


def cross_encoder_teacher(folder: str | Path, *, device: str | None = None) -> Teacher:
    """The scores of a cross-encoder, as they are before any squashing into 0 to 1."""
    try:
        import torch
        from sentence_transformers import CrossEncoder
    except ImportError as error:
        raise MissingExtraError("A cross-encoder as a teacher", extra="hub") from error
    with quiet_logger("transformers"), no_progress_bar():
        model: Any = CrossEncoder(str(folder), device=device)

    def score(examples: Sequence[Example]) -> list[tuple[float, ...]]:
        pairs = [(example.query, document) for example in examples for document in example.documents]
        given = iter(model.predict(pairs, activation_fn=torch.nn.Identity(), show_progress_bar=False).tolist())
        return [tuple(float(next(given)) for _ in example.documents) for example in examples]

    return score


def _cross_encoder_folder(path: Path) -> Path | None:
    """The folder with a cross-encoder's weights, if it is one."""
    for folder in (path, path / "checkpoint"):
        config = folder / "config.json"
        if config.is_file():
            architectures = json.loads(config.read_text(encoding="utf-8")).get("architectures") or []
            if any(name.endswith("ForSequenceClassification") for name in architectures):
                return folder
    return None
