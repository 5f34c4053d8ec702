"""ColBERT-PRF that learns from what a better ranker prefers, and from each passage as much as it is sure of it."""

from __future__ import annotations

from time import perf_counter

from colbert_prf.errors import InputError
from colbert_prf.feedback import Feedback
from colbert_prf.feedback.methods import make_feedback
from colbert_prf.search.retriever import DEFAULT_K, Retriever
from colbert_prf.search.searcher import Searcher
from colbert_prf.types import Ranking

__all__ = ["RerankedFeedback"]


class RerankedFeedback(Retriever):
    """Search, let a re-ranker order the best passages, learn from its best by their scores, search again.

    A first pass and a re-ranker find the feedback documents; these weigh by the softmax of the re-ranker's scores, see
    :mod:`colbert_prf.feedback.document_weights`. The answer is that of ColBERT with the expanded query: put a re-ranker
    over this system to order it once more.

    Parameters
    ----------
    judge
        What ranks the feedback documents: a re-ranker over any system, such as a ``CrossEncoderReranker``; or any other
        system over documents of the index.
    searcher
        Over the index.
    feedback
        The method, or its name.
    depth
        Passages the judge is asked for.
    weighed
        Whether documents weigh by the judge's scores; if not, the judge only chooses them.

    Examples
    --------
    >>> from colbert_prf.baselines.rerank import ColbertReranker
    >>> from colbert_prf.index import MemoryIndex
    >>> searcher = Searcher(MemoryIndex.create([("a", "Goldfish grow all their life."), ("b", "Bank rates fell.")]))
    >>> system = RerankedFeedback(ColbertReranker(searcher, searcher), searcher)
    >>> ranking = system.search("do fish grow")
    >>> ranking.doc_ids, ranking.expansion.feedback
    (['a', 'b'], ('a',))
    """

    def __init__(
        self,
        judge: Retriever,
        searcher: Searcher,
        *,
        feedback: Feedback | str = "prf",
        depth: int = 20,
        weighed: bool = True,
    ) -> None:
        method = make_feedback(feedback) if isinstance(feedback, str) else feedback
        if depth < method.feedback_docs:
            raise InputError(f"depth must be at least feedback_docs, {method.feedback_docs}, found {depth}")
        self.judge = judge
        self.searcher = searcher
        self.feedback = method
        self.depth = depth
        self.weighed = weighed

    def search(self, query: str, k: int = DEFAULT_K) -> Ranking:
        """Find the ``k`` best documents; ``before`` has those of the judge."""
        judged = self.judge.search(query, self.depth)
        started = perf_counter()
        encoded, index = self.searcher.encode(query), self.searcher.index
        expansion = self.feedback.expand(encoded, judged, index, weighed=self.weighed, workers=self.searcher.workers)
        timings = {**judged.timings, "expansion": perf_counter() - started}
        found = self.searcher.search(expansion.query, k, feedback=False)
        timings |= {f"{stage} again": seconds for stage, seconds in found.timings.items()}
        return Ranking(found.query, found.hits, timings, expansion, lambda: judged[:k])
