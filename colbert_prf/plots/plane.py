"""What the paper's figure of feedback shows: vectors of a query, of the passages learned from, and of the centroids."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from colbert_prf.encoder import Encoder
from colbert_prf.errors import InputError
from colbert_prf.feedback import ColbertPRF
from colbert_prf.feedback.weighting import inverse_frequency
from colbert_prf.index.collection import DocumentVectors
from colbert_prf.plots.projection import Projection, fit_projection
from colbert_prf.search.searcher import Searcher
from colbert_prf.search.spelling import likely_ids
from colbert_prf.types import EncodedDocument, EncodedQuery, Expansion

__all__ = ["Comparison", "Plane", "feedback_plane", "is_word"]


@dataclass(frozen=True, eq=False)
class Comparison:
    """A text from another context.

    Parameters
    ----------
    document
        The text, encoded.
    shared
        Numbers of its vectors whose word the query, a centroid or a passage has too, of shape (n,).
    twins
        Numbers of the feedback vectors with one of these tokens, of shape (m,).
    """

    document: EncodedDocument
    shared: npt.NDArray[np.int64]
    twins: npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Plane:
    """The vectors of a figure, and the plane they are projected into.

    Parameters
    ----------
    query
        As it was asked.
    expansions
        One for each method, with all centroids, those with the largest σ first.
    feedback
        The vectors of the passages learned from.
    doc_ids
        Of these passages, best first.
    comparison
        A text to compare with.
    """

    query: EncodedQuery
    expansions: Sequence[Expansion]
    feedback: DocumentVectors
    doc_ids: Sequence[str]
    comparison: Comparison | None = None

    @cached_property
    def projection(self) -> Projection:
        """The principal components of query and feedback vectors; everything else is projected into their plane."""
        return fit_projection(np.concatenate([self.query.vectors, self.feedback.vectors]))


def feedback_plane(
    searcher: Searcher,
    query: EncodedQuery,
    methods: Sequence[ColbertPRF],
    *,
    relevant: Sequence[str] = (),
    non_relevant: Sequence[str] = (),
    compare: str | None = None,
    **options: Any,
) -> Plane:
    """Search, and learn from what was found with each of some methods.

    Parameters
    ----------
    searcher
        What to search with.
    query
        What to search.
    methods
        At least one.
    relevant, non_relevant
        Ids of documents a person has marked.
    compare
        A text from another context.
    options
        Of the search.

    Raises
    ------
    InputError
        If there is nothing to learn from.
    """
    depth = max(method.feedback_docs for method in methods) + len(non_relevant)
    found = searcher.search(query, depth, **options)
    expansions = [
        method.expand(query, relevant or found, searcher.index, non_relevant=non_relevant) for method in methods
    ]
    if not len(expansions[0].feedback):
        raise InputError("there is nothing to learn from: the index has no passage with vectors")
    collection = searcher.index.snapshot
    feedback = collection.vectors_of(collection.positions(expansions[0].feedback))
    comparison = _compared(compare, query, expansions, feedback, searcher) if compare else None
    return Plane(query, expansions, feedback, expansions[0].feedback, comparison)


def is_word(query: EncodedQuery, encoder: Encoder) -> npt.NDArray[np.bool_]:
    """Which vectors of a query are of its text, not of what it was filled up with."""
    augmenting = encoder.settings.augment_to > 0
    spelled = encoder.tokens(query.token_ids.tolist())
    return np.array([not (augmenting and token == encoder.settings.augment_token) for token in spelled], np.bool_)


def _compared(
    text: str, query: EncodedQuery, expansions: Sequence[Expansion], feedback: DocumentVectors, searcher: Searcher
) -> Comparison:
    encoder, collection = searcher.encoder, searcher.index.snapshot
    document = next(encoder.encode_documents([text]))
    known = {*query.token_ids.tolist(), *feedback.token_ids.tolist()} - encoder.special_ids
    known.update(
        token_id for expansion in expansions for vector in expansion.vectors for token_id in likely_ids(vector)
    )
    words = encoder.tokens(document.token_ids.tolist())
    common = np.array(
        [
            token_id in known and any(map(str.isalnum, word))
            for token_id, word in zip(document.token_ids.tolist(), words, strict=True)
        ],
        dtype=np.bool_,
    )
    rarity = inverse_frequency(collection.document_frequencies, document.token_ids, collection.num_documents)
    # Of the words in common those that tell passages apart: "tank", not "the".
    shared = np.flatnonzero(common & (rarity >= rarity[common].max(initial=0) / 2))
    twins = np.flatnonzero(np.isin(feedback.token_ids, document.token_ids[shared]))
    return Comparison(document, shared, twins)
