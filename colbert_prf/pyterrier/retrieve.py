"""Queries to encoded queries, and queries to documents."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd
import pyterrier as pt

from colbert_prf.errors import InputError
from colbert_prf.feedback import Feedback
from colbert_prf.pyterrier.component import Component
from colbert_prf.pyterrier.frames import answered, check_queries, encoded_queries, with_queries
from colbert_prf.search.grouping import Group
from colbert_prf.search.retriever import RUN_DEPTH
from colbert_prf.search.searcher import Where
from colbert_prf.types import Hits, Ranking

if TYPE_CHECKING:
    from colbert_prf.pyterrier.artifact import ColbertIndex

__all__ = ["ColbertRetriever", "ColbertSetRetriever", "QueryEncoder"]


class QueryEncoder(Component):
    """Encode queries: ``query_toks``, ``query_embs`` and ``query_weights`` are added.

    Parameters
    ----------
    index
        Whose model encodes.
    """

    def __init__(self, index: ColbertIndex) -> None:
        self.index = index

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Encode the column ``query`` again, of queries or of documents found for queries."""
        pt.validate.columns(inp, includes=["qid", "query"])
        texts = inp[["qid", "query"]]
        return with_queries(inp, encoded_queries(texts, lambda: self.index.encoder))


class ColbertRetriever(Component):
    """ColBERT over its index, with or without feedback.

    Each row of queries is answered on its own, so that an id may come twice. The columns that came are kept; with
    feedback those of the encoded query are added, and hold the expanded query.

    Parameters
    ----------
    index
        What to search.
    num_results
        Documents for each query. A rank cut-off that follows is pushed in here by ``compile()``; the engine then tries
        as hard as that many results need, unless ``rescore`` says otherwise.
    probes, rescore
        As in :meth:`Searcher.search`.
    feedback
        Learn from what was found and search again.
    where, group
        A filter of the documents' metadata, and whether documents are ranked by their best passage, as in
        :meth:`Searcher.search`.
    """

    def __init__(
        self,
        index: ColbertIndex,
        *,
        num_results: int = RUN_DEPTH,
        probes: int | None = None,
        rescore: int | None = None,
        feedback: Feedback | None = None,
        where: Where | None = None,
        group: Group | None = None,
    ) -> None:
        if num_results < 1:
            raise InputError(f"num_results must be at least 1, found {num_results}")
        self.index = index
        self.num_results = num_results
        self.probes = probes
        self.rescore = rescore
        self.feedback = feedback
        self.where = where
        self.group = group

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Find documents for queries."""
        check_queries(inp)
        rankings = [
            self.index.searcher.search(
                query,
                self.num_results,
                probes=self.probes,
                rescore=self.rescore,
                feedback=self.feedback,
                where=self.where,
                group=self.group,
            )
            for query in encoded_queries(inp, lambda: self.index.encoder)
        ]
        if self.feedback is not None:
            inp = with_queries(inp, [ranking.encoded_query for ranking in rankings])
        return answered(inp, rankings)

    def fuse_rank_cutoff(self, k: int) -> Component | None:
        """Find only as many documents as are wanted."""
        return self.changed(num_results=k) if 1 <= k < self.num_results else self if k >= self.num_results else None

    def fuse_left(self, left: pt.Transformer) -> Component | None:
        """Search once where the queries were expanded from a search of the same index: the second pass reuses it."""
        from colbert_prf.pyterrier.feedback import RetrievedExpander

        if not isinstance(left, RetrievedExpander) or self.feedback is not None or left.feedback.rerank:
            return None
        if self.where is not None or self.group is not None:  # the search of the left was without
            return None
        same = (left.index, left.probes, left.rescore) == (self.index, self.probes, self.rescore)
        return self.changed(feedback=left.feedback) if same else None


class ColbertSetRetriever(Component):
    """The documents that look best by their centroids alone, as a set: without scores, in the order of their ids.

    ``index.set_retrieve(n) >> index.scorer()`` is ``index.end_to_end(n, rescore=n)``.

    Parameters
    ----------
    index
        What to search.
    num_results
        Documents for each query; None for every candidate, with the preset ``paper`` those of the paper's first stage.
    probes
        As in :meth:`Searcher.search`.
    """

    def __init__(self, index: ColbertIndex, *, num_results: int | None = 1000, probes: int | None = None) -> None:
        if num_results is not None and num_results < 1:
            raise InputError(f"num_results must be at least 1, found {num_results}")
        self.index = index
        self.num_results = num_results
        self.probes = probes

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Find candidates for queries."""
        check_queries(inp)
        queries = encoded_queries(inp, lambda: self.index.encoder)
        if not queries:
            return answered(inp, [], scores=False)
        searcher = self.index.searcher
        count = self.num_results or searcher.index.num_documents
        # Exactly as many scored as returned: what is found is what the centroids chose.
        rescore = None if searcher.preset == "paper" else count
        found = [searcher.search(query, count, probes=self.probes, rescore=rescore) for query in queries]
        return answered(inp, [_as_set(ranking) for ranking in found], scores=False)


def _as_set(ranking: Ranking) -> Ranking:
    doc_ids = sorted(ranking.doc_ids)
    return Ranking(ranking.query, Hits(doc_ids, [0.0] * len(doc_ids)))
