"""PyTerrier: indexes as artifacts, and transformers for every stage of ColBERT-PRF; no Java (extra ``[pyterrier]``)."""

from colbert_prf.errors import MissingExtraError

try:
    import pyterrier
except ImportError:
    raise MissingExtraError("Building PyTerrier pipelines", extra="pyterrier") from None

from colbert_prf.pyterrier.artifact import ColbertIndex
from colbert_prf.pyterrier.baselines import BertQEScorer, CrossEncoderScorer, LexicalRetriever
from colbert_prf.pyterrier.feedback import QueryExpander, RetrievedExpander
from colbert_prf.pyterrier.indexer import ColbertIndexer
from colbert_prf.pyterrier.retrieve import ColbertRetriever, ColbertSetRetriever, QueryEncoder
from colbert_prf.pyterrier.scoring import ColbertScorer, ColbertTextScorer
from colbert_prf.pyterrier.showing import Explainer, TextLoader

del pyterrier

__all__ = [
    "BertQEScorer",
    "ColbertIndex",
    "ColbertIndexer",
    "ColbertRetriever",
    "ColbertScorer",
    "ColbertSetRetriever",
    "ColbertTextScorer",
    "CrossEncoderScorer",
    "Explainer",
    "LexicalRetriever",
    "QueryEncoder",
    "QueryExpander",
    "RetrievedExpander",
    "TextLoader",
]
