"""The principal components of token vectors: a projection that keeps what an encoder knows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from colbert_prf.errors import InputError

if TYPE_CHECKING:
    from sentence_transformers.base.modules import Dense, Transformer

__all__ = ["linear_head", "principal_components", "rarity_weights", "token_ids", "token_vectors"]


def token_vectors(transformer: Transformer, texts: Iterable[str]) -> list[npt.NDArray[np.float32]]:
    """Encode one text at a time, so that the result does not depend on batches."""
    import torch

    rows: list[npt.NDArray[np.float32]] = []
    with torch.inference_mode():
        for text in texts:
            features: Any = transformer.preprocess([text], task="document")
            features = {key: _moved(value, transformer) for key, value in features.items()}
            rows.append(transformer(features)["token_embeddings"][0].float().cpu().numpy())
    return rows


def token_ids(transformer: Transformer, texts: Iterable[str]) -> list[npt.NDArray[np.int64]]:
    """The ids of the tokens that :func:`token_vectors` gives the vectors of."""
    found: list[Any] = [transformer.preprocess([text], task="document")["input_ids"][0] for text in texts]
    return [np.asarray(ids, dtype=np.int64) for ids in found]


def rarity_weights(ids: npt.NDArray[np.int64], exponent: float) -> npt.NDArray[np.float64]:
    """Weigh each token by its count to the power ``-exponent``: 0 counts occurrences, 1 counts different tokens.

    A ranking hangs on rare words, and the variance of vectors on frequent ones.

    Examples
    --------
    >>> rarity_weights(np.array([7, 7, 7, 7, 3]), 0.5).tolist()
    [0.5, 0.5, 0.5, 0.5, 1.0]
    """
    _, positions, counts = np.unique(ids, return_inverse=True, return_counts=True)
    return np.asarray(counts[positions].astype(np.float64) ** -exponent)


def principal_components(
    vectors: npt.NDArray[np.float32],
    *,
    dim: int,
    centred: bool,
    weights: npt.NDArray[np.float64] | None = None,
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64], float]:
    """The directions of largest variance (rows), the mean taken off first, and the share of variance they keep.

    Parameters
    ----------
    vectors
        Of shape (num_vectors, size).
    dim
        How many directions.
    centred
        Whether to take off the mean.
    weights
        How much each vector counts, in the mean too; alike if left out.

    Examples
    --------
    >>> points = np.array([[1, 0], [3, 0], [2, 0.5], [2, -0.5]], np.float32)
    >>> directions, mean, kept = principal_components(points, dim=1, centred=True)
    >>> directions.round(3).tolist(), mean.tolist(), round(kept, 3)
    ([[1.0, 0.0]], [2.0, 0.0], 0.8)
    """
    if vectors.shape[1] < dim:
        raise InputError(f"the base has vectors of {vectors.shape[1]} components, which cannot give {dim}; lower dim")
    if weights is None:
        weights = np.ones(len(vectors))
    mean = np.zeros(vectors.shape[1])
    if centred:
        mean = np.asarray(np.average(vectors, axis=0, weights=weights), dtype=np.float64)
    shifted = (vectors - mean) * np.sqrt(weights)[:, None]
    values, directions = np.linalg.eigh(shifted.T @ shifted)
    order = np.argsort(values)[::-1]
    components = directions[:, order[:dim]].T
    # The sign of an eigenvector is arbitrary: make its largest component positive.
    signs = np.sign(components[np.arange(dim), np.abs(components).argmax(axis=1)])
    return components * signs[:, None], mean, float(values[order[:dim]].sum() / values.sum())


def linear_head(projection: npt.NDArray[np.float64], mean: npt.NDArray[np.float64]) -> Dense:
    """Subtract the mean and project, as one linear layer over token vectors."""
    import torch
    from sentence_transformers.base.modules import Dense

    return Dense(
        in_features=projection.shape[1],
        out_features=len(projection),
        bias=True,
        activation_function=torch.nn.Identity(),
        init_weight=torch.tensor(projection, dtype=torch.float32),
        init_bias=torch.tensor(-projection @ mean, dtype=torch.float32),
        module_input_name="token_embeddings",
    )


def _moved(value: Any, transformer: Transformer) -> Any:
    device = next(transformer.parameters()).device
    return value.to(device) if hasattr(value, "to") else value
