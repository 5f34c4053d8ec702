"""The kinds of systems, one family per file; importing this makes them known."""

from colbert_prf.experiments.kinds import colbert, fusion, lexical, rerank, single_vector

__all__ = ["colbert", "fusion", "lexical", "rerank", "single_vector"]
