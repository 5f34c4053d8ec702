"""Retrieval by terms: BM25 over a lexical index on disk, expansion of queries, weights and questions for documents."""

from colbert_prf.baselines.lexical.analysis import Analyzer
from colbert_prf.baselines.lexical.bm25 import BM25
from colbert_prf.baselines.lexical.divergence import KL, Bo1
from colbert_prf.baselines.lexical.doc2query import QueryGenerator, expanded_documents, read_expansions
from colbert_prf.baselines.lexical.feedback import TermFeedback
from colbert_prf.baselines.lexical.index import LexicalIndex
from colbert_prf.baselines.lexical.rm3 import RM3
from colbert_prf.baselines.lexical.term_regression import TermRegression, TorchTermWeigher
from colbert_prf.baselines.lexical.term_weights import (
    TermWeigher,
    query_term_recall,
    scaled_frequencies,
    weighted_documents,
)

__all__ = [
    "BM25",
    "KL",
    "RM3",
    "Analyzer",
    "Bo1",
    "LexicalIndex",
    "QueryGenerator",
    "TermFeedback",
    "TermRegression",
    "TermWeigher",
    "TorchTermWeigher",
    "expanded_documents",
    "query_term_recall",
    "read_expansions",
    "scaled_frequencies",
    "weighted_documents",
]
