"""The shapes of arrays that kernels take: how many dimensions, query columns and rows they handle together."""

from __future__ import annotations

__all__ = ["COLUMNS", "ROWS", "STEP", "check_dim", "padded"]

COLUMNS = 16
"""Query columns handled together; query arrays are padded to a multiple of it."""
ROWS = 4
"""Document vectors handled together by a tile; buffers have ``ROWS - 1`` spare rows, whose content does not matter."""
STEP = 16
"""The dimension of vectors is a multiple of it; those of a model that has others are filled up with zeros."""


def check_dim(dim: int) -> None:
    """Refuse vectors that are not filled up to whole steps: a kernel would read past their end."""
    if dim % STEP:
        raise ValueError(f"the dimension of the vectors must be a multiple of {STEP}, found {dim}")


def padded(num_queries: int) -> int:
    """Width of the arrays of a query: its number of vectors, up to a multiple of 16."""
    return max(1, -(-num_queries // COLUMNS)) * COLUMNS
