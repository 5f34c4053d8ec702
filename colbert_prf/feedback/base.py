"""What a feedback method is, and what all of them share: choosing documents, weights, and the expanded query."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from numbers import Integral, Real
from typing import NamedTuple, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from colbert_prf.errors import InputError
from colbert_prf.feedback.source import FeedbackSource, source_of
from colbert_prf.feedback.strength import Strength
from colbert_prf.feedback.weighting import is_unnamed
from colbert_prf.index import Index, MemoryIndex
from colbert_prf.index.snapshot import Snapshot
from colbert_prf.kernels.parallel import ALONE, Workers
from colbert_prf.types import EncodedQuery, Expansion, ExpansionVector, Ranking, TokenIds, Vectors

__all__ = ["Added", "Feedback", "expanded", "likely_tokens", "most_likely", "require_at_least", "require_whole"]

LARGEST = 1e30
"""Of a parameter that is multiplied into weights."""
MOST = 2**31 - 1
"""Of a parameter that counts documents or vectors."""


@dataclass(frozen=True, kw_only=True)
class Feedback(ABC):
    """Expands a query with vectors learned from documents.

    Parameters
    ----------
    feedback_docs
        Documents learned from, f_b: the best of the first pass.
    expansion_vectors
        Vectors added at most, f_e.
    weight
        How many times the query all added vectors together weigh: σ_i is divided by Σσ and multiplied by the weight of
        the query, so that one value suits queries of 6 and of 32 vectors. 0 leaves the ranking alone; collections with
        many relevant documents a query bear more. Give this or ``beta``; with neither, ``strength`` tells the default,
        and ``docs/notes/defaults.md`` how it was chosen.
    beta
        β of the paper, where queries have 32 vectors: an added vector weighs β·σ_i, whatever the query weighs.
    rerank
        Whether the documents of the first pass are only scored again (ReRanker) instead of searching again (Ranker).
    rerank_depth
        Documents of the first pass a ReRanker scores, and so the most it gives: its best so many, or all that it
        scored.
    push
        How far vectors of documents marked as not relevant push an expansion vector away: υ - push·ν, where ν is the
        nearest of them.
    """

    feedback_docs: int = 3
    expansion_vectors: int = 10
    weight: float | None = None
    beta: float | None = None
    rerank: bool = False
    rerank_depth: int | None = None
    push: float = 0.5

    def __post_init__(self) -> None:
        for name in ("feedback_docs", "expansion_vectors"):
            require_whole(1, name, getattr(self, name))
        if self.rerank_depth is not None:
            require_whole(1, "rerank_depth", self.rerank_depth)
        require_at_least(0, "push", self.push)
        for name in ("weight", "beta"):
            if (value := getattr(self, name)) is not None:
                require_at_least(0, name, value)
        if self.weight is not None and self.beta is not None:
            raise InputError(
                f"weight and beta exclude each other, found weight={self.weight} and beta={self.beta}; leave out beta "
                "to weigh the added vectors relative to the query, or weight for the paper's β; with replace, set it "
                "to None"
            )

    @property
    def strength(self) -> Strength:
        """How much the added vectors count: ``weight`` or ``beta``, whichever was given, or the default.

        >>> from colbert_prf import ColbertPRF
        >>> ColbertPRF(beta=1.0).strength, ColbertPRF(weight=0.5).strength.is_relative
        (Strength(name='beta', value=1.0), True)
        """
        if self.weight is not None:
            return Strength("weight", self.weight)
        return self._default_strength if self.beta is None else Strength("beta", self.beta)

    @property
    @abstractmethod
    def _default_strength(self) -> Strength:
        """What counts if neither ``weight`` nor ``beta`` is given."""

    def expand(
        self,
        query: EncodedQuery,
        ranking: Ranking | Sequence[str],
        index: Index | MemoryIndex | Snapshot | FeedbackSource,
        *,
        non_relevant: Sequence[str] = (),
        workers: Workers = ALONE,
    ) -> Expansion:
        """Learn from documents and expand the query.

        Parameters
        ----------
        query
            What was asked.
        ranking
            What was found for it, of which the first ``feedback_docs`` that are not in ``non_relevant`` are used; or
            the ids of documents known to be relevant, of which all are.
        index
            Where the documents are. One that was deleted since is passed over.
        non_relevant
            Ids of documents to move away from.
        workers
            What to compute with; it does not change the result.

        Returns
        -------
        Expansion
            Without vectors if nothing was found to learn from.
        """
        source = source_of(index)
        if isinstance(ranking, Ranking):
            wanted = [doc_id for doc_id in ranking.doc_ids if doc_id not in set(non_relevant)]
            positions = _present(source, wanted, self.feedback_docs)
        else:
            positions = source.positions(dict.fromkeys(ranking))
        return self.learn_from(query, positions, source, non_relevant=source.positions(non_relevant), workers=workers)

    def learn_from(
        self,
        query: EncodedQuery,
        positions: npt.NDArray[np.int64],
        source: FeedbackSource,
        *,
        non_relevant: npt.NDArray[np.int64],
        workers: Workers = ALONE,
    ) -> Expansion:
        """Expand the query from all of some documents, given by their positions; see :meth:`expand`."""
        learnt = np.array([place for place in positions.tolist() if source.has_vectors(place)], np.int64)
        if not len(learnt):
            return Expansion(query)
        expansion = self._learn(query, learnt, source, workers)
        if len(non_relevant) and len(expansion):
            expansion = self._pushed(expansion, source, non_relevant)
        return expansion

    @abstractmethod
    def _learn(
        self, query: EncodedQuery, positions: npt.NDArray[np.int64], source: FeedbackSource, workers: Workers
    ) -> Expansion:
        """Expand a query from at least one document; each has vectors."""

    def weights_of(self, query: EncodedQuery, sigmas: npt.NDArray[np.float64]) -> npt.NDArray[np.float32]:
        """The weights of expansion vectors with these σ, finite and not negative as they are."""
        return self.strength.weights(query.weights, sigmas)

    def _pushed(self, expansion: Expansion, source: FeedbackSource, non_relevant: npt.NDArray[np.int64]) -> Expansion:
        """Move the added vectors away from documents that are not relevant."""
        away = source.vectors_of(non_relevant).vectors
        if not len(away):
            return expansion
        first, query = expansion.num_original, expansion.query
        added = query.vectors[first:]
        nearest = away[(added @ away.T).argmax(axis=1)]
        moved = np.concatenate([query.vectors[:first], added - np.float32(self.push) * nearest])
        return replace(expansion, query=EncodedQuery(query.token_ids, moved.astype(np.float32), query.weights))


LikelyTokens: TypeAlias = tuple[tuple[int, float], ...]
Sources: TypeAlias = tuple[tuple[str, int], ...]


class Added(NamedTuple):
    """Vectors to add, most important first, and what a person may want to know of them.

    ``vectors`` (n, dim), the most likely token of each in ``token_ids`` (n,), and their ``sigmas`` (n,); of each its
    ``likely`` tokens, and the feedback vectors it stands for in ``sources``.
    """

    vectors: Vectors
    token_ids: TokenIds
    sigmas: npt.NDArray[np.float64]
    likely: Sequence[LikelyTokens]
    sources: Sequence[Sources]


def expanded(feedback: Feedback, query: EncodedQuery, added: Added, documents: Sequence[str]) -> Expansion:
    """Add vectors to a query."""
    if not len(added.vectors):
        return Expansion(query, feedback=tuple(documents))
    weights = feedback.weights_of(query, added.sigmas)
    described = zip(
        added.token_ids.tolist(), added.likely, added.sigmas.tolist(), weights.tolist(), added.sources, strict=True
    )
    whole = query.with_vectors(added.token_ids, added.vectors, weights)
    return Expansion(whole, tuple(ExpansionVector(*vector) for vector in described), tuple(documents))


def likely_tokens(neighbours: TokenIds, special_ids: frozenset[int]) -> LikelyTokens:
    """P(t|υ) of the tokens of the nearest vectors, most likely first; of equals, the nearer comes first.

    Special tokens count among the neighbours and are dropped afterwards.

    >>> likely_tokens(np.array([5, 101, 7, 7, 5, -1]), frozenset({101}))
    ((5, 0.4), (7, 0.4))
    """
    found = [token_id for token_id in neighbours.tolist() if token_id >= 0]
    counts = Counter(found).most_common()  # equal counts stay in the order they were first met
    return tuple((token_id, count / len(found)) for token_id, count in counts if token_id not in special_ids)


def most_likely(neighbours: TokenIds, special_ids: frozenset[int]) -> TokenIds:
    """The first of :func:`likely_tokens` for each row of neighbours (n, count), of shape (n,); -1 where there is none.

    >>> most_likely(np.array([[5, 101, 7, 7, 101, 101], [101, 101, -1, -1, -1, -1]]), frozenset({101})).tolist()
    [7, -1]
    """
    votes = (neighbours[:, :, np.newaxis] == neighbours[:, np.newaxis, :]).sum(axis=2)
    votes[is_unnamed(neighbours, special_ids)] = 0
    rows, first = np.arange(len(neighbours)), votes.argmax(axis=1)
    return np.where(votes[rows, first] > 0, neighbours[rows, first], -1).astype(np.int32)


def require_at_least(smallest: float, name: str, value: object) -> None:
    """Refuse a parameter that is too small, no number, or so large that a weight would not be a float32."""
    if isinstance(value, bool) or not isinstance(value, Real) or not smallest <= cast(float, value):
        raise InputError(f"{name} must be a number of at least {smallest}, found {value!r}")
    if not value < LARGEST:
        raise InputError(f"{name} must be below {LARGEST:g}, or no float32 holds a weight, found {value!r}")


def require_whole(smallest: int, name: str, value: object, *, largest: int | None = MOST) -> None:
    """Refuse a parameter that is too small, too large or no whole number."""
    if not isinstance(value, Integral) or int(value) < smallest:
        raise InputError(f"{name} must be a whole number of at least {smallest}, found {value!r}")
    if largest is not None and int(value) > largest:
        raise InputError(f"{name} must be at most {largest:,}, found {value!r}")


def _present(source: FeedbackSource, doc_ids: Sequence[str], count: int) -> npt.NDArray[np.int64]:
    """The positions of the first ``count`` documents that are still there."""
    found = (source.find(doc_id) for doc_id in doc_ids)
    return np.array([*islice((position for position in found if position is not None), count)], np.int64)
