"""The systems the paper compares with: BM25 and its feedback, re-rankers, one vector per text, fusion."""

from colbert_prf.baselines.fusion import Fusion
from colbert_prf.baselines.lexical import BM25, KL, RM3, Analyzer, Bo1, LexicalIndex, TermFeedback
from colbert_prf.baselines.rerank import (
    BertQE,
    ColbertReranker,
    ColbertTextReranker,
    CrossEncoderReranker,
    PairScorer,
    RerankedFeedback,
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

__all__ = [
    "BM25",
    "KL",
    "RM3",
    "Analyzer",
    "AverageFeedback",
    "BertQE",
    "BiEncoder",
    "Bo1",
    "ColbertReranker",
    "ColbertTextReranker",
    "CrossEncoderReranker",
    "Fusion",
    "LexicalIndex",
    "MeanEncoder",
    "PairScorer",
    "RerankedFeedback",
    "Reranker",
    "RocchioFeedback",
    "SingleVector",
    "TermFeedback",
    "VectorEncoder",
    "VectorFeedback",
    "VectorIndex",
]
