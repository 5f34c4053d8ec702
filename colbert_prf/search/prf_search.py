"""ColBERT-PRF, Algorithm 2 of the paper: search, learn from the best documents, search again.

Wang, Macdonald, Tonellotto and Ounis, Pseudo-Relevance Feedback for Multiple Representation Dense Retrieval, ICTIR
2021.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from colbert_prf.feedback import Feedback
from colbert_prf.index.collection import Collection
from colbert_prf.kernels.workers import ALONE, Workers
from colbert_prf.search.budget import Execution
from colbert_prf.search.first_pass import FirstPass
from colbert_prf.search.scorer import TopDocuments, check_scores
from colbert_prf.types import EncodedDocument, EncodedQuery, Expansion

__all__ = ["Answer", "Learner", "search_with_feedback"]


class Answer(NamedTuple):
    """The documents found with the expanded query, what was learned, and the documents of the first pass."""

    after: TopDocuments
    expansion: Expansion
    before: TopDocuments


@dataclass(frozen=True, eq=False)
class Learner:
    """A feedback method and what one search gives to it.

    Parameters
    ----------
    method
        Of feedback.
    collection
        Where the documents are.
    relevant, non_relevant
        Positions of documents a person has marked.
    rescore
        Documents the second pass scores exactly; by default as many as :func:`~.budget.default_keep` says.
    texts
        Encoded texts to learn from, as :mod:`colbert_prf.feedback.given_texts` says.
    with_passages
        Whether it learns from the best of the first pass as well where there are texts.
    """

    method: Feedback
    collection: Collection
    relevant: npt.NDArray[np.int64]
    non_relevant: npt.NDArray[np.int64]
    rescore: int | None = None
    texts: Sequence[EncodedDocument] = ()
    with_passages: bool = False

    @property
    def num_best(self) -> int:
        """Documents of the first pass it may learn from; none if some are marked as relevant or there are texts."""
        if len(self.relevant) or (self.texts and not self.with_passages):
            return 0
        return self.method.feedback_docs + len(self.non_relevant)

    @property
    def depth(self) -> int:
        """Documents of the first pass it may need."""
        return max(self.num_best, (self.method.rerank_depth or 0) if self.method.rerank else 0)

    def expand(self, query: EncodedQuery, best: TopDocuments, workers: Workers) -> Expansion:
        """Learn from the texts and the documents marked as relevant, or else from the best that are not marked."""
        positions = self.relevant
        if self.num_best:
            unmarked = ~np.isin(best.positions, self.non_relevant) if len(self.non_relevant) else slice(None)
            positions = best.positions[unmarked][: self.method.feedback_docs]
        expansion = self.method.learn_from(
            query, positions, self.collection, non_relevant=self.non_relevant, texts=self.texts, workers=workers
        )
        check_scores(expansion.query, "lower the weight, beta or push of feedback, or all weights of the query")
        return expansion


def search_with_feedback(
    first: FirstPass, query: EncodedQuery, k: int, learner: Learner, execution: Execution
) -> Answer:
    """Find the ``k`` best documents after feedback.

    Feedback learns while other threads go on with the first pass. In the end another document may be better than those
    it learned from; then it learns again.

    Parameters
    ----------
    first
        The first pass, under way (line 1).
    query
        What it searches.
    k
        How many documents are wanted.
    learner
        Expands the query.
    execution
        What to compute with.
    """
    best = first.best(learner.num_best)
    with execution.stage("expansion"):
        expansion = learner.expand(query, best, ALONE)  # lines 2 to 9
    first.finish()
    if not np.array_equal(best.positions, first.best(learner.num_best).positions):
        with execution.stage("expansion"):
            expansion = learner.expand(query, first.best(learner.num_best), execution.workers)
    before = first.best(k)
    if not len(expansion):
        return Answer(before, expansion, before)
    if learner.method.rerank:
        depth = learner.method.rerank_depth
        after = first.score_again(expansion, k, depth=depth, rescore=learner.rescore)  # lines 10 to 14
    else:
        after = first.find_again(expansion, k, rescore=learner.rescore)  # the same over the documents of a new search
    return Answer(after, expansion, before)
