"""Feedback: a query and the documents found for it in, an expanded query out. One method per file."""

from colbert_prf.feedback.base import Feedback
from colbert_prf.feedback.centroid_prf import CentroidPRF
from colbert_prf.feedback.frequencies import TokenFrequencies
from colbert_prf.feedback.prf import ColbertPRF

__all__ = ["CentroidPRF", "ColbertPRF", "Feedback", "TokenFrequencies"]
