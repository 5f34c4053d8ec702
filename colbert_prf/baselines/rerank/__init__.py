"""Candidates of one system in the order of another."""

from colbert_prf.baselines.rerank.base import Reranker
from colbert_prf.baselines.rerank.bert_qe import BertQE
from colbert_prf.baselines.rerank.colbert import ColbertReranker, ColbertTextReranker
from colbert_prf.baselines.rerank.cross_encoder import CrossEncoderReranker
from colbert_prf.baselines.rerank.feedback import RerankedFeedback
from colbert_prf.baselines.rerank.pair_scorer import PairScorer

__all__ = [
    "BertQE",
    "ColbertReranker",
    "ColbertTextReranker",
    "CrossEncoderReranker",
    "PairScorer",
    "RerankedFeedback",
    "Reranker",
]
