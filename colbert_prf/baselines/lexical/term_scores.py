"""The scores of BM25, for a whole index or for a part of a larger one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from colbert_prf.baselines.lexical.segment import Postings
from colbert_prf.baselines.lexical.snapshot import LexicalSnapshot

__all__ = ["BestDocuments", "CollectionTerms", "Formula", "Idf", "best_documents"]

Idf = Literal["robertson", "lucene"]


class BestDocuments(NamedTuple):
    """Positions of documents and their scores, best first; equal scores by position."""

    positions: npt.NDArray[np.int64]
    scores: npt.NDArray[np.float64]


class CollectionTerms(NamedTuple):
    """N, the average length, and in how many documents each term is, of the collection that a part belongs to."""

    num_documents: int
    average_length: float
    document_frequencies: Mapping[str, int]


@dataclass(frozen=True)
class Formula:
    """The parameters of BM25, as :class:`~colbert_prf.baselines.lexical.bm25.BM25` describes them."""

    k1: float
    b: float
    k3: float | None
    idf: Idf

    def parts(
        self,
        postings: Postings,
        lengths: npt.NDArray[np.int64],
        weight: float,
        count: int,
        found: int,
        average_length: float,
    ) -> npt.NDArray[np.float64]:
        """What a term that ``found`` of ``count`` documents have gives to each of those in its postings."""
        odds = (count - found + 0.5) / (found + 0.5)
        idf = np.log2(odds) if self.idf == "robertson" else np.log1p(odds)
        saturated = weight if self.k3 is None else (self.k3 + 1) * weight / (self.k3 + weight)
        relative = lengths[postings.positions] / average_length
        return np.asarray(
            saturated * idf * postings.frequencies / (postings.frequencies + self.k1 * (1 - self.b + self.b * relative))
        )


def best_documents(
    snapshot: LexicalSnapshot,
    terms: Mapping[str, float],
    k: int,
    formula: Formula,
    collection: CollectionTerms | None = None,
    *,
    mask: npt.NDArray[np.bool_] | None = None,
) -> BestDocuments:
    """Find the ``k`` best documents for weighted terms.

    Parameters
    ----------
    snapshot, terms, k, formula
        Where to look for what.
    collection
        Where the snapshot is a part of a larger one: the numbers of all of it.
    mask
        Whether each document may be found; None for all.
    """
    from colbert_prf.kernels.topk import best_sorted

    scores = np.zeros(snapshot.num_positions)
    matched = np.zeros(snapshot.num_positions, dtype=np.bool_)
    if collection is None:
        count, average_length = snapshot.num_documents, snapshot.average_length
    else:
        count, average_length = collection.num_documents, collection.average_length
    for term, weight in sorted(terms.items()):  # so that the order of the query changes no digit of a score
        postings = snapshot.postings(term)
        found = len(postings.positions) if collection is None else collection.document_frequencies[term]
        scores[postings.positions] += formula.parts(postings, snapshot.lengths, weight, count, found, average_length)
        matched[postings.positions] = True
    positions = np.flatnonzero(matched if mask is None else matched & mask)
    order = best_sorted(scores[positions], k)
    return BestDocuments(positions[order], scores[positions[order]])
