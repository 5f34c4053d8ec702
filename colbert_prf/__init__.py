"""Late-interaction (ColBERT) retrieval with pseudo-relevance feedback, fast on an ordinary CPU."""

from colbert_prf.encoder import Encoder, ModelSettings
from colbert_prf.errors import (
    ColbertPrfError,
    DatasetError,
    InputError,
    MissingExtraError,
    ModelError,
    TextError,
)
from colbert_prf.index import MemoryIndex
from colbert_prf.search import Searcher
from colbert_prf.types import EncodedDocument, EncodedQuery, Hit, Ranking
from colbert_prf.version import __version__

__all__ = [
    "ColbertPrfError",
    "DatasetError",
    "EncodedDocument",
    "EncodedQuery",
    "Encoder",
    "Hit",
    "InputError",
    "MemoryIndex",
    "MissingExtraError",
    "ModelError",
    "ModelSettings",
    "Ranking",
    "Searcher",
    "TextError",
    "__version__",
]
