"""From a query to a ranking: the first pass, feedback, the second pass."""

from colbert_prf.search.retriever import DEFAULT_K, Retriever
from colbert_prf.search.searcher import PRESETS, Preset, Searcher
from colbert_prf.search.texts import rerank_texts

__all__ = ["DEFAULT_K", "PRESETS", "Preset", "Retriever", "Searcher", "rerank_texts"]
