"""Rows that order another row's candidates anew: ColBERT, with or without feedback, BERT-QE, a cross-encoder."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from colbert_prf.baselines.rerank import BertQE, ColbertReranker, ColbertTextReranker, CrossEncoderReranker, PairScorer
from colbert_prf.experiments.context import Context
from colbert_prf.experiments.kinds.colbert import feedback_of
from colbert_prf.experiments.registry import system
from colbert_prf.search.retriever import DEFAULT_K, Retriever
from colbert_prf.types import Hits, Ranking

__all__ = ["bert_qe", "colbert_reranker", "colbert_text_reranker", "cross_encoder"]


class WithTexts(Retriever):
    """Another row's answers, with the texts of the corpus where its index keeps none.

    Parameters
    ----------
    first
        The other row.
    context
        Whose corpus has the texts; it is read when a text is missing.
    """

    def __init__(self, first: Retriever, context: Context) -> None:
        self.first = first
        self.context = context

    def search(self, query: str, k: int = DEFAULT_K) -> Ranking:
        """Find the ``k`` best documents."""
        ranking = self.first.search(query, k)
        if not len(ranking) or ranking.hits[0].text is not None:
            return ranking
        doc_ids, texts = ranking.doc_ids, self.context.texts
        return replace(ranking, hits=Hits(doc_ids, ranking.scores, lambda rank: texts.get(doc_ids[rank])))


def _check(first: str, depth: int | None = None, feedback: str | None = None, **tuning: Any) -> None:
    feedback_of(feedback, **tuning)


@system("colbert-reranker", check=_check, models=("model",))
def colbert_reranker(
    context: Context,
    *,
    first: Retriever,
    depth: int | None = None,
    feedback: str | None = None,
    bits: int | None = None,
    model: str | None = None,
    **tuning: Any,
) -> Retriever:
    """ColBERT over the candidates of another row, from the index; ``tuning`` has the fields of the feedback method."""
    searcher = context.searcher(bits, model=model)
    return ColbertReranker(first, searcher, feedback=feedback_of(feedback, **tuning), depth=depth)


@system("colbert-text-reranker")
def colbert_text_reranker(context: Context, *, first: Retriever, depth: int | None = None) -> Retriever:
    """ColBERT over the candidates of another row, from their texts as that row has them, encoded on the spot."""
    return ColbertTextReranker(WithTexts(first, context), encoder=context.encoder, depth=depth)


@system("bert-qe", models=("model",))
def bert_qe(
    context: Context,
    *,
    first: Retriever,
    alpha: float = 0.4,
    beta: float = 0.9,
    feedback_docs: int = 10,
    chunk_words: int = 10,
    chunks: int = 10,
    depth: int | None = None,
    bits: int | None = None,
    model: str | None = None,
) -> Retriever:
    """BERT-QE over the candidates of another row, with ColBERT as the scorer."""
    return BertQE(
        WithTexts(first, context),
        context.searcher(bits, model=model),
        alpha=alpha,
        beta=beta,
        feedback_docs=feedback_docs,
        chunk_words=chunk_words,
        chunks=chunks,
        depth=depth,
    )


@system("cross-encoder", models=("model",))
def cross_encoder(
    context: Context, *, first: Retriever, model: str, depth: int | None = None, max_length: int | None = None
) -> Retriever:
    """A cross-encoder over the candidates of another row; ``model`` is what :meth:`PairScorer.load` opens."""
    scorer = PairScorer.load(model, max_length=max_length)
    return CrossEncoderReranker(WithTexts(first, context), scorer, depth=depth)
