"""One vector per text, with or without feedback: the ANCE row."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from colbert_prf.experiments.context import Context, slug
from colbert_prf.experiments.digests import digest_of_encoder, digest_of_model
from colbert_prf.experiments.registry import system
from colbert_prf.retriever import Retriever
from colbert_prf.single_vector import (
    AverageFeedback,
    BiEncoder,
    MeanEncoder,
    RocchioFeedback,
    SingleVector,
    VectorEncoder,
    VectorFeedback,
    VectorIndex,
)

__all__ = ["single_vector"]


@system("single-vector", models=("model",))
def single_vector(
    context: Context,
    *,
    model: str | None = None,
    exact: bool = True,
    ef: int = 256,
    feedback: Literal["average", "rocchio"] | None = None,
    feedback_docs: int = 3,
    alpha: float = 0.4,
    beta: float = 0.6,
) -> Retriever:
    """Search with one vector per text.

    Parameters
    ----------
    context
        Of the collection.
    model
        A bi-encoder of sentence-transformers (``[hub]``); the mean of ColBERT's vectors, from the index, if left out.
    exact, ef
        Whether every vector is looked at, or a graph, and how widely.
    feedback, feedback_docs, alpha, beta
        How the query moves; α and β are Rocchio's.
    """
    method: VectorFeedback | None = None
    if feedback is not None:
        average = feedback == "average"
        rocchio = RocchioFeedback(feedback_docs=feedback_docs, alpha=alpha, beta=beta)
        method = AverageFeedback(feedback_docs=feedback_docs) if average else rocchio
    encoder: VectorEncoder = BiEncoder(model) if model else MeanEncoder(context.encoder)
    mean = f"mean.{context.bits}.{digest_of_encoder(context.model)[:8]}"
    path = context.path(f"{_folder_name(model) if model else mean}.vectors")
    if not context.is_built(path):
        context.note_building(path)
        if model:
            VectorIndex.create(path, context.documents(), encoder)
        else:
            VectorIndex.create_from_index(path, context.index(), name=encoder.name)
    return SingleVector(VectorIndex.open(path), encoder, feedback=method, exact=exact, ef=ef)


def _folder_name(model: str) -> str:
    """One model told from another that was in the same place."""
    return f"{slug(model)}.{digest_of_model(model)[:8]}" if Path(model).exists() else slug(model)
