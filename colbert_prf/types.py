"""The frozen values that travel between the rooms: what an encoder gives, what a search returns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from colbert_prf.errors import InputError
from colbert_prf.lazily import Lazily
from colbert_prf.terms import TermExpansion

__all__ = [
    "EncodedDocument",
    "EncodedQuery",
    "Expansion",
    "ExpansionVector",
    "Explanation",
    "Hit",
    "Hits",
    "Match",
    "Ranking",
    "TokenIds",
    "Vectors",
    "Weights",
]

TokenIds = npt.NDArray[np.int32]
Vectors = npt.NDArray[np.float32]
Weights = npt.NDArray[np.float32]

UNIT_LENGTH_TOLERANCE = 1e-3


def _check_array(name: str, array: object, dtype: str, shape: str) -> None:
    if not isinstance(array, np.ndarray) or array.dtype != dtype or array.ndim != len(shape.strip(",").split(",")):
        found = f"{array.dtype} of shape {array.shape}" if isinstance(array, np.ndarray) else type(array).__name__
        advice = f"convert with np.asarray({name.split('.')[1]}, dtype=np.{dtype})"
        raise InputError(f"{name} must be an array, {dtype} of shape ({shape}), found {found}; {advice}")


def _check_vectors(owner: str, token_ids: TokenIds, vectors: Vectors) -> None:
    _check_array(f"{owner}.vectors", vectors, "float32", "num_tokens, dim")
    _check_array(f"{owner}.token_ids", token_ids, "int32", "num_tokens,")
    if len(token_ids) != len(vectors):
        raise InputError(
            f"{owner} needs one token id per vector, found {len(token_ids)} ids and {len(vectors)} vectors"
        )
    if not np.isfinite(vectors).all():
        raise InputError(f"{owner}.vectors hold a NaN or an infinity; encode the text again or drop it")


def _check_unit_length(owner: str, vectors: Vectors) -> None:
    lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
    off = np.flatnonzero(np.abs(lengths - 1) > UNIT_LENGTH_TOLERANCE)
    if len(off):
        raise InputError(
            f"{owner}.vectors must have unit length, vector {off[0]} has length {lengths[off[0]]:.4f}; "
            "divide each vector by its norm"
        )


@dataclass(frozen=True, eq=False)
class EncodedDocument:
    """A document as a bag of unit vectors, one per token.

    Parameters
    ----------
    token_ids
        The model's token of each vector, int32 of shape (num_tokens,).
    vectors
        Unit vectors, float32 of shape (num_tokens, dim).

    Examples
    --------
    >>> document = EncodedDocument(np.array([7], dtype=np.int32), np.array([[0.6, 0.8]], dtype=np.float32))
    >>> len(document), document.dim
    (1, 2)
    """

    token_ids: TokenIds
    vectors: Vectors

    def __post_init__(self) -> None:
        _check_vectors("EncodedDocument", self.token_ids, self.vectors)
        _check_unit_length("EncodedDocument", self.vectors)

    def __len__(self) -> int:
        return len(self.token_ids)

    @property
    def dim(self) -> int:
        """The number of components of a vector."""
        return int(self.vectors.shape[1])


@dataclass(frozen=True, eq=False)
class EncodedQuery:
    """A query as weighted vectors: what every search takes and every feedback method gives.

    The score of a document is ``sum_i weights[i] * max_j vectors[i] · document[j]``; plain ColBERT has all weights 1.
    Vectors made by an encoder have unit length; those added by feedback are means of such vectors, so shorter.

    Parameters
    ----------
    token_ids
        The model's token of each vector, int32 of shape (num_tokens,).
    vectors
        Float32 of shape (num_tokens, dim), no longer than unit length.
    weights
        Non-negative, float32 of shape (num_tokens,); all ones if left out.

    Examples
    --------
    >>> query = EncodedQuery(np.array([7], dtype=np.int32), np.array([[0.6, 0.8]], dtype=np.float32))
    >>> query.weights.tolist()
    [1.0]
    """

    token_ids: TokenIds
    vectors: Vectors
    weights: Weights = field(default_factory=lambda: np.empty(0, dtype=np.float32))

    def __post_init__(self) -> None:
        _check_vectors("EncodedQuery", self.token_ids, self.vectors)
        _check_array("EncodedQuery.weights", self.weights, "float32", "num_tokens,")
        if len(self.token_ids) == 0:
            raise InputError("EncodedQuery needs at least one vector, found none")
        if len(self.weights) == 0:
            object.__setattr__(self, "weights", np.ones(len(self.token_ids), dtype=np.float32))
        if len(self.weights) != len(self.token_ids):
            found = f"{len(self.weights)} weights and {len(self.token_ids)} vectors"
            raise InputError(f"EncodedQuery needs one weight per vector, found {found}")
        if not (np.isfinite(self.weights).all() and (self.weights >= 0).all()):
            raise InputError(f"EncodedQuery.weights must be finite and not negative, found {self.weights.min()}")

    def __len__(self) -> int:
        return len(self.token_ids)

    @property
    def dim(self) -> int:
        """The number of components of a vector."""
        return int(self.vectors.shape[1])

    def from_vector(self, start: int) -> EncodedQuery:
        """The vectors from one on, at least one of them."""
        return _as_checked(self.token_ids[start:], self.vectors[start:], self.weights[start:])

    def with_vectors(self, token_ids: TokenIds, vectors: Vectors, weights: Weights) -> EncodedQuery:
        """These vectors and others after them, which the caller knows to be what a query may have."""
        return _as_checked(
            np.concatenate([self.token_ids, token_ids]),
            np.concatenate([self.vectors, vectors]),
            np.concatenate([self.weights, weights]),
        )


def _as_checked(token_ids: TokenIds, vectors: Vectors, weights: Weights) -> EncodedQuery:
    """A query of what was checked before: to check it again would take as long as many a step of a search."""
    query = object.__new__(EncodedQuery)
    for name, value in (("token_ids", token_ids), ("vectors", vectors), ("weights", weights)):
        object.__setattr__(query, name, value)
    return query


@dataclass(frozen=True)
class Hit:
    """One retrieved document: its id, its score, and its text where the index keeps texts.

    The text is read when it is asked for: a run of a thousand hits rarely needs any. Where documents were ranked by
    their passages, ``passage_id`` names the best, and the text is that of the passage.

    Examples
    --------
    >>> Hit("d1", 0.9, lambda: "Goldfish grow.").text
    'Goldfish grow.'
    """

    doc_id: str
    score: float
    read_text: Callable[[], str | None] | None = field(default=None, repr=False, compare=False)
    passage_id: str | None = field(default=None, repr=False)

    @property
    def text(self) -> str | None:
        """The text, or None where the index keeps no texts."""
        return self.read_text() if self.read_text is not None else None


class Hits(Lazily[Hit]):
    """Hits that are made when they are looked at: of a thousand that a search finds, few are.

    Parameters
    ----------
    doc_ids
        From best to worst.
    scores
        In the same order.
    read_text
        Gives the text of a document by its number in this order.
    passage_ids
        The best passage of each document, where documents were ranked by them.

    Examples
    --------
    >>> hits = Hits(["d1", "d2"], [0.9, 0.5])
    >>> hits[0], len(hits)
    (Hit(doc_id='d1', score=0.9), 2)
    """

    def __init__(
        self,
        doc_ids: Sequence[str],
        scores: Sequence[float],
        read_text: Callable[[int], str | None] | None = None,
        passage_ids: Sequence[str] | None = None,
    ) -> None:
        def hit(number: int) -> Hit:
            read = None if read_text is None else partial(read_text, number)
            return Hit(doc_ids[number], scores[number], read, passage_ids[number] if passage_ids else None)

        super().__init__(len(doc_ids), hit)
        self.doc_ids = doc_ids
        self.scores = scores


@dataclass(frozen=True)
class Match:
    """What one query vector found in a document: the token it is most similar to.

    Parameters
    ----------
    query_token_id
        The token of the query vector.
    token_id, position
        The matched token of the document, and where among its vectors it stands.
    similarity
        Of the two vectors.
    weight
        Of the query vector.
    """

    query_token_id: int
    token_id: int
    position: int
    similarity: float
    weight: float

    @property
    def contribution(self) -> float:
        """What this match gives to the score."""
        return self.weight * self.similarity


@dataclass(frozen=True)
class Explanation:
    """Why a document has its score: one match per query vector, in the order of the query.

    Examples
    --------
    >>> explanation = Explanation("d1", (Match(7, 9, 0, 0.8, 1.0), Match(8, 4, 3, 0.5, 0.2)))
    >>> round(explanation.score, 6)
    0.9
    """

    doc_id: str
    matches: tuple[Match, ...]

    @property
    def score(self) -> float:
        """The sum of the contributions."""
        return sum(match.contribution for match in self.matches)


@dataclass(frozen=True)
class ExpansionVector:
    """What a person wants to know of one vector that feedback added to a query.

    Parameters
    ----------
    token_id
        The token it most likely stands for.
    likely
        Tokens of the nearest document vectors with their probability P(t|υ), most likely first.
    sigma
        How much the token tells documents apart.
    weight
        Of the vector in the expanded query.
    sources
        The feedback vectors it stands for: the document of each and its place among the document's vectors.
    """

    token_id: int
    likely: tuple[tuple[int, float], ...]
    sigma: float
    weight: float
    sources: tuple[tuple[str, int], ...] = ()

    @property
    def probability(self) -> float:
        """P(t|υ) of the most likely token."""
        return dict(self.likely).get(self.token_id, 0.0)


@dataclass(frozen=True, eq=False)
class Expansion:
    """A query with the vectors feedback added to it.

    Parameters
    ----------
    query
        The expanded query: the vectors of the original, then those added.
    vectors
        One for each vector added, in their order.
    feedback
        Ids of the documents it learned from, best first.

    Examples
    --------
    >>> query = EncodedQuery(np.array([7, 9], dtype=np.int32), np.eye(2, dtype=np.float32))
    >>> expansion = Expansion(query, (ExpansionVector(9, ((9, 0.8), (4, 0.2)), 5.1, 1.0, (("d1", 3),)),), ("d1",))
    >>> len(expansion), expansion.num_original, expansion.share, expansion.vectors[0].probability
    (1, 1, 0.5, 0.8)
    """

    query: EncodedQuery
    vectors: Sequence[ExpansionVector] = ()
    feedback: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.vectors)

    @property
    def num_original(self) -> int:
        """Vectors of the query before it was expanded."""
        return len(self.query) - len(self.vectors)

    @cached_property
    def share(self) -> float:
        """Of the weight of the expanded query, how much the vectors added have."""
        weights: list[float] = self.query.weights.tolist()
        return sum(weights[self.num_original :]) / max(sum(weights), 1e-30)


@dataclass(frozen=True, eq=False)
class Ranking:
    """The answer to one query: hits from best to worst, and how long each stage took.

    Parameters
    ----------
    query
        The query as it was searched: encoded, or the text where a system searches without ColBERT's vectors.
    hits
        From best to worst; equal scores are in index order.
    timings
        Seconds per stage, in the order the stages ran.
    expansion
        What feedback added to the query, where it was asked for.
    read_before
        Gives the ranking before feedback, which :attr:`before` keeps.
    term_expansion
        What feedback made of a query of terms, where a lexical system was asked for it.

    Examples
    --------
    >>> query = EncodedQuery(np.array([7], dtype=np.int32), np.array([[0.6, 0.8]], dtype=np.float32))
    >>> ranking = Ranking(query, (Hit("d1", 0.9), Hit("d2", 0.5)))
    >>> ranking.doc_ids
    ['d1', 'd2']
    """

    query: EncodedQuery | str
    hits: Sequence[Hit]
    timings: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    expansion: Expansion | None = None
    read_before: Callable[[], Ranking] | None = field(default=None, repr=False)
    term_expansion: TermExpansion | None = None

    def __len__(self) -> int:
        return len(self.hits)

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)

    @property
    def doc_ids(self) -> list[str]:
        """The document ids, from best to worst."""
        return list(self.hits.doc_ids) if isinstance(self.hits, Hits) else [hit.doc_id for hit in self.hits]

    @property
    def encoded_query(self) -> EncodedQuery:
        """The query as it was searched, of a ranking made with ColBERT's vectors."""
        if isinstance(self.query, str):
            raise InputError("the ranking was made without ColBERT's vectors: its query is a text")
        return self.query

    @cached_property
    def before(self) -> Ranking | None:
        """The ranking before feedback, where there was any."""
        return self.read_before() if self.read_before is not None else None
