"""Several rows as one."""

from __future__ import annotations

from colbert_prf.baselines.fusion import Fusion, FusionMethod
from colbert_prf.experiments.context import Context
from colbert_prf.experiments.registry import system
from colbert_prf.search.retriever import Retriever

__all__ = ["fusion"]


@system("fusion")
def fusion(
    context: Context,
    *,
    systems: list[Retriever],
    method: FusionMethod = "ranks",
    weights: list[float] | None = None,
    constant: float = 60.0,
    depth: int = 1000,
) -> Retriever:
    """Merge the rankings of other rows; see :class:`Fusion`."""
    return Fusion(systems, method=method, weights=weights, constant=constant, depth=depth)
