"""Which documents of a collection a search may find."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from colbert_prf.index.collection import Collection
from colbert_prf.search.arguments import Predicate, checked_ids
from colbert_prf.search.budget import Execution
from colbert_prf.search.filters import Filter, filter_mask
from colbert_prf.search.grouping import expand_to_passages
from colbert_prf.search.scorer import Mask

__all__ = ["allowed_mask"]


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
        mask = np.zeros(collection.num_positions, dtype=np.bool_)
        if allowed is None:
            mask[:] = True
        else:
            ids = checked_ids("allowed", allowed)
            ids = ids if collection.passages is None else expand_to_passages(collection, ids)
            mask[collection.positions(ids)] = True
        mask &= collection.live
        if isinstance(where, Filter):
            mask &= filter_mask(where, collection.fields)
        elif where is not None:
            for position in np.flatnonzero(mask).tolist():
                mask[position] = where(collection.metadata(position))
        return mask
