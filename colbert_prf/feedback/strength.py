"""How much the vectors that feedback adds count: ``weight``, relative to the query, or ``beta``, the β of the paper."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from colbert_prf.errors import InputError
from colbert_prf.types import Weights

__all__ = ["DEFAULT", "DEFAULT_AS_PUBLISHED", "DEFAULT_OF_CENTROIDS", "Strength"]

LARGEST_WEIGHT = float(np.finfo(np.float32).max)
"""Of a vector of a query."""


class Strength(NamedTuple):
    """The parameter in force and its value.

    With ``weight`` all added vectors together weigh so many times the query, w_i = weight · Σw_q · σ_i / Σσ; with
    ``beta`` a vector weighs w_i = β·σ_i.

    Examples
    --------
    A query of two vectors of weight 1, and two vectors to add, with σ = 3 and σ = 1:

    >>> query, sigmas = np.ones(2, np.float32), np.array([3.0, 1.0])
    >>> Strength("weight", 0.5).weights(query, sigmas).tolist()
    [0.75, 0.25]
    >>> Strength("beta", 0.5).weights(query, sigmas).tolist()
    [1.5, 0.5]
    """

    name: Literal["weight", "beta"]
    value: float

    @property
    def is_relative(self) -> bool:
        """Whether the weight of the query counts."""
        return self.name == "weight"

    def weights(self, query: Weights, sigmas: npt.NDArray[np.float64]) -> Weights:
        """The weights of added vectors with these σ, finite and not negative as they are."""
        values: list[float] = sigmas.tolist()
        total = sum(values)
        unit = sum(query.tolist()) / total if self.is_relative and total > 0 else 1.0
        if not self.value * unit * max(values, default=0.0) < LARGEST_WEIGHT:
            raise InputError(
                f"with {self.name}={self.value} the vectors added weigh more than a float32 holds; lower it"
            )
        return (self.value * unit * sigmas).astype(np.float32)


DEFAULT = Strength("weight", 0.15)
"""Of :class:`~colbert_prf.ColbertPRF` with neither ``weight`` nor ``beta``."""
DEFAULT_AS_PUBLISHED = Strength("beta", 0.1)
"""The same with ``compat="paper"``."""
DEFAULT_OF_CENTROIDS = Strength("weight", 0.1)
"""Of :class:`~colbert_prf.CentroidPRF`."""
