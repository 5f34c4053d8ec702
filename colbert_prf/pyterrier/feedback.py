"""Documents found for queries in, expanded queries out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pyterrier as pt

from colbert_prf.feedback import Feedback
from colbert_prf.pyterrier.component import Component
from colbert_prf.pyterrier.frames import (
    Rows,
    check_queries,
    check_results,
    encoded_queries,
    query_groups,
    with_queries,
)
from colbert_prf.pyterrier.retrieve import ColbertRetriever
from colbert_prf.types import Hit, Ranking

if TYPE_CHECKING:
    from colbert_prf.pyterrier.artifact import ColbertIndex

__all__ = ["QueryExpander", "RetrievedExpander"]


class QueryExpander(Component):
    """Learn from the best documents of each query: ``encode >> retrieve % 3 >> expand >> retrieve``.

    The text of the query stays; the expanded query is in the columns of an encoded query, with its weights. Documents
    are taken in the order of ``rank``, or of falling ``score``, or as they come. A query without documents is not in
    the output, as with every rewriter of PyTerrier.

    Parameters
    ----------
    index
        That has the documents.
    feedback
        What to learn; its ``rerank`` means nothing here, where the next stage says what is scored.
    keep_documents
        Whether to keep the documents, for a scorer to follow (the ReRanker), instead of the queries alone.
    """

    def __init__(self, index: ColbertIndex, *, feedback: Feedback, keep_documents: bool = False) -> None:
        self.index = index
        self.feedback = feedback
        self.keep_documents = keep_documents

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Expand the queries."""
        check_results(inp)
        groups = query_groups(inp)
        firsts = inp.iloc[[int(rows[0]) for rows in groups]]
        queries = encoded_queries(firsts, lambda: self.index.encoder)
        expanded = []
        for rows, query in zip(groups, queries, strict=True):
            hits = tuple(Hit(doc_id, 0.0) for doc_id in inp["docno"].iloc[_best_first(inp, rows)])
            searcher = self.index.searcher
            found = self.feedback.expand(query, Ranking(query, hits), searcher.index, workers=searcher.workers)
            expanded.append(found.query)
        if self.keep_documents:
            order = np.concatenate([np.empty(0, np.int64), *groups])
            counts = [len(rows) for rows in groups]
            repeated = [query for query, count in zip(expanded, counts, strict=True) for _ in range(count)]
            return with_queries(inp.iloc[order], repeated).reset_index(drop=True)
        of_query = set(pt.model.query_columns(inp))
        kept = firsts[[name for name in inp.columns if name in of_query]]
        return with_queries(kept, expanded).reset_index(drop=True)

    def fuse_left(self, left: pt.Transformer) -> Component | None:
        """Take the search for the documents in, so that the search that follows can reuse it."""
        if self.keep_documents or not isinstance(left, ColbertRetriever) or left.feedback is not None:
            return None
        if (
            left.where is not None
            or left.group is not None
            or left.index != self.index
            or left.num_results < self.feedback.feedback_docs
        ):
            return None
        return RetrievedExpander(self.index, feedback=self.feedback, probes=left.probes, rescore=left.rescore)


class RetrievedExpander(Component):
    """Queries in, expanded queries out: a search for the documents to learn from, and what is learned.

    What ``compile()`` makes of a :class:`ColbertRetriever` before a :class:`QueryExpander`.

    Parameters
    ----------
    index
        What to search.
    feedback
        What to learn.
    probes, rescore
        As in :meth:`Searcher.search`.
    """

    def __init__(
        self, index: ColbertIndex, *, feedback: Feedback, probes: int | None = None, rescore: int | None = None
    ) -> None:
        self.index = index
        self.feedback = feedback
        self.probes = probes
        self.rescore = rescore

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Expand the queries."""
        check_queries(inp)
        queries = encoded_queries(inp, lambda: self.index.encoder)
        expanded = []
        for query in queries:
            searcher, depth = self.index.searcher, self.feedback.feedback_docs
            first = searcher.search(query, depth, probes=self.probes, rescore=self.rescore)
            expanded.append(self.feedback.expand(query, first, searcher.index, workers=searcher.workers).query)
        return with_queries(inp, expanded)


def _best_first(frame: pd.DataFrame, rows: Rows) -> Rows:
    """The rows of one query, from best to worst."""
    if "rank" in frame.columns:
        return rows[np.argsort(frame["rank"].to_numpy()[rows], kind="stable")]
    if "score" in frame.columns:
        return rows[np.argsort(-frame["score"].to_numpy()[rows], kind="stable")]
    return rows
