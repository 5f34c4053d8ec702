"""Dense retrieval with one vector per text: a bi-encoder or ColBERT's mean, exact or by a graph, with feedback."""

from colbert_prf.baselines.single_vector.encoders import BiEncoder, MeanEncoder, VectorEncoder
from colbert_prf.baselines.single_vector.feedback import AverageFeedback, RocchioFeedback, VectorFeedback
from colbert_prf.baselines.single_vector.index import VectorIndex
from colbert_prf.baselines.single_vector.retriever import SingleVector

__all__ = [
    "AverageFeedback",
    "BiEncoder",
    "MeanEncoder",
    "RocchioFeedback",
    "SingleVector",
    "VectorEncoder",
    "VectorFeedback",
    "VectorIndex",
]
