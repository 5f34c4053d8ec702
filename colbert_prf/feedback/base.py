"""What a feedback method is, and what all of them share: choosing documents, weights, and the expanded query."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from numbers import Integral, Real
from typing import NamedTuple, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from colbert_prf.errors import InputError
from colbert_prf.feedback.document_weights import document_weights
from colbert_prf.feedback.given_texts import with_texts
from colbert_prf.feedback.strength import Strength
from colbert_prf.feedback.weighting import is_unnamed
from colbert_prf.index import Index
from colbert_prf.index.collection import Collection, DocumentVectors
from colbert_prf.kernels.workers import ALONE, Workers
from colbert_prf.types import EncodedDocument, EncodedQuery, Expansion, ExpansionVector, Ranking, TokenIds, Vectors

__all__ = [
    "Added",
    "Feedback",
    "LikelyTokens",
    "expanded",
    "likely_tokens",
    "most_likely",
    "require_at_least",
    "require_whole",
    "sources_of",
]

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
        Documents of the first pass a ReRanker scores again, and so the most it gives: its best so many, all exactly. If
        left out, it chooses from all that the first pass scored.
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
        index: Index | Collection,
        *,
        non_relevant: Sequence[str] = (),
        texts: Sequence[EncodedDocument] = (),
        weighed: bool = False,
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
        texts
            Encoded texts to learn from as well, see :mod:`colbert_prf.feedback.given_texts`; with no ids in
            ``ranking``, alone.
        weighed
            Whether documents of a :class:`Ranking` count by their scores, such as a re-ranker's: see
            :mod:`colbert_prf.feedback.document_weights`.
        workers
            What to compute with; it does not change the result.

        Returns
        -------
        Expansion
            Without vectors if nothing was found to learn from.
        """
        collection = index.snapshot
        weights = None
        if isinstance(ranking, Ranking):
            wanted = [doc_id for doc_id in ranking.doc_ids if doc_id not in set(non_relevant)]
            positions = _present(collection, wanted, self.feedback_docs)
            if weighed and len(positions):
                scores = dict(zip(ranking.doc_ids, ranking.scores, strict=True))
                weights = document_weights([scores[doc_id] for doc_id in collection.doc_ids_of(positions)])
        else:
            positions = collection.positions(dict.fromkeys(ranking))
        away = collection.positions(non_relevant)
        return self.learn_from(
            query, positions, collection, non_relevant=away, texts=texts, weights=weights, workers=workers
        )

    def learn_from(
        self,
        query: EncodedQuery,
        positions: npt.NDArray[np.int64],
        collection: Collection,
        *,
        non_relevant: npt.NDArray[np.int64],
        texts: Sequence[EncodedDocument] = (),
        weights: npt.NDArray[np.float64] | None = None,
        workers: Workers = ALONE,
    ) -> Expansion:
        """Expand the query from all of some documents, given by their positions, and texts; see :meth:`expand`.

        ``weights`` (num_documents,) say how much each of the documents counts.
        """
        has_vectors = collection.lengths(positions) > 0
        positions, texts = positions[has_vectors], [text for text in texts if len(text)]
        if not len(positions) and not texts:
            return Expansion(query)
        feedback = collection.vectors_of(positions) if len(positions) else None
        doc_ids = collection.doc_ids_of(positions)
        if feedback is not None and weights is not None:
            feedback = feedback._replace(weights=weights[has_vectors])
        if texts or feedback is None:
            feedback, doc_ids = with_texts(feedback, doc_ids, texts, collection)
        expansion = self._learn(query, feedback, doc_ids, collection, workers)
        if len(non_relevant) and len(expansion):
            expansion = self._pushed(expansion, collection, non_relevant)
        return expansion

    @abstractmethod
    def _learn(
        self,
        query: EncodedQuery,
        feedback: DocumentVectors,
        doc_ids: Sequence[str],
        collection: Collection,
        workers: Workers,
    ) -> Expansion:
        """Expand a query from the vectors of at least one document; each has some."""

    def weights_of(self, query: EncodedQuery, sigmas: npt.NDArray[np.float64]) -> npt.NDArray[np.float32]:
        """The weights of expansion vectors with these σ, finite and not negative as they are."""
        return self.strength.weights(query.weights, sigmas)

    def _pushed(self, expansion: Expansion, collection: Collection, non_relevant: npt.NDArray[np.int64]) -> Expansion:
        """Move the added vectors away from documents that are not relevant."""
        away = collection.vectors_of(non_relevant).vectors
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


def sources_of(
    rows: npt.NDArray[np.int64], doc_ids: Sequence[str], feedback: DocumentVectors
) -> tuple[tuple[str, int], ...]:
    """The document of some feedback vectors, by the ids of all documents, and their places in it."""
    owners = [doc_ids[document] for document in feedback.documents[rows].tolist()]
    return tuple(zip(owners, feedback.token_positions[rows].tolist(), strict=True))


def likely_tokens(neighbours: TokenIds, special_ids: frozenset[int]) -> LikelyTokens:
    """P(t|υ) of the tokens of the nearest vectors, most likely first; of equals, the nearer comes first.

    Special tokens count among the neighbours and are dropped afterwards.

    >>> likely_tokens(np.array([5, 101, 7, 7, 5, -1]), frozenset({101}))
    ((5, 0.4), (7, 0.4))
    """
    token_ids = [token_id for token_id in neighbours.tolist() if token_id >= 0]
    counts: dict[int, int] = {}
    for token_id in token_ids:
        counts[token_id] = counts.get(token_id, 0) + 1
    falling = sorted(counts.items(), key=lambda item: -item[1])  # equal counts stay in the order they were first met
    return tuple((token_id, count / len(token_ids)) for token_id, count in falling if token_id not in special_ids)


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


def _present(collection: Collection, doc_ids: Sequence[str], count: int) -> npt.NDArray[np.int64]:
    """The positions of the first ``count`` documents that are still there."""
    positions = (collection.find(doc_id) for doc_id in doc_ids)
    return np.array([*islice((position for position in positions if position is not None), count)], np.int64)
