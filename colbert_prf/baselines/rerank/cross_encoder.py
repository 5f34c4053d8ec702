"""Re-ranking with a cross-encoder: the "+BERT" rows of the paper's table."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from colbert_prf.baselines.rerank.base import Reranker, texts_of
from colbert_prf.baselines.rerank.pair_scorer import PairScorer
from colbert_prf.progress import progress_bar
from colbert_prf.search.retriever import Retriever
from colbert_prf.types import Hit

__all__ = ["CrossEncoderReranker"]


class CrossEncoderReranker(Reranker):
    """Reads the query together with each candidate.

    Parameters
    ----------
    first
        Any system whose hits have texts.
    scorer
        The cross-encoder; see :meth:`PairScorer.load`.
    depth
        As in :class:`Reranker`.
    text_of
        The text to read for a document id; the candidate's own if left out.
    progress
        Whether a bar may be shown for each query.
    """

    def __init__(
        self,
        first: Retriever,
        scorer: PairScorer,
        *,
        depth: int | None = None,
        text_of: Callable[[str], str] | None = None,
        progress: bool = False,
    ) -> None:
        super().__init__(first, depth=depth)
        self.scorer = scorer
        self.text_of = text_of
        self.progress = progress

    def _scores(self, query: str, hits: Sequence[Hit]) -> npt.NDArray[np.float64]:
        texts = [self.text_of(hit.doc_id) for hit in hits] if self.text_of else texts_of(hits)
        with progress_bar("Reading", total=len(texts), unit="pairs", shown=self.progress) as advance:
            return self.scorer.scores(query, texts, progress=advance)
