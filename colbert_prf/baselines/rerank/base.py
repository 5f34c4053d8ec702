"""What a re-ranker is: another system's candidates in a new order."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from time import perf_counter

import numpy as np
import numpy.typing as npt

from colbert_prf.errors import InputError, whole_number
from colbert_prf.search.retriever import DEFAULT_K, Retriever
from colbert_prf.types import Hit, Ranking

__all__ = ["Reranker", "reordered", "texts_of"]


CANDIDATES = 100
"""Candidates that are scored at least, unless a depth is given."""
STEP = 0.01
"""Between the scores of documents that keep their order behind the others."""


class Reranker(Retriever):
    """Scores the candidates of another system again; it finds no others and drops none.

    Parameters
    ----------
    first
        Any system.
    depth
        Candidates scored, its best so many. The others stay behind them, in their order. If left out, all candidates
        are scored: as many as are asked for, and at least 100.
    """

    def __init__(self, first: Retriever, *, depth: int | None = None) -> None:
        if depth is not None and depth < 1:
            raise InputError(f"depth must be at least 1, found {depth}")
        self.first = first
        self.depth = depth

    def search(self, query: str, k: int = DEFAULT_K) -> Ranking:
        """Find ``k`` candidates, or ``depth`` if that is more, score them again and give the best ``k``."""
        k = whole_number("k", k, least=1)
        candidates = self.first.search(query, max(k, self.depth or CANDIDATES))
        started = perf_counter()
        ranking = self.rerank(query, candidates)
        timings = {**candidates.timings, "re-ranking": perf_counter() - started}
        return Ranking(
            candidates.query,
            ranking.hits[:k],
            timings,
            ranking.expansion,
            lambda: Ranking(candidates.query, candidates.hits[:k]),
            candidates.term_expansion,
        )

    def rerank(self, query: str, candidates: Ranking) -> Ranking:
        """Order a ranking again.

        Parameters
        ----------
        query
            A text.
        candidates
            What any system found for it.

        Returns
        -------
        Ranking
            Of exactly the same documents, equal scores in the order they came.
        """
        hits = candidates.hits[: self.depth]
        if not hits:
            return candidates
        return Ranking(candidates.query, reordered(hits, self._scores(query, hits), behind=self._behind(candidates)))

    def _behind(self, candidates: Ranking) -> Sequence[Hit]:
        """The candidates that are not scored."""
        return candidates.hits[self.depth :] if self.depth is not None else ()

    @abstractmethod
    def _scores(self, query: str, hits: Sequence[Hit]) -> npt.NDArray[np.float64]:
        """The new score of each of at least one hit; minus infinity for one that cannot be scored."""


def reordered(hits: Sequence[Hit], scores: npt.NDArray[np.float64], *, behind: Sequence[Hit] = ()) -> tuple[Hit, ...]:
    """Hits with new scores, best first.

    Parameters
    ----------
    hits
        In the order they came, which equal scores keep.
    scores
        Of the hits; one that is not finite is last.
    behind
        More hits, which stay behind all others in their order; their scores only say so.

    Examples
    --------
    >>> new = reordered([Hit("a", 9.0), Hit("b", 8.0)], np.array([1.0, 2.0]), behind=[Hit("c", 7.0)])
    >>> [(hit.doc_id, hit.score) for hit in new]
    [('b', 2.0), ('a', 1.0), ('c', 0.99)]
    """
    places = [place for place in np.argsort(-scores, kind="stable").tolist() if np.isfinite(scores[place])]
    known = set(places)
    rest = [*(hit for place, hit in enumerate(hits) if place not in known), *behind]
    lowest = float(scores[places[-1]]) if places else 0.0
    return (
        *(replace(hits[place], score=float(scores[place])) for place in places),
        *(replace(hit, score=lowest - STEP * rank) for rank, hit in enumerate(rest, start=1)),
    )


def texts_of(hits: Sequence[Hit]) -> list[str]:
    """The texts of candidates.

    Raises
    ------
    InputError
        If one has none, because its index keeps none.
    """
    texts = [hit.text for hit in hits]
    if None in texts:
        raise InputError(
            f"candidate {hits[texts.index(None)].doc_id!r} comes without its text, which this re-ranker reads; use an "
            "index that keeps texts"
        )
    return [text for text in texts if text is not None]
