"""ColBERT over the candidates of any system, with or without feedback: from an index, or from texts."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from colbert_prf.baselines.rerank.base import Reranker, reordered, texts_of
from colbert_prf.baselines.rerank.candidates import Candidates
from colbert_prf.encoder import Encoder
from colbert_prf.feedback import Feedback, TokenFrequencies
from colbert_prf.search.retriever import Retriever
from colbert_prf.search.searcher import Searcher
from colbert_prf.search.texts import rerank_texts
from colbert_prf.types import Explanation, Hit, Ranking

__all__ = ["ColbertReranker", "ColbertTextReranker"]


class ColbertReranker(Reranker):
    """MaxSim from the vectors of an index: only the query is encoded.

    Parameters
    ----------
    first
        Any system over the same documents.
    searcher
        Over the index.
    feedback
        Learn from the best candidates by MaxSim and score all candidates again; ``rerank`` means nothing here, where
        only the candidates are scored.
    depth
        As in :class:`Reranker`.

    Examples
    --------
    >>> from colbert_prf.index import MemoryIndex
    >>> searcher = Searcher(MemoryIndex.create([("a", "Goldfish grow all their life."), ("b", "Bank rates fell.")]))
    >>> ColbertReranker(searcher, searcher).search("do fish grow").doc_ids
    ['a', 'b']
    """

    def __init__(
        self, first: Retriever, searcher: Searcher, *, feedback: Feedback | None = None, depth: int | None = None
    ) -> None:
        super().__init__(first, depth=depth)
        self.searcher = searcher
        self.feedback = feedback

    def rerank(self, query: str, candidates: Ranking) -> Ranking:
        """Order a ranking again; with feedback the answer has an ``expansion``."""
        if self.feedback is None:
            return super().rerank(query, candidates)
        hits = candidates.hits[: self.depth]
        if not hits:
            return candidates
        encoded = self.searcher.encode(query)
        scored = Candidates(self.searcher, [hit.doc_id for hit in hits])
        first = Ranking(encoded, reordered(hits, scored.scores(encoded)))
        index = self.searcher.index
        expansion = self.feedback.expand(encoded, first, index, workers=self.searcher.workers)
        again = reordered(hits, scored.scores(expansion.query), behind=self._behind(candidates))
        return Ranking(expansion.query, again, expansion=expansion)

    def explain(self, query: str, doc_id: str) -> Explanation:
        """Tell which token each query vector matched, those that feedback added included."""
        if self.feedback is None:
            return self.searcher.explain(query, doc_id)
        expansion = self.search(query).expansion
        return self.searcher.explain(expansion.query if expansion is not None else query, doc_id)

    def _scores(self, query: str, hits: Sequence[Hit]) -> npt.NDArray[np.float64]:
        encoded = self.searcher.encode(query)
        return Candidates(self.searcher, [hit.doc_id for hit in hits]).scores(encoded)


class ColbertTextReranker(Reranker):
    """MaxSim of texts encoded on the spot: for candidates that are in no index, or with texts other than those in it.

    Parameters
    ----------
    first
        Any system.
    encoder
        The model; the embedded one if left out.
    feedback, frequencies
        As in :func:`rerank_texts`, but without feedback by default.
    text_of
        The text to score for a document id, such as one expanded with queries; the candidate's own if left out.
    depth
        As in :class:`Reranker`: encoding takes some 10 ms a passage.
    """

    def __init__(
        self,
        first: Retriever,
        *,
        encoder: Encoder | None = None,
        feedback: Feedback | None = None,
        frequencies: TokenFrequencies | None = None,
        text_of: Callable[[str], str] | None = None,
        depth: int | None = None,
    ) -> None:
        super().__init__(first, depth=depth)
        self.encoder = encoder or Encoder.load()
        self.feedback = feedback
        self.frequencies = frequencies
        self.text_of = text_of

    def rerank(self, query: str, candidates: Ranking) -> Ranking:
        """Order a ranking again; with feedback the answer has an ``expansion``."""
        hits = candidates.hits[: self.depth]
        if not hits:
            return candidates
        ranking = self._ranked(query, hits)
        scores = {hit.doc_id: hit.score for hit in ranking}
        new = np.array([scores[hit.doc_id] for hit in hits])
        ordered = reordered(hits, new, behind=self._behind(candidates))
        return Ranking(ranking.query, ordered, expansion=ranking.expansion)

    def _scores(self, query: str, hits: Sequence[Hit]) -> npt.NDArray[np.float64]:
        scores = {hit.doc_id: hit.score for hit in self._ranked(query, hits)}
        return np.array([scores[hit.doc_id] for hit in hits])

    def _ranked(self, query: str, hits: Sequence[Hit]) -> Ranking:
        texts = [self.text_of(hit.doc_id) for hit in hits] if self.text_of else texts_of(hits)
        passages = zip((hit.doc_id for hit in hits), texts, strict=True)
        return rerank_texts(query, passages, encoder=self.encoder, feedback=self.feedback, frequencies=self.frequencies)
