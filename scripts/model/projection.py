"""The last layer of a model before it is trained: principal components of hidden states."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from colbert_prf.training.projection import principal_components, rarity_weights


def pca_head(states: Any, dim: int, *, rarity: float = 0.5, sample: int = 300_000) -> NDArray[np.float32]:
    """The directions of largest second moment, not centred, rare tokens weighing more; of shape (dim, size)."""
    step = max(1, len(states.vectors) // sample)
    vectors = np.asarray(states.vectors[::step], dtype=np.float32)
    weights = rarity_weights(np.asarray(states.token_ids[::step], dtype=np.int64), rarity)
    directions, _, _ = principal_components(vectors, dim=dim, centred=False, weights=weights)
    return directions.astype(np.float32)


def project(states: NDArray[Any], projection: NDArray[np.float32]) -> NDArray[np.float32]:
    """Unit vectors of states, a part at a time."""
    vectors = np.empty((len(states), len(projection)), dtype=np.float32)
    for begin in range(0, len(states), 100_000):
        part = np.asarray(states[begin : begin + 100_000], dtype=np.float32) @ projection.T
        vectors[begin : begin + 100_000] = part / np.linalg.norm(part, axis=1, keepdims=True)
    return vectors
