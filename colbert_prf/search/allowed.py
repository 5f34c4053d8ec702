"""Which documents of a collection a search may find."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from colbert_prf.index.collection import Collection
from colbert_prf.search.arguments import Predicate, checked_ids
from colbert_prf.search.budget import Execution
from colbert_prf.search.filters import Filter, filter_mask
from colbert_prf.search.grouping import expand_to_passages
from colbert_prf.search.scorer import Mask
from colbert_prf.storage.fields import Fields

__all__ = ["WithMetadata", "allowed_mask", "where_mask"]


class WithMetadata(Protocol):
    """What a filter reads: one generation of any kind of index."""

    @property
    def live(self) -> npt.NDArray[np.bool_]:
        """Whether the document at each position is live, of shape (num_positions,)."""

    @property
    def fields(self) -> list[Fields]:
        """The metadata as columns, one for each segment in the order of positions."""

    def metadata(self, position: int) -> dict[str, Any]:
        """Read the metadata of a document."""


def allowed_mask(
    collection: Collection, allowed: Iterable[str] | None, where: Filter | Predicate | None, execution: Execution
) -> Mask:
    """Whether each position may be found, of shape (num_positions,); None if all may.

    Parameters
    ----------
    collection
        The documents.
    allowed
        The ids of those that may be found, or of passages; None for all.
    where
        A filter of their metadata, or a function of it.
    execution
        Where the time goes.
    """
    if allowed is None and where is None:
        return None
    with execution.stage("filter"):
        if allowed is None:
            return where_mask(collection, where)
        ids = checked_ids("allowed", allowed)
        ids = ids if collection.passages is None else expand_to_passages(collection, ids)
        mask = np.zeros(collection.num_positions, dtype=np.bool_)
        mask[collection.positions(ids)] = True
        return where_mask(collection, where, mask)


def where_mask(
    documents: WithMetadata, where: Filter | Predicate | None, among: npt.NDArray[np.bool_] | None = None
) -> Mask:
    """Whether each position may be found, of shape (num_positions,); None if all may.

    Parameters
    ----------
    documents
        One generation of any kind of index.
    where
        A filter of their metadata, or a function of it.
    among
        The positions that may be found otherwise; all if left out.
    """
    if where is None and among is None:
        return None
    mask = documents.live if among is None else among & documents.live
    if isinstance(where, Filter):
        return mask & filter_mask(where, documents.fields)
    if where is None:
        return mask
    mask = mask.copy()
    for position in np.flatnonzero(mask).tolist():
        mask[position] = where(documents.metadata(position))
    return mask
