"""Vectors on paper: the two directions in which they differ most."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from colbert_prf.errors import InputError

__all__ = ["Projection", "fit_projection"]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Projection:
    """Principal component analysis: x ↦ axes·(x - mean).

    Parameters
    ----------
    mean
        Of the vectors it was fitted on, of shape (dim,).
    axes
        Orthonormal, of shape (2, dim); the largest component of each is positive, so that a figure is never mirrored.
    explained
        The share of the variance along each axis, of shape (2,).
    """

    mean: Floats
    axes: Floats
    explained: Floats

    def __call__(self, vectors: npt.NDArray[np.floating]) -> Floats:
        """Project vectors of shape (n, dim) to points of shape (n, 2)."""
        return np.asarray((vectors - self.mean) @ self.axes.T, dtype=np.float64)


def fit_projection(vectors: npt.NDArray[np.floating]) -> Projection:
    """Fit a projection.

    Parameters
    ----------
    vectors
        Of shape (n, dim), with dim at least 2.

    Examples
    --------
    >>> projection = fit_projection(np.array([[0.0, 0, 5], [4, 0, 5], [2, 1, 5], [2, -1, 5]]))
    >>> projection(np.array([[3.0, 0.5, 5]])).round(6).tolist()
    [[1.0, 0.5]]
    >>> projection.explained.round(6).tolist()
    [0.8, 0.2]
    """
    if vectors.ndim != 2 or vectors.shape[1] < 2 or not len(vectors):
        raise InputError(f"a projection needs vectors of two components or more, found shape {vectors.shape}")
    mean = vectors.mean(axis=0, dtype=np.float64)
    # Rows of zeros change nothing and give two axes even to a single vector.
    centred = np.concatenate([vectors - mean, np.zeros((2, vectors.shape[1]))])
    _, lengths, rows = np.linalg.svd(centred, full_matrices=False)
    axes = rows[:2]
    largest = np.take_along_axis(axes, np.abs(axes).argmax(axis=1)[:, np.newaxis], axis=1)
    variances = np.square(lengths)
    return Projection(mean, axes * np.where(largest < 0, -1.0, 1.0), variances[:2] / max(variances.sum(), 1e-12))
