"""Late-interaction (ColBERT) retrieval with pseudo-relevance feedback, fast on an ordinary CPU."""

from colbert_prf.encoder import Encoder, ModelSettings
from colbert_prf.errors import (
    ColbertPrfError,
    DatasetError,
    DatasetWarning,
    IndexFormatError,
    IndexLockedError,
    IndexMismatchError,
    InputError,
    MissingExtraError,
    ModelError,
    OutgrownCodecWarning,
    ProjectionError,
    StorageError,
    TextError,
)
from colbert_prf.feedback import CentroidPRF, ColbertPRF, Feedback, Selective, TokenFrequencies, rerank_texts
from colbert_prf.index import Index, IndexInfo, MemoryIndex, Verification
from colbert_prf.retriever import EndToEnd, Retriever
from colbert_prf.search import Searcher
from colbert_prf.types import (
    EncodedDocument,
    EncodedQuery,
    Expansion,
    ExpansionVector,
    Explanation,
    Hit,
    Match,
    Ranking,
)
from colbert_prf.version import __version__

__all__ = [
    "CentroidPRF",
    "ColbertPRF",
    "ColbertPrfError",
    "DatasetError",
    "DatasetWarning",
    "EncodedDocument",
    "EncodedQuery",
    "Encoder",
    "EndToEnd",
    "Expansion",
    "ExpansionVector",
    "Explanation",
    "Feedback",
    "Hit",
    "Index",
    "IndexFormatError",
    "IndexInfo",
    "IndexLockedError",
    "IndexMismatchError",
    "InputError",
    "Match",
    "MemoryIndex",
    "MissingExtraError",
    "ModelError",
    "ModelSettings",
    "OutgrownCodecWarning",
    "ProjectionError",
    "Ranking",
    "Retriever",
    "Searcher",
    "Selective",
    "StorageError",
    "TextError",
    "TokenFrequencies",
    "Verification",
    "__version__",
    "rerank_texts",
]
