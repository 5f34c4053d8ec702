"""The kinds of systems, one family per file; importing this makes them known."""

from colbert_prf.experiments.kinds import colbert

__all__ = ["colbert"]
