"""Documents found by any system, scored by ColBERT: from the index, or from their texts."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pandas as pd

from colbert_prf.baselines.rerank.candidates import Candidates
from colbert_prf.encoder import Encoder
from colbert_prf.errors import InputError
from colbert_prf.feedback import Feedback
from colbert_prf.pyterrier.component import Component
from colbert_prf.pyterrier.frames import check_results, encoded_queries, query_groups, rescored, with_queries
from colbert_prf.search.texts import rerank_texts
from colbert_prf.types import EncodedQuery, Hit, Ranking

if TYPE_CHECKING:
    from colbert_prf.pyterrier.artifact import ColbertIndex

__all__ = ["ColbertScorer", "ColbertTextScorer"]

Scores = npt.NDArray[np.float64]


class _Scorer(Component):
    """Scores the documents of each query; all columns are kept, ``score`` and ``rank`` are written."""

    feedback: Feedback | None

    def _transformed(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Score a frame that was checked; with feedback the columns of an encoded query hold the expanded one."""
        groups = query_groups(inp)
        queries = encoded_queries(inp.iloc[[int(rows[0]) for rows in groups]], self._open_encoder)
        scores, used = np.zeros(len(inp)), list[EncodedQuery | None]([None] * len(inp))
        for rows, query in zip(groups, queries, strict=True):
            scores[rows], searched = self._scored(query, inp.iloc[rows])
            for row in rows.tolist():
                used[row] = searched
        if self.feedback is not None:
            inp = with_queries(inp, [query for query in used if query is not None])
        return rescored(inp, groups, scores)

    def _open_encoder(self) -> Encoder:
        raise NotImplementedError

    def _scored(self, query: EncodedQuery, documents: pd.DataFrame) -> tuple[Scores, EncodedQuery]:
        """The scores of the documents of one query, and the query they were scored with."""
        raise NotImplementedError


class ColbertScorer(_Scorer):
    """MaxSim from the vectors of the index: only queries are encoded.

    Parameters
    ----------
    index
        That has the documents; one it does not have is an :class:`InputError` that names it.
    feedback
        Learn from the best documents by MaxSim and score all of them again.
    """

    def __init__(self, index: ColbertIndex, *, feedback: Feedback | None = None) -> None:
        self.index = index
        self.feedback = feedback

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Score documents by their ids."""
        check_results(inp)
        return self._transformed(inp)

    def _open_encoder(self) -> Encoder:
        return self.index.encoder

    def _scored(self, query: EncodedQuery, documents: pd.DataFrame) -> tuple[Scores, EncodedQuery]:
        searcher, doc_ids = self.index.searcher, documents["docno"].tolist()
        candidates = Candidates(searcher, doc_ids)
        scores = candidates.scores(query)
        if self.feedback is None:
            return scores, query
        order = np.argsort(-scores, kind="stable").tolist()
        first = Ranking(query, tuple(Hit(doc_ids[place], float(scores[place])) for place in order))
        expansion = self.feedback.expand(query, first, searcher.index, workers=searcher.workers)
        return candidates.scores(expansion.query), expansion.query


class ColbertTextScorer(_Scorer):
    """MaxSim of texts encoded on the spot: for documents that are in no index.

    Parameters
    ----------
    index
        Whose model encodes; it need not have the documents. None to give a model.
    model
        Instead of an index: what :meth:`Encoder.load` takes; the embedded model if both are left out.
    text_field
        The column that holds the texts.
    feedback
        As in :func:`rerank_texts`, but without feedback by default.
    """

    def __init__(
        self,
        index: ColbertIndex | None = None,
        *,
        model: str | None = None,
        text_field: str = "text",
        feedback: Feedback | None = None,
    ) -> None:
        if index is not None and model is not None:
            raise InputError("give an index, whose model is used, or a model, not both")
        self.index = index
        self.model = model
        self.text_field = text_field
        self.feedback = feedback

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Score documents by their texts."""
        check_results(inp, [self.text_field])
        return self._transformed(inp)

    def _open_encoder(self) -> Encoder:
        return self._encoder

    @cached_property
    def _encoder(self) -> Encoder:
        return self.index.encoder if self.index is not None else Encoder.load(self.model)

    def _scored(self, query: EncodedQuery, documents: pd.DataFrame) -> tuple[Scores, EncodedQuery]:
        # Numbers as ids, for a document may come twice.
        passages = ((str(place), text) for place, text in enumerate(documents[self.text_field]))
        ranking = rerank_texts(query, passages, encoder=self._encoder, feedback=self.feedback)
        scores = np.empty(len(documents))
        for hit in ranking:
            scores[int(hit.doc_id)] = hit.score
        return scores, ranking.encoded_query
