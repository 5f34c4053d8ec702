"""BM25 over a lexical index, with or without feedback."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from time import perf_counter
from typing import get_args

import numpy as np

from colbert_prf.baselines.lexical.feedback import TermFeedback
from colbert_prf.baselines.lexical.index import LexicalIndex
from colbert_prf.baselines.lexical.snapshot import LexicalSnapshot
from colbert_prf.baselines.lexical.term_scores import BestDocuments, Formula, Idf, best_documents
from colbert_prf.errors import InputError, whole_number
from colbert_prf.search.allowed import where_mask
from colbert_prf.search.arguments import Where, checked_filter
from colbert_prf.search.retriever import DEFAULT_K, Retriever
from colbert_prf.search.scorer import Mask
from colbert_prf.types import Hits, Ranking, TermExplanation, TermMatch

__all__ = ["BM25", "Idf"]


class BM25(Retriever):
    """Score documents by the terms they share with a query.

    The score of a document is the sum over its terms of::

        (k3 + 1) w / (k3 + w) · idf · tf / (tf + k1 (1 - b + b |d| / avg))

    with the weight w of the term in the query, and the length avg of an average document.

    Parameters
    ----------
    index
        What to search.
    k1
        How slowly the frequency of a term saturates.
    b
        How much the length of a document counts, from 0 to 1.
    k3
        How slowly the weight of a term in the query saturates; None if it does not.
    idf
        ``"robertson"``, as in Terrier: log2((N - n + 0.5) / (n + 0.5)), negative for a term of more than half of the
        documents; or ``"lucene"``, as in Anserini: ln(1 + (N - n + 0.5) / (n + 0.5)).
    feedback
        Learn from what was found and search again, for example ``RM3()``.
    where
        A filter of the documents' metadata, as :class:`~colbert_prf.Searcher` takes it. The statistics of terms stay
        those of all documents.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> folder = TemporaryDirectory()
    >>> documents = [("a", "Goldfish grow all their life."), ("b", "Bank rates fell."), ("c", "A tank of water.")]
    >>> index = LexicalIndex.create(Path(folder.name, "my.lexical"), documents)
    >>> BM25(index).search("growing goldfish").doc_ids
    ['a']
    >>> folder.cleanup()
    """

    def __init__(
        self,
        index: LexicalIndex,
        *,
        k1: float = 1.2,
        b: float = 0.75,
        k3: float | None = 8.0,
        idf: Idf = "robertson",
        feedback: TermFeedback | None = None,
        where: Where | None = None,
    ) -> None:
        if not (k1 >= 0 and 0 <= b <= 1 and (k3 is None or k3 >= 0)):
            raise InputError(f"k1 and k3 must not be negative and b must be from 0 to 1, found {k1}, {k3} and {b}")
        if idf not in get_args(Idf):
            raise InputError(f"idf must be one of {get_args(Idf)}, found {idf!r}")
        self.index = index
        self.k1 = k1
        self.b = b
        self.k3 = k3
        self.idf = idf
        self.feedback = feedback
        self.where = checked_filter(where)

    @property
    def formula(self) -> Formula:
        """The parameters."""
        return Formula(self.k1, self.b, self.k3, self.idf)

    def search(self, query: str, k: int = DEFAULT_K, *, where: Where | None = None) -> Ranking:
        """Find the ``k`` best documents; those that share no term with the query are not found.

        Parameters
        ----------
        query
            A text.
        k
            How many.
        where
            A filter for this search, instead of the one of the system; ``{}`` for none.
        """
        return self.search_terms(self.terms_of(query), k, query=query, where=where)

    def terms_of(self, query: str) -> dict[str, float]:
        """The terms of a query, each with the number of times it is in it."""
        return {term: float(count) for term, count in Counter(self.index.analyzer.terms(query)).items()}

    def search_terms(
        self, terms: Mapping[str, float], k: int = DEFAULT_K, *, query: str = "", where: Where | None = None
    ) -> Ranking:
        """Find the ``k`` best documents for weighted terms.

        Parameters
        ----------
        terms
            As they are in the index, with their weights.
        k
            How many.
        query
            The text the terms are from, for the ranking.
        where
            As in :meth:`search`.

        Returns
        -------
        Ranking
            With feedback it has a ``term_expansion`` and, in ``before``, the ranking of the first pass.
        """
        k = whole_number("k", k, least=1)
        snapshot, timings = self.index.snapshot, dict[str, float]()
        started = perf_counter()
        mask = where_mask(snapshot, self.where if where is None else checked_filter(where))
        found = self._found(snapshot, terms, max(k, self.feedback.feedback_docs if self.feedback else 0), mask)
        timings["score"] = perf_counter() - started
        first = BestDocuments(found.positions[:k], found.scores[:k])
        if self.feedback is None:
            return Ranking(query, self._hits(snapshot, first), timings)
        started = perf_counter()
        expansion = self.feedback.expand(terms, snapshot, found.positions, found.scores)
        timings["expansion"] = perf_counter() - started
        started = perf_counter()
        again = self._found(snapshot, expansion.weights, k, mask)
        timings["score again"] = perf_counter() - started
        return Ranking(
            query,
            self._hits(snapshot, again),
            timings,
            read_before=lambda: Ranking(query, self._hits(snapshot, first)),
            term_expansion=expansion,
        )

    def explain(self, query: str, doc_id: str) -> TermExplanation:
        """Tell what each term of the query, expanded if there is feedback, gives to the score of a document."""
        snapshot, terms = self.index.snapshot, self.terms_of(query)
        position = int(snapshot.positions([doc_id])[0])
        weights: Mapping[str, float] = terms
        if self.feedback is not None:
            found = self._found(snapshot, terms, self.feedback.feedback_docs, where_mask(snapshot, self.where))
            weights = self.feedback.expand(terms, snapshot, *found).weights
        matches = []
        for term, weight in weights.items():
            postings = snapshot.postings(term)
            place = int(np.searchsorted(postings.positions, position))
            has = place < len(postings.positions) and postings.positions[place] == position
            count, average_length = snapshot.num_documents, snapshot.average_length
            num_found = len(postings.positions)
            parts = self.formula.parts(postings, snapshot.lengths, weight, count, num_found, average_length)
            frequency, part = (int(postings.frequencies[place]), float(parts[place])) if has else (0, 0.0)
            matches.append(TermMatch(term, frequency, len(postings.positions), weight, part))
        return TermExplanation(doc_id, tuple(matches))

    def _found(self, snapshot: LexicalSnapshot, terms: Mapping[str, float], k: int, mask: Mask) -> BestDocuments:
        return best_documents(snapshot, terms, k, self.formula, mask=mask)

    def _hits(self, snapshot: LexicalSnapshot, found: BestDocuments) -> Hits:
        positions = found.positions.tolist()
        return Hits(
            snapshot.doc_ids_of(found.positions),
            found.scores.tolist(),
            lambda number: self.index.text_in(snapshot, positions[number]),
            lambda number: snapshot.metadata(positions[number]),
        )
