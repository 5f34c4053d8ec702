"""A shard of a lexical index: what it answers about its terms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from colbert_prf.baselines.lexical.snapshot import LexicalSnapshot
from colbert_prf.baselines.lexical.term_scores import BestDocuments, CollectionTerms, Formula, best_documents

__all__ = ["OpenLexicalShard"]


class OpenLexicalShard:
    """One generation of some segments of a lexical index; positions count from 0 in the shard.

    Parameters
    ----------
    snapshot
        The generation, with these segments alone.
    """

    def __init__(self, snapshot: LexicalSnapshot) -> None:
        self._snapshot = snapshot

    def document_frequencies(self, terms: Sequence[str]) -> npt.NDArray[np.int64]:
        """In how many live documents of the shard each term is."""
        return np.array([len(self._snapshot.postings(term).positions) for term in terms], np.int64)

    def best_documents(
        self,
        terms: Mapping[str, float],
        k: int,
        formula: Formula,
        collection: CollectionTerms,
        mask: npt.NDArray[np.bool_] | None,
    ) -> BestDocuments:
        """The best documents of the shard, by ascending positions."""
        best = best_documents(self._snapshot, terms, k, formula, collection, mask=mask)
        order = np.argsort(best.positions)
        return BestDocuments(best.positions[order], best.scores[order])
