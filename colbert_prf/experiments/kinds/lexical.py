"""BM25 over terms: counted, weighed as DeepCT does, or with the questions of docT5query; with or without feedback."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any, Literal

from colbert_prf.baselines.lexical import (
    BM25,
    LexicalIndex,
    QueryGenerator,
    TermFeedback,
    TermRegression,
    TorchTermWeigher,
    expanded_documents,
    read_expansions,
    weighted_documents,
)
from colbert_prf.baselines.lexical.bm25 import Idf
from colbert_prf.baselines.lexical.methods import METHODS
from colbert_prf.errors import InputError
from colbert_prf.experiments.context import Context, slug
from colbert_prf.experiments.digests import digest_of_encoder
from colbert_prf.experiments.registry import system
from colbert_prf.progress import progress_bar
from colbert_prf.search.retriever import Retriever

__all__ = ["bm25"]

Method = Literal["rm3", "bo1", "kl"]


def _feedback_of(
    feedback: str | None = None, weights: str | None = None, questions: str | None = None, **given: Any
) -> TermFeedback | None:
    """The feedback method that parameters of a row describe; those of the search are passed over."""
    if weights is not None and questions is not None:
        raise InputError("weights make a DeepCT row, questions a docT5query row: give one of them")
    tuning = {name: given[name] for name in ("feedback_docs", "feedback_terms", "original") if name in given}
    if feedback is None:
        if tuning:
            raise InputError(f"there is no parameter {next(iter(tuning))!r} without feedback = 'rm3', 'bo1' or 'kl'")
        return None
    if "original" in tuning and feedback != "rm3":
        raise InputError(f"original is λ of rm3; {feedback} has none")
    return METHODS[feedback](**tuning)


@system("bm25", check=_feedback_of, models=("weights", "questions"))
def bm25(
    context: Context,
    *,
    k1: float = 1.2,
    b: float = 0.75,
    k3: float = 8.0,
    idf: Idf = "robertson",
    feedback: Method | None = None,
    feedback_docs: int | None = None,
    feedback_terms: int | None = None,
    original: float | None = None,
    weights: str | None = None,
    questions: str | None = None,
    num_queries: int = 5,
) -> Retriever:
    """BM25 over the terms of the documents.

    Parameters
    ----------
    context
        Of the collection.
    k1, b, k3, idf
        Of :class:`BM25`.
    feedback, feedback_docs, feedback_terms, original
        How the query is expanded.
    weights
        For DeepCT: the file of a :class:`TermRegression`, or a token classifier for ``[hub]``.
    questions
        For docT5query: a file of questions, or a T5-style checkpoint for ``[hub]``, which writes ``num_queries``.
    """
    tuning: dict[str, Any] = {"feedback_docs": feedback_docs, "feedback_terms": feedback_terms, "original": original}
    method = _feedback_of(feedback, **{name: value for name, value in tuning.items() if value is not None})
    return BM25(_index(context, weights, questions, num_queries), k1=k1, b=b, k3=k3, idf=idf, feedback=method)


def _index(context: Context, weights: str | None, questions: str | None, num_queries: int) -> LexicalIndex:
    """The lexical index of the documents, built once and found again later."""
    made_from = weights or questions
    path = context.path("lexical")
    if made_from is not None:
        # The folder tells one model or file from another of the same name.
        counted = f"{num_queries}" if questions else f"{context.bits} {digest_of_encoder(context.model)}"
        digest = hashlib.sha256(_content(made_from) + counted.encode()).hexdigest()[:8]
        path = context.path(f"{'deepct' if weights else 'doct5query'}.{slug(Path(made_from).name)}.{digest}.lexical")
    if context.is_built(path):
        return LexicalIndex.open(path)
    context.note_building(path)
    if weights is not None:
        return _weighted(context, weights, path)
    if questions is not None:
        expansions = (
            read_expansions(questions)
            if Path(questions).is_file()
            else QueryGenerator(questions, num_queries=num_queries)
        )
        with progress_bar("Writing questions") as advance:
            expanded = expanded_documents(context.documents(), expansions, progress=advance)
            return LexicalIndex.create(path, expanded)
    return LexicalIndex.create(path, context.documents())


def _weighted(context: Context, weights: str, path: Path) -> LexicalIndex:
    """A regression reads the vectors of the ColBERT index, which most experiments have; other models read texts."""
    with progress_bar("Weighing terms") as advance:
        if Path(weights).is_file():
            index = context.index()
            learned = TermRegression.load(weights, encoder=context.encoder)
            kept = index.snapshot.manifest.settings.texts
            documents = learned.indexed_documents(index, progress=advance)
            return LexicalIndex.create_from_terms(path, documents, texts=kept, progress=False)
        documents = weighted_documents(context.documents(), TorchTermWeigher(weights), progress=advance)
        return LexicalIndex.create_from_terms(path, documents, texts=True, progress=False)


def _content(name: str) -> bytes:
    """What a file holds, or the name of a model."""
    return Path(name).read_bytes() if Path(name).is_file() else name.encode()
