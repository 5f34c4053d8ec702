"""Feedback without an index: passages another engine found, as texts, ranked again."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property, partial
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from colbert_prf.encoder import Encoder
from colbert_prf.errors import InputError
from colbert_prf.feedback.base import Feedback
from colbert_prf.feedback.frequencies import TokenFrequencies
from colbert_prf.feedback.prf import ColbertPRF
from colbert_prf.index import MemoryIndex
from colbert_prf.search.budget import Execution
from colbert_prf.types import EncodedQuery, Expansion, Hit, Ranking

__all__ = ["CountedSource", "FeedbackFrom", "rerank_texts"]

FeedbackFrom = Literal["scores", "given"]
_DEFAULT = ColbertPRF()


class CountedSource(MemoryIndex):
    """Documents in memory, with the frequencies of a larger collection.

    Parameters
    ----------
    index
        The documents.
    frequencies
        N and N_t of the collection they are from.
    """

    def __init__(self, index: MemoryIndex, frequencies: TokenFrequencies) -> None:
        self.doc_ids, self.texts, self.encoder = index.doc_ids, index.texts, index.encoder
        self.offsets, self.token_ids, self.vectors = index.offsets, index.token_ids, index.vectors
        size = len(frequencies.document_frequencies)
        if index.encoder is not None and size > index.encoder.vocabulary_size:
            raise InputError(
                f"the frequencies are of {size} tokens, the model has {index.encoder.vocabulary_size}; count them "
                "with the tokenizer of the same model"
            )
        self.frequencies = frequencies

    @property
    def num_documents(self) -> int:
        """How many documents the collection has."""
        return self.frequencies.num_documents

    @cached_property
    def document_frequencies(self) -> npt.NDArray[np.int64]:
        """In how many documents of the collection each token is."""
        return self.frequencies.document_frequencies

    @cached_property
    def collection_frequencies(self) -> npt.NDArray[np.int64]:
        """How often each token occurs in the collection."""
        if self.frequencies.collection_frequencies is None:
            raise InputError(
                "the frequencies have no collection_frequencies, which weighting='ictf' needs; count them from texts, "
                "or take weighting='idf'"
            )
        return self.frequencies.collection_frequencies


def rerank_texts(
    query: str | EncodedQuery,
    passages: Iterable[tuple[str, str]],
    *,
    encoder: Encoder | None = None,
    frequencies: TokenFrequencies | None = None,
    feedback: Feedback | None = _DEFAULT,
    feedback_from: FeedbackFrom = "scores",
    k: int | None = None,
) -> Ranking:
    """Rank passages another engine found for a query by ColBERT and feedback, from their texts alone.

    The passages are encoded and scored by MaxSim; feedback learns from the best of them, names its vectors by the
    passages' own tokens, and all are scored again.

    Parameters
    ----------
    query
        A text, or an encoded query of the same model.
    passages
        Pairs of id and text, best first.
    encoder
        The embedded model if left out, which is then opened for this call: give one to rank for many queries.
    frequencies
        Of the collection the passages are from; without them the passages themselves are counted, in which the words
        of the query are common.
    feedback
        How to expand the query; None for MaxSim alone. ``rerank`` and ``rerank_depth`` mean nothing here, where only
        the passages given are scored, and all of them.
    feedback_from
        Which passages feedback learns from: the best by MaxSim (``scores``) or the first as ``given``.
    k
        How many to return; all if left out.

    Returns
    -------
    Ranking
        Of exactly these passages, equal scores in the order given. It has an ``expansion`` and, in ``before``, the
        ranking by MaxSim.

    Raises
    ------
    InputError
        If an id comes twice, ``k`` is not positive, the query's vectors are of another dim, or the frequencies are of
        a larger vocabulary.
    TextError
        If the query is empty or a passage is no string.

    Examples
    --------
    >>> passages = [("b", "Bank rates fell."), ("a", "Goldfish grow all their life."), ("c", "Ponds have goldfish.")]
    >>> ranking = rerank_texts("do fish grow", passages, feedback=ColbertPRF(feedback_docs=1))
    >>> ranking.doc_ids, ranking.expansion.feedback
    (['a', 'c', 'b'], ('a',))
    """
    if k is not None and k < 1:
        raise InputError(f"k must be at least 1, found {k}")
    if feedback_from not in get_args(FeedbackFrom):
        raise InputError(f"feedback_from must be one of {get_args(FeedbackFrom)}, found {feedback_from!r}")
    encoder = encoder or Encoder.load()
    pairs, execution = list(passages), Execution()
    with execution.stage("encode"):
        question = encoder.encode_query(query) if isinstance(query, str) else query
        if question.dim != encoder.dim:
            raise InputError(f"the query has vectors of dim {question.dim}, the model of dim {encoder.dim}")
        if not pairs:
            return Ranking(question, (), expansion=Expansion(question) if feedback is not None else None)
        index = MemoryIndex.create(pairs, encoder=encoder, progress=False)
    with execution.stage("score"):
        before = _ranked(index, question)
    if feedback is None:
        return Ranking(question, before.hits[:k], execution.timings)
    with execution.stage("expansion"):
        collection = index if frequencies is None else CountedSource(index, frequencies)
        first = before if feedback_from == "scores" else _in_order(before, index.doc_ids)
        expansion = feedback.expand(question, first, collection)
    with execution.stage("score again"):
        after = _ranked(index, expansion.query)
    return Ranking(
        after.query, after.hits[:k], execution.timings, expansion, lambda: Ranking(question, before.hits[:k])
    )


def _ranked(index: MemoryIndex, query: EncodedQuery) -> Ranking:
    """All documents by score; one without vectors, which a model without markers makes of an empty text, is last."""
    scores = index.score(query)
    order = np.argsort(-scores, kind="stable").tolist()
    return Ranking(
        query, tuple(Hit(index.doc_id(place), float(scores[place]), partial(index.text, place)) for place in order)
    )


def _in_order(ranking: Ranking, doc_ids: list[str]) -> Ranking:
    """The same hits in another order."""
    hits = {hit.doc_id: hit for hit in ranking}
    return Ranking(ranking.query, tuple(hits[doc_id] for doc_id in doc_ids))
