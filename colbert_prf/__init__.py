"""Late-interaction (ColBERT) retrieval with pseudo-relevance feedback, fast on an ordinary CPU."""

from colbert_prf.baselines.fusion import Fusion
from colbert_prf.baselines.lexical import BM25, KL, RM3, Analyzer, Bo1, LexicalIndex, TermFeedback
from colbert_prf.baselines.rerank import (
    BertQE,
    ColbertReranker,
    ColbertTextReranker,
    CrossEncoderReranker,
    PairScorer,
    Reranker,
)
from colbert_prf.baselines.single_vector import (
    AverageFeedback,
    BiEncoder,
    MeanEncoder,
    RocchioFeedback,
    SingleVector,
    VectorEncoder,
    VectorFeedback,
    VectorIndex,
)
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
from colbert_prf.feedback import CentroidPRF, ColbertPRF, Feedback, TokenFrequencies
from colbert_prf.index import Index, IndexInfo, MemoryIndex, Passages, Verification
from colbert_prf.search.retriever import EndToEnd, Retriever
from colbert_prf.search.searcher import Searcher
from colbert_prf.search.texts import rerank_texts
from colbert_prf.terms import TermExpansion, TermExplanation, TermMatch
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

# The plain order of strings, which a test checks.
__all__ = [  # noqa: RUF022
    "Analyzer",
    "AverageFeedback",
    "BM25",
    "BertQE",
    "BiEncoder",
    "Bo1",
    "CentroidPRF",
    "ColbertPRF",
    "ColbertPrfError",
    "ColbertReranker",
    "ColbertTextReranker",
    "CrossEncoderReranker",
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
    "Fusion",
    "Hit",
    "Index",
    "IndexFormatError",
    "IndexInfo",
    "IndexLockedError",
    "IndexMismatchError",
    "InputError",
    "KL",
    "LexicalIndex",
    "Match",
    "MeanEncoder",
    "MemoryIndex",
    "MissingExtraError",
    "ModelError",
    "ModelSettings",
    "OutgrownCodecWarning",
    "PairScorer",
    "Passages",
    "ProjectionError",
    "RM3",
    "Ranking",
    "Reranker",
    "Retriever",
    "RocchioFeedback",
    "Searcher",
    "SingleVector",
    "StorageError",
    "TermExpansion",
    "TermExplanation",
    "TermFeedback",
    "TermMatch",
    "TextError",
    "TokenFrequencies",
    "VectorEncoder",
    "VectorFeedback",
    "VectorIndex",
    "Verification",
    "__version__",
    "rerank_texts",
]
