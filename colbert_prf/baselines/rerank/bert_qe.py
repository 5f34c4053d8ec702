"""BERT-QE: candidates that are also like the best pieces of the best candidates, with ColBERT as the scorer."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from colbert_prf.baselines.rerank.base import Reranker, texts_of
from colbert_prf.baselines.rerank.candidates import Candidates
from colbert_prf.errors import InputError
from colbert_prf.kernels.maxsim import maxsim
from colbert_prf.search.retriever import Retriever
from colbert_prf.search.searcher import Searcher
from colbert_prf.types import EncodedQuery, Hit

__all__ = ["BertQE", "chunks_of"]


class BertQE(Reranker):
    """Re-rank with chunks of text learned from the best candidates, in three phases.

    1. Score all candidates, rel(q, d), and take the best ``feedback_docs``.
    2. Cut their texts into chunks of ``chunk_words`` words, each beginning in the middle of the one before; score
       these, rel(q, c), and take the best ``chunks``.
    3. Score all candidates for each chunk, and mix as below.

    The score of a document is s(d), with C the chosen chunks::

        rel(C, d) = Σ_c exp(rel(q, c)) / Σ_c' exp(rel(q, c')) · rel(c, d)
        s(d) = β · ((1 - α) · rel(q, d) + α · rel(C, d)) + (1 - β) · I(d)

    rel is ColBERT's MaxSim: of candidates from the index, of chunks from their texts. Two things make its scores
    comparable, where BERT's are probabilities: rel(c, d) is multiplied by the number of vectors of the query and
    divided by that of the chunk, which are equal in a model that fills queries up; and the first system's scores I(d)
    are stretched to the range of rel(q, d).

    Parameters
    ----------
    first
        Any system over the documents of the index.
    searcher
        Over the index.
    alpha
        α, how much the chunks count.
    beta
        β, how much all that counts against the first system's scores; 1 leaves these out.
    feedback_docs, chunk_words, chunks
        As above; the defaults are those of the paper.
    depth
        As in :class:`Reranker`.

    References
    ----------
    Zheng, Hui, He, Han, Sun, Yates: BERT-QE: Contextualized Query Expansion for Document Re-ranking, Findings of EMNLP
    2020.
    """

    def __init__(
        self,
        first: Retriever,
        searcher: Searcher,
        *,
        alpha: float = 0.4,
        beta: float = 0.9,
        feedback_docs: int = 10,
        chunk_words: int = 10,
        chunks: int = 10,
        depth: int | None = None,
    ) -> None:
        super().__init__(first, depth=depth)
        for name, value in (("alpha", alpha), ("beta", beta)):
            if not 0 <= value <= 1:
                raise InputError(f"{name} must be from 0 to 1, found {value}")
        for name, count, least in (("feedback_docs", feedback_docs, 1), ("chunk_words", chunk_words, 2)):
            if count < least:
                raise InputError(f"{name} must be at least {least}, found {count}")
        if chunks < 1:
            raise InputError(f"chunks must be at least 1, found {chunks}")
        self.searcher = searcher
        self.alpha = alpha
        self.beta = beta
        self.feedback_docs = feedback_docs
        self.chunk_words = chunk_words
        self.chunks = chunks

    def _scores(self, query: str, hits: Sequence[Hit]) -> npt.NDArray[np.float64]:
        encoded = self.searcher.encode(query)
        candidates = Candidates(self.searcher, [hit.doc_id for hit in hits])
        relevance = candidates.scores(encoded)
        best = np.argsort(-relevance, kind="stable")[: self.feedback_docs].tolist()
        chosen = self._chosen_chunks(encoded, texts_of([hits[place] for place in best]))
        likeness = np.zeros(len(hits))
        for text, weight in chosen:
            chunk = self.searcher.encode(text)
            likeness += weight * len(encoded) / len(chunk) * candidates.scores(chunk)
        alpha = self.alpha if chosen else 0.0
        mixed = (1 - alpha) * relevance + alpha * np.where(np.isfinite(likeness), likeness, 0.0)
        return self.beta * mixed + (1 - self.beta) * _stretched(np.array([hit.score for hit in hits]), relevance)

    def _chosen_chunks(self, query: EncodedQuery, texts: Sequence[str]) -> list[tuple[str, float]]:
        """The best chunks of some texts, and what each counts."""
        found = list(dict.fromkeys(chunk for text in texts for chunk in chunks_of(text, self.chunk_words)))
        if not found:
            return []
        encoded = list(self.searcher.encoder.encode_documents(found))
        offsets = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
        vectors = np.concatenate([document.vectors for document in encoded])
        scores = maxsim(query.vectors, query.weights, vectors, offsets).astype(np.float64)
        best = np.argsort(-scores, kind="stable")[: self.chunks]
        shares = np.exp(scores[best] - scores[best].max())
        return [(found[place], float(share)) for place, share in zip(best, shares / shares.sum(), strict=True)]


def chunks_of(text: str, words: int) -> list[str]:
    """Cut a text into chunks that overlap by half; a rest shorter than half a chunk joins the last.

    >>> chunks_of("a b c d e f g", 4)
    ['a b c d', 'c d e f g']
    >>> chunks_of("a b", 4), chunks_of("  ", 4)
    (['a b'], [])
    """
    found, all_words, half = [], text.split(), words // 2
    start = 0
    while start < len(all_words):
        end = start + words if len(all_words) - start - words >= half else len(all_words)
        found.append(" ".join(all_words[start:end]))
        if end == len(all_words):
            break
        start += words - half
    return found


def _stretched(scores: npt.NDArray[np.float64], like: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Scores moved and stretched to the range of others; to its top where all are equal."""
    finite = like[np.isfinite(like)]
    if not len(finite):
        return np.zeros(len(scores))
    low, high = float(finite.min()), float(finite.max())
    width = float(np.ptp(scores))
    shares = (scores - scores.min()) / width if width > 0 else np.ones(len(scores))
    return np.asarray(low + (high - low) * shares)
