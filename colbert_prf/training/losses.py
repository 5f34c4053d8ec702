"""What training makes small: the paper's pairwise softmax, in-batch negatives, a teacher's distribution."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from colbert_prf.training.settings import TrainingSettings

if TYPE_CHECKING:
    import torch
    from sentence_transformers import MultiVectorEncoder

__all__ = ["colbert_loss", "cross_encoder_loss", "softmax_cross_entropy"]


def softmax_cross_entropy(scores: torch.Tensor) -> torch.Tensor:
    r"""The loss of rows whose first score should be the largest: the mean of ``-ln softmax(row)[0]``.

    With one negative this is ColBERT's pairwise softmax cross-entropy, ``ln(1 + exp(s_negative - s_positive))``
    (Khattab and Zaharia, SIGIR 2020).

    Parameters
    ----------
    scores
        Of shape (num_examples, 1 + num_negatives), the positive first.
    """
    import torch

    target = torch.zeros(len(scores), dtype=torch.long, device=scores.device)
    return torch.nn.functional.cross_entropy(scores, target)


def colbert_loss(model: MultiVectorEncoder, settings: TrainingSettings) -> torch.nn.Module:
    """The loss of a ColBERT model over columns query, positive, negatives."""
    from sentence_transformers.multi_vector_encoder.losses import (
        MultiVectorDistillKLDivLoss,
        MultiVectorMultipleNegativesRankingLoss,
    )

    if settings.loss == "in-batch":
        return MultiVectorMultipleNegativesRankingLoss(model)
    if settings.loss == "distill":
        return MultiVectorDistillKLDivLoss(model, temperature=settings.temperature)
    return _pairwise_loss(model)


def cross_encoder_loss(model: Any, settings: TrainingSettings) -> torch.nn.Module:
    """The loss of a cross-encoder over the same columns: towards the positive, or a teacher's distribution."""
    import torch
    from sentence_transformers.util import batch_to_device

    class SoftmaxLoss(torch.nn.Module):  # type: ignore[misc]  # untyped without the extra
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, columns: Any, labels: Any = None, **options: Any) -> torch.Tensor:
            query, *documents = columns
            pairs = [(q, d) for row in zip(query, *documents, strict=True) for q, d in _pairs(row)]
            features = batch_to_device(self.model.preprocess(pairs), self.model.device)
            scores = self.model(features)["scores"].view(len(query), len(documents))
            if settings.loss != "distill":
                return softmax_cross_entropy(scores)
            wanted = torch.stack(list(labels)).to(scores) / settings.temperature
            return torch.nn.functional.cross_entropy(scores / settings.temperature, wanted.softmax(dim=1))

    return SoftmaxLoss()


def _pairs(row: tuple[str, ...]) -> list[tuple[str, str]]:
    query, *documents = row
    return [(query, document) for document in documents]


def _pairwise_loss(model: MultiVectorEncoder) -> torch.nn.Module:
    import torch
    from sentence_transformers.base.losses.merged_forward import embed_columns_padded
    from sentence_transformers.multi_vector_encoder.scoring import colbert_kd_scores
    from sentence_transformers.util import stack_padded_token_embeddings

    class PairwiseSoftmaxLoss(torch.nn.Module):  # type: ignore[misc]  # untyped without the extra
        """MaxSim of each query with its own passages only, through :func:`softmax_cross_entropy`."""

        def __init__(self, model: MultiVectorEncoder) -> None:
            super().__init__()
            self.model = model

        def forward(self, columns: Any, labels: torch.Tensor | None = None) -> torch.Tensor:
            query, *documents = [dict(column) for column in columns]
            encoded = self.model(query, task="query")
            vectors, mask = stack_padded_token_embeddings(
                *embed_columns_padded(self.model, documents, None, task_default="document")
            )
            scores = colbert_kd_scores(
                encoded["token_embeddings"],
                vectors,
                queries_mask=encoded["attention_mask"].bool(),
                documents_mask=mask,
            )
            return softmax_cross_entropy(scores)

    return PairwiseSoftmaxLoss(model)
