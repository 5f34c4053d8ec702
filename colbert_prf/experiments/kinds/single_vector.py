"""One vector per text, with or without feedback: the ANCE row."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from colbert_prf.baselines.single_vector import (
    AverageFeedback,
    MeanEncoder,
    RocchioFeedback,
    SingleVector,
    VectorEncoder,
    VectorFeedback,
    VectorIndex,
)
from colbert_prf.baselines.single_vector.encoders import Pooling
from colbert_prf.baselines.single_vector.onnx_encoder import OnnxVectorEncoder
from colbert_prf.errors import InputError
from colbert_prf.experiments.context import Context, slug
from colbert_prf.experiments.digests import digest_of_encoder, digest_of_model
from colbert_prf.experiments.registry import system
from colbert_prf.search.retriever import Retriever

__all__ = ["single_vector"]


NETWORK_SETTINGS = ("pooling", "query_prefix", "document_prefix", "normalise", "max_length")


def _check(model: str | None = None, **given: Any) -> None:
    misplaced = [name for name in NETWORK_SETTINGS if name in given]
    if model is None and misplaced:
        raise InputError(f"{', '.join(misplaced)}: of an ONNX network, and there is no model; name its folder as model")


@system("single-vector", check=_check, models=("model",))
def single_vector(
    context: Context,
    *,
    model: str | None = None,
    pooling: Pooling | None = None,
    query_prefix: str | None = None,
    document_prefix: str | None = None,
    normalise: bool | None = None,
    max_length: int | None = None,
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
        What :meth:`VectorEncoder.load` opens: a folder with an ONNX network, or a bi-encoder of sentence-transformers
        (``[hub]``); the mean of ColBERT's vectors, from the index, if left out.
    pooling, query_prefix, document_prefix, normalise, max_length
        Of an ONNX network, where its folder does not say.
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
    if model:
        encoder = VectorEncoder.load(
            model,
            pooling=pooling,
            query_prefix=query_prefix,
            document_prefix=document_prefix,
            normalise=normalise,
            max_length=max_length,
        )
        name = _folder_name(model, encoder)
    else:
        encoder = MeanEncoder(context.encoder)
        name = f"mean.{context.bits}.{digest_of_encoder(context.model)[:8]}"
    path = context.path(f"{name}.vectors")
    if not context.is_built(path):
        context.note_building(path)
        if model:
            VectorIndex.create(path, context.documents(), encoder=encoder)
        else:
            VectorIndex.create_from_index(path, context.index(), name=encoder.name)
    return SingleVector(VectorIndex.open(path), encoder, feedback=method, exact=exact, ef=ef)


def _folder_name(model: str, encoder: VectorEncoder) -> str:
    """One model told from another that was in the same place, or that encodes documents in another way."""
    if isinstance(encoder, OnnxVectorEncoder):
        return f"{slug(model)}.{encoder.fingerprint[:8]}"
    return f"{slug(model)}.{digest_of_model(model)[:8]}" if Path(model).exists() else slug(model)
