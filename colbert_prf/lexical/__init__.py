"""Retrieval by terms: BM25 over a lexical index on disk, and query expansion."""

from colbert_prf.lexical.analysis import Analyzer
from colbert_prf.lexical.bm25 import BM25
from colbert_prf.lexical.divergence import KL, Bo1
from colbert_prf.lexical.feedback import TermFeedback
from colbert_prf.lexical.index import LexicalIndex
from colbert_prf.lexical.rm3 import RM3

__all__ = ["BM25", "KL", "RM3", "Analyzer", "Bo1", "LexicalIndex", "TermFeedback"]
