"""From a query to a ranking."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Event
from types import TracebackType
from typing import Any, Literal, TypeAlias

from colbert_prf.encoder import Encoder
from colbert_prf.encoder.base import available_cores
from colbert_prf.encoder.ordered import ordered_map
from colbert_prf.errors import InputError
from colbert_prf.feedback import Feedback
from colbert_prf.index import Index, MemoryIndex
from colbert_prf.index.collection import Collection
from colbert_prf.kernels.workers import Workers
from colbert_prf.search.allowed import allowed_mask
from colbert_prf.search.arguments import (
    PRESETS,
    Preset,
    SearchOptions,
    Where,
    checked_preset,
    checked_texts,
    marked_ids,
)
from colbert_prf.search.budget import Execution
from colbert_prf.search.candidates import find_candidates
from colbert_prf.search.exact_pass import ExactPass
from colbert_prf.search.explain import explain_hit
from colbert_prf.search.first_pass import FirstPass, PrunedPass
from colbert_prf.search.grouping import Group, by_document, check_group
from colbert_prf.search.ivfpq import PaperEngine
from colbert_prf.search.paper_pass import PaperPass
from colbert_prf.search.prf_search import Learner, search_with_feedback
from colbert_prf.search.retriever import Retriever, several_queries
from colbert_prf.search.scorer import TopDocuments, check_scores
from colbert_prf.types import EncodedDocument, EncodedQuery, Explanation, Hits, Ranking

__all__ = ["PRESETS", "Preset", "Searcher", "Where"]

Begin: TypeAlias = Callable[[int, int], FirstPass]
"""Begins a first pass for ``k`` documents, of which the best ``early`` are wanted before all are scored."""


class Searcher(Retriever):
    """Answers queries over an index; a search never changes the next one, and many threads may search at once.

    It is a :class:`Retriever`. The parameters from ``k`` to ``threads`` hold for every search that does not give its
    own, so ``Searcher(index, feedback="prf")`` is a system that others build on. A searcher has threads of its own:
    :meth:`close` ends them, and so does leaving a ``with`` block.

    Parameters
    ----------
    index
        What to search: an index on disk, or one in memory, which is scored exactly.
    k
        Documents to find; fewer come back only if fewer exist.
    feedback
        Learn from what was found and search again: a method such as ``ColbertPRF()``, or the name of one with its
        defaults, ``"prf"`` or ``"centroid"``; False, for one search, for none. The answer then has an ``expansion``,
        and in ``before`` the ranking of the first pass.
    probes
        Centroids per query vector whose documents are looked at; by default all documents of an index of up to ten
        million vectors, then 2, 4 or 16 for k up to 10, 100 or more. With the preset ``paper``, lists of the FAISS
        index per query vector, by default 10.
    rescore
        Documents scored exactly. By default 200, 500 or 2,300 for k of 10, 100 or 1,000, as well as those with
        rare tokens of the query and those that may be among the best ten by what is known of the error of approximate
        scores: few for a question, thousands for a rare word. With ``feedback`` the documents that look best for the
        expanded query are scored exactly again, by default k + 90 at the default weight: the ReRanker takes them from
        those the first pass scored, the Ranker from all. Not with the preset ``paper``, which scores all it looks at.
    exact
        Score every document exactly, in both passes: nothing is missed, and the time grows with the index, some 0.1
        seconds for a million vectors on one core. An index in memory is always searched so.
    where
        A filter of the documents' metadata, such as ``{"source": "garden", "year": {">=": 2020}}``: see
        :mod:`colbert_prf.search.filters`; ``{}``, for one search, for none. Or a function of a document's metadata: it
        is called for every document, which takes much longer.
    group
        ``"document"``, of an index made with ``passages``: rank documents by their best passage, which
        ``hit.passage_id`` names. Without, passages are ranked.
    threads
        Threads per search; as many as there are cores if left out.
    preset
        ``"paper"`` for the search of the authors of ColBERT-PRF, to compare with: see
        :mod:`colbert_prf.search.ivfpq`. It needs an index with ``bits=16``; its first search builds a
        FAISS index, and keeps it in the folder of the index.
    progress
        Whether a bar may be shown while that is built.
    query_weights
        Whether queries given as texts have the weights of the index's model; if not, all vectors weigh 1.

    Raises
    ------
    InputError
        If the preset is unknown or the index does not suit it, or an option is not what a search takes.

    Examples
    --------
    >>> index = MemoryIndex.create([("a", "Goldfish grow all their life."), ("b", "Bank rates fell.")])
    >>> with Searcher(index) as searcher:
    ...     searcher.search("do fish grow", k=1).doc_ids
    ['a']
    """

    def __init__(
        self,
        index: Index | MemoryIndex,
        *,
        preset: Preset | None = None,
        progress: bool = True,
        query_weights: bool = True,
        k: int | None = None,
        feedback: Feedback | str | None = None,
        probes: int | None = None,
        rescore: int | None = None,
        exact: bool = False,
        where: Where | None = None,
        group: Group | None = None,
        threads: int | None = None,
    ) -> None:
        self.index = index
        self.query_weights = query_weights
        self.preset = checked_preset(preset, index)
        self._paper = PaperEngine(progress=progress) if self.preset == "paper" else None
        given: dict[str, Any] = {"k": k, "feedback": feedback, "probes": probes, "rescore": rescore}
        given |= {"exact": exact, "where": where, "group": group, "threads": threads}
        self._options = SearchOptions()
        self._options = self._changed(given)
        check_group(group, index.snapshot)
        self._pool = ThreadPoolExecutor(max(1, available_cores()), thread_name_prefix="colbert-prf")
        self._owns_pool, self._closed = True, Event()

    @property
    def options(self) -> SearchOptions:
        """What holds for every search that does not give its own."""
        return self._options

    def with_defaults(self, **defaults: Any) -> Searcher:
        """The same searcher with other defaults: ``k``, ``feedback``, ``probes``, ``rescore``,
        ``exact``, ``where``, ``group``, ``threads``.

        It shares the threads of this one, so that one searcher serves as many systems; closing it leaves these alone.

        >>> searcher = Searcher(MemoryIndex.create([("a", "Goldfish grow all their life."), ("b", "Bank rates fell.")]))
        >>> searcher.with_defaults(k=1).search("do fish grow").doc_ids
        ['a']
        """
        options = self._options.changed(defaults)
        options.check_preset(self.preset)
        check_group(options.group, self.index.snapshot)
        searcher = copy.copy(self)
        searcher._owns_pool, searcher._options = False, options
        return searcher

    def _changed(self, given: Mapping[str, Any]) -> SearchOptions:
        """The options of this searcher, except those given that are not None."""
        options = self._options.changed({name: value for name, value in given.items() if value is not None})
        options.check_preset(self.preset)
        return options

    def close(self) -> None:
        """End the threads; a search after that is an :class:`InputError`."""
        if self._owns_pool:
            self._closed.set()
            self._pool.shutdown()

    def __enter__(self) -> Searcher:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def search(
        self,
        query: str | EncodedQuery,
        k: int | None = None,
        *,
        probes: int | None = None,
        rescore: int | None = None,
        threads: int | None = None,
        allowed: Iterable[str] | None = None,
        where: Where | None = None,
        feedback: Feedback | str | Literal[False] | None = None,
        relevant: Sequence[str] = (),
        non_relevant: Sequence[str] = (),
        feedback_texts: Sequence[str | EncodedDocument] = (),
        with_passages: bool = False,
        exact: bool | None = None,
        group: Group | None = None,
    ) -> Ranking:
        """Find the ``k`` best documents.

        Parameters
        ----------
        query
            A text, encoded with the index's own model; or an encoded query with any weights.
        k, probes, rescore, threads, where, feedback, exact, group
            As :class:`Searcher` describes them; what is left out is as the searcher was told.
        allowed
            Ids of the documents, or of passages, that may be found.
        relevant, non_relevant
            Ids of documents a person has marked: ``feedback`` learns from the former, all of them, instead of from the
            best of the first pass, and moves away from the latter.
        feedback_texts
            Texts that ``feedback`` learns from as if they were passages, such as answers that a language model wrote,
            instead of from the best of the first pass; see :mod:`colbert_prf.feedback.given_texts`.
        with_passages
            With ``feedback_texts``: learn from the best of the first pass as well.

        Raises
        ------
        InputError
            If an argument is not what it should be; the message says what was found and what to give.
        """
        given: dict[str, Any] = {"k": k, "probes": probes, "rescore": rescore, "threads": threads, "where": where}
        options = self._changed(given | {"feedback": feedback, "exact": exact, "group": group})
        execution = self._execution(options)
        encoded = self._encoded(query, execution)
        # One generation for the whole search, whatever writers do meanwhile.
        collection = self._collection()
        check_group(options.group, collection)
        texts = self._encoded_texts(checked_texts(options.feedback, feedback_texts, with_passages=with_passages))
        marked = marked_ids(options.feedback, relevant, non_relevant)
        learner = _learner(options, collection, marked, texts, with_passages)
        begin = self._beginning(collection, encoded, options, allowed, execution)
        find = partial(self._find, collection, encoded, learner, begin, execution)
        return find(options.k) if options.group is None else by_document(find, options.k, collection.num_documents)

    def search_many(
        self, queries: Iterable[str | EncodedQuery], k: int | None = None, **options: Any
    ) -> Iterator[Ranking]:
        """Answer queries on all threads of the searcher, each query on one, so that later ones are encoded meanwhile.

        Rankings come in the order of the queries and are those of :meth:`search`. Queries are read as they are needed,
        and at most eight a thread are under way.

        Parameters
        ----------
        queries
            Texts or encoded queries, of any number.
        k, options
            As in :meth:`search`, for all queries; ``threads`` are queries at once.

        Examples
        --------
        >>> searcher = Searcher(MemoryIndex.create([("a", "Goldfish grow all their life."), ("b", "Bank rates fell.")]))
        >>> [ranking.doc_ids for ranking in searcher.search_many(["do fish grow", "rates of a bank"], k=1)]
        [['a'], ['b']]
        """
        queries = several_queries(queries)
        threads = self._changed({"threads": options.pop("threads", None)}).threads or available_cores()
        return ordered_map(lambda query: self.search(query, k, threads=1, **options), queries, threads=threads)

    def explain(self, query: str | EncodedQuery, doc_id: str, k: int | None = None) -> Explanation:
        """Tell which token of a document each query vector matched, and what that gave to its score.

        Parameters
        ----------
        query
            A text or an encoded query. Where the searcher has feedback, what it adds to a text counts; an encoded
            query, such as ``ranking.encoded_query``, is explained as it is.
        doc_id
            The document.
        k
            Of the search that found it: what feedback learns from may depend on it.
        """
        if isinstance(query, str):
            query = self.encode(query) if self._options.feedback is None else self.search(query, k).encoded_query
        return explain_hit(self.index.snapshot, self._checked(query), doc_id)

    def encode(self, text: str) -> EncodedQuery:
        """Encode a query with the index's own model."""
        query = self.encoder.encode_query(text)
        return query if self.query_weights else EncodedQuery(query.token_ids, query.vectors)

    def _encoded(self, query: str | EncodedQuery, execution: Execution) -> EncodedQuery:
        if not isinstance(query, str):
            return self._checked(query)
        with execution.stage("encode"):
            encoded = self.encode(query)
        return self._checked(encoded)

    def _encoded_texts(self, texts: Sequence[str | EncodedDocument]) -> list[EncodedDocument]:
        """The texts feedback learns from, encoded."""
        raw = [text for text in texts if not isinstance(text, EncodedDocument)]
        encoded = self.encoder.encode_documents(raw) if raw else iter(())
        documents = [text if isinstance(text, EncodedDocument) else next(encoded) for text in texts]
        if wrong := [document for document in documents if document.dim != self.index.dim]:
            raise InputError(f"a feedback text has vectors of dim {wrong[0].dim}, the index of dim {self.index.dim}")
        return documents

    def _checked(self, query: EncodedQuery) -> EncodedQuery:
        if not isinstance(query, EncodedQuery):
            raise InputError(f"a query is a text or an EncodedQuery, found {type(query).__name__}")
        if query.dim != self.index.dim:
            raise InputError(f"the query has vectors of dim {query.dim}, the index of dim {self.index.dim}")
        check_scores(query, "divide all weights of the query by one number, which leaves the ranking as it is")
        return query

    def _execution(self, options: SearchOptions) -> Execution:
        if self._closed.is_set():
            raise InputError("the searcher is closed; make another with Searcher(index)")
        return Execution({"threads": options.threads or available_cores(), "executor": self._pool})

    def _collection(self) -> Collection:
        """The documents that a search looks at."""
        return self.index.snapshot

    def _find(
        self,
        collection: Collection,
        query: EncodedQuery,
        learner: Learner | None,
        begin: Begin,
        execution: Execution,
        k: int,
    ) -> Ranking:
        depth = k if learner is None else max(k, learner.depth)
        first = begin(depth, learner.num_best if learner else 0)
        if learner is None:
            first.finish()
            return _shown(collection, query, first.best(k), execution)
        answer = search_with_feedback(first, query, k, learner, execution)
        after = _shown(collection, answer.expansion.query, answer.after, execution)
        # The positions and scores alone: a ranking may be kept for long.
        before = partial(_shown, collection, query, answer.before)
        return Ranking(after.query, after.hits, after.timings, answer.expansion, before)

    def _beginning(
        self,
        collection: Collection,
        query: EncodedQuery,
        options: SearchOptions,
        allowed: Iterable[str] | None,
        execution: Execution,
    ) -> Begin:
        """What begins the first passes of one search."""
        mask = allowed_mask(collection, allowed, options.where, execution)

        def begin(k: int, early: int) -> FirstPass:
            if (local := collection.local) is None:
                return ExactPass(collection, query, execution, mask)
            if self._paper is not None:
                return PaperPass(self._paper, local, query, k, options.probes, execution, mask)
            budget = options.budget(k, local.manifest.num_vectors, local.num_positions)
            candidates = find_candidates(local, query, k, budget, execution, allowed=mask)
            return PrunedPass(candidates, k, budget, execution, early)

        return begin

    @property
    def workers(self) -> Workers:
        """The threads this searcher computes with, as kernels take them."""
        return {"threads": self._options.threads or available_cores(), "executor": self._pool}

    @property
    def encoder(self) -> Encoder:
        """The model of the index, which encodes queries given as texts."""
        if (encoder := self.index.encoder) is None:
            raise InputError("the index has no encoder; give an EncodedQuery, or an encoder when creating the index")
        return encoder


def _learner(
    options: SearchOptions,
    collection: Collection,
    marked: tuple[tuple[str, ...], tuple[str, ...]],
    texts: Sequence[EncodedDocument],
    with_passages: bool,
) -> Learner | None:
    """The feedback method with what it learns from; None without a method."""
    if options.feedback is None:
        return None
    relevant, non_relevant = (collection.positions(dict.fromkeys(ids)) for ids in marked)
    rescore = max(1, collection.num_positions) if options.exact else options.rescore
    return Learner(options.feedback, collection, relevant, non_relevant, rescore, texts, with_passages)


def _shown(
    collection: Collection, query: EncodedQuery, documents: TopDocuments, execution: Execution | None = None
) -> Ranking:
    """Documents as a ranking."""
    execution, positions = execution or Execution(), documents.positions
    with execution.stage("hits"):
        hits = Hits(
            collection.doc_ids_of(positions),
            documents.scores.tolist(),
            lambda rank: collection.text(int(positions[rank])),
            lambda rank: collection.metadata(int(positions[rank])),
        )
    return Ranking(query, hits, execution.timings)
