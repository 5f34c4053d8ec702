"""What PyTerrier has with Java or PyTorch only: BM25 with feedback, BERT-QE, cross-encoder."""

from __future__ import annotations

from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pyterrier as pt

from colbert_prf.baselines.lexical import BM25, TermFeedback
from colbert_prf.baselines.lexical.bm25 import Idf
from colbert_prf.baselines.rerank import BertQE, PairScorer
from colbert_prf.errors import InputError
from colbert_prf.pyterrier.component import Component
from colbert_prf.pyterrier.frames import answered, query_groups, rescored
from colbert_prf.search.arguments import Where
from colbert_prf.search.retriever import RUN_DEPTH
from colbert_prf.types import Hit, Ranking

if TYPE_CHECKING:
    from colbert_prf.pyterrier.artifact import ColbertIndex

__all__ = ["BertQEScorer", "CrossEncoderScorer", "LexicalRetriever"]


class LexicalRetriever(Component):
    """BM25 over the texts the index keeps, with or without RM3, Bo1 or KL.

    Parameters
    ----------
    index
        That keeps texts; their terms are counted on first use and kept in its folder.
    num_results
        Documents for each query; fewer share a term with some.
    k1, b, k3, idf, feedback, where
        As in :class:`BM25`.
    """

    def __init__(
        self,
        index: ColbertIndex,
        *,
        num_results: int = RUN_DEPTH,
        k1: float = 1.2,
        b: float = 0.75,
        k3: float | None = 8.0,
        idf: Idf = "robertson",
        feedback: TermFeedback | None = None,
        where: Where | None = None,
    ) -> None:
        if num_results < 1:
            raise InputError(f"num_results must be at least 1, found {num_results}")
        self.index = index
        self.num_results = num_results
        self.k1 = k1
        self.b = b
        self.k3 = k3
        self.idf = idf
        self.feedback = feedback
        self.where = where

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Find documents for queries."""
        pt.validate.query_frame(inp, extra_columns=["query"])
        if not len(inp):
            return answered(inp, [])
        tuning = {name: value for name, value in self.parameters().items() if name not in ("index", "num_results")}
        return answered(inp, list(BM25(self.index.lexical, **tuning).search_many(inp["query"], self.num_results)))

    def fuse_rank_cutoff(self, k: int) -> Component | None:
        """Find only as many documents as are wanted."""
        return self.changed(num_results=k) if 1 <= k < self.num_results else self if k >= self.num_results else None


class BertQEScorer(Component):
    """BERT-QE with ColBERT as the scorer, over documents found by any system.

    Parameters
    ----------
    index
        That has the documents and keeps their texts.
    alpha, beta, feedback_docs, chunk_words, chunks
        As in :class:`BertQE`.
    """

    def __init__(
        self,
        index: ColbertIndex,
        *,
        alpha: float = 0.4,
        beta: float = 0.9,
        feedback_docs: int = 10,
        chunk_words: int = 10,
        chunks: int = 10,
    ) -> None:
        self.index = index
        self.alpha = alpha
        self.beta = beta
        self.feedback_docs = feedback_docs
        self.chunk_words = chunk_words
        self.chunks = chunks

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Score documents; the ``score`` that came counts 1 - β."""
        pt.validate.result_frame(inp, extra_columns=["query", "score"])
        groups, scores = query_groups(inp), np.zeros(len(inp))
        for rows in groups:
            query = inp["query"].iloc[int(rows[0])]
            # A document that comes twice is scored once, with the score of its last row.
            came = dict(zip(inp["docno"].iloc[rows], inp["score"].iloc[rows].astype(float), strict=True))
            ranking = self._system.rerank(query, Ranking(query, self._hits(came)))
            found = {hit.doc_id: hit.score for hit in ranking}
            scores[rows] = [found[doc_id] for doc_id in inp["docno"].iloc[rows]]
        return rescored(inp, groups, scores)

    def _hits(self, came: dict[str, float]) -> tuple[Hit, ...]:
        index = self.index.searcher.index
        positions = index.positions(list(came)).tolist()
        places = zip(came.items(), positions, strict=True)
        return tuple(Hit(doc_id, score, partial(index.text, place)) for (doc_id, score), place in places)

    @cached_property
    def _system(self) -> BertQE:
        tuning = {name: value for name, value in self.parameters().items() if name != "index"}
        return BertQE(self.index.searcher, self.index.searcher, **tuning)


class CrossEncoderScorer(Component):
    """A cross-encoder over documents found by any system: ``pt.text.get_text(index) >> CrossEncoderScorer(model)``.

    Parameters
    ----------
    model
        What :meth:`PairScorer.load` takes: an exported folder, or with the extra ``[hub]`` a checkpoint.
    text_field
        The column that holds the texts.
    """

    def __init__(self, model: str, *, text_field: str = "text") -> None:
        self.model = model
        self.text_field = text_field

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Score documents by their texts."""
        pt.validate.result_frame(inp, extra_columns=["query", self.text_field])
        groups, scores = query_groups(inp), np.zeros(len(inp))
        for rows in groups:
            texts = inp[self.text_field].iloc[rows].tolist()
            scores[rows] = self._scorer.scores(inp["query"].iloc[int(rows[0])], texts)
        return rescored(inp, groups, scores)

    @cached_property
    def _scorer(self) -> PairScorer:
        return PairScorer.load(self.model)
