"""From a query to a ranking."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Event
from time import perf_counter
from types import TracebackType
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from colbert_prf.encoder import Encoder
from colbert_prf.encoder.base import available_cores
from colbert_prf.encoder.ordered import ordered_map
from colbert_prf.errors import InputError
from colbert_prf.feedback import Feedback
from colbert_prf.index import Index, MemoryIndex
from colbert_prf.index.collection import Collection
from colbert_prf.kernels.parallel import Workers
from colbert_prf.search.arguments import (
    PRESETS,
    Predicate,
    Preset,
    Where,
    checked_filter,
    checked_ids,
    checked_preset,
    feedback_method,
    marked_ids,
    positive,
    positive_or_none,
)
from colbert_prf.search.effort import Effort
from colbert_prf.search.engine import Found, default_probes, default_rescore
from colbert_prf.search.explain import explain_hit
from colbert_prf.search.filters import Filter, filter_mask
from colbert_prf.search.first_pass import CompressedPass, ExactPass, FirstPass, PaperPass
from colbert_prf.search.grouping import Group, by_document, check_group, expand_to_passages
from colbert_prf.search.ivfpq import PaperEngine
from colbert_prf.search.prf_search import Learner, search_with_feedback
from colbert_prf.search.retriever import DEFAULT_K, Retriever
from colbert_prf.search.scorer import check_scores
from colbert_prf.types import EncodedDocument, EncodedQuery, Explanation, Hits, Ranking

__all__ = ["PRESETS", "Preset", "Searcher", "Where"]


class Searcher(Retriever):
    """Answers queries over an index; a search never changes the next one, and many threads may search at once.

    It is a :class:`Retriever`: what it is given here besides the index holds for every search that does not say
    otherwise, so that ``Searcher(index, feedback="prf")`` is a system that others build on. It has threads of its own:
    :meth:`close` ends them, and so does leaving a ``with`` block.

    Parameters
    ----------
    index
        What to search: an index on disk, or one in memory, which is scored exactly.
    k, feedback, probes, rescore, exact, where, group
        As in :meth:`search`.
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
        If the preset is unknown or the index does not suit it, or a default is not what a search takes.

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
        k: int = DEFAULT_K,
        feedback: Feedback | str | None = None,
        probes: int | None = None,
        rescore: int | None = None,
        exact: bool = False,
        where: Where | None = None,
        group: Group | None = None,
        threads: int | None = None,
        preset: Preset | None = None,
        progress: bool = True,
        query_weights: bool = True,
    ) -> None:
        self.index = index
        self.query_weights = query_weights
        self.preset = checked_preset(preset, index)
        self._paper = PaperEngine(progress=progress) if self.preset == "paper" else None
        self._pool = ThreadPoolExecutor(max(1, available_cores()), thread_name_prefix="colbert-prf")
        self._owns_pool, self._closed = True, Event()
        self._set_defaults(k, feedback, probes, rescore, exact, where, group, threads)

    def _set_defaults(
        self,
        k: int,
        feedback: Feedback | str | None,
        probes: int | None,
        rescore: int | None,
        exact: bool,
        where: Where | None,
        group: Group | None,
        threads: int | None,
    ) -> None:
        self.k = positive("k", k)
        self.feedback = feedback_method(feedback)
        self.probes = positive_or_none("probes", probes)
        self.rescore = positive_or_none("rescore", rescore)
        self.exact = exact
        self._check_effort(self.probes, self.rescore, exact)
        self.where = where
        self._filter = checked_filter(where)
        self.group = group
        check_group(group, self.index.snapshot)
        self.threads = positive_or_none("threads", threads) or available_cores()

    def with_defaults(self, **defaults: Any) -> Searcher:
        """The same searcher with other defaults: ``k``, ``feedback``, ``probes``, ``rescore``,
        ``exact``, ``where``, ``group``, ``threads``.

        It shares the threads of this one, so that one searcher serves as many systems; closing it leaves these alone.

        >>> searcher = Searcher(MemoryIndex.create([("a", "Goldfish grow all their life."), ("b", "Bank rates fell.")]))
        >>> searcher.with_defaults(k=1).search("do fish grow").doc_ids
        ['a']
        """
        names = ("k", "feedback", "probes", "rescore", "exact", "where", "group", "threads")
        known = {name: getattr(self, name) for name in names}
        if unknown := [name for name in defaults if name not in known]:
            raise InputError(f"a searcher has no default {unknown[0]!r}; it has {', '.join(known)}")
        changed = copy.copy(self)
        changed._owns_pool = False
        changed._set_defaults(**{**known, **defaults})
        return changed

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

        What is left out is as the searcher was told, and by default as said here.

        Parameters
        ----------
        query
            A text, encoded with the index's own model; or an encoded query with any weights.
        k
            How many, by default 10; fewer come back only if fewer exist.
        probes
            Centroids per query vector whose documents are looked at; by default all documents of an index of up to ten
            million vectors, then 2, 4 or 16 for k up to 10, 100 or more. With the preset ``paper``, lists of the FAISS
            index per query vector, by default 10.
        rescore
            Documents scored exactly. By default 200, 500 or 2,300 for k of 10, 100 or 1,000, and with them those with
            rare tokens of the query and those that may be among the best ten by what is known of the error of
            approximate scores: few for a question, thousands for a rare word. With ``feedback`` a ReRanker scores all
            of them again with the expanded query, and the Ranker those that promise most of all documents, by default
            k + 90 at the default weight. Not with the preset ``paper``, which scores all it looks at.
        threads
            For this search.
        allowed
            Ids of the documents, or of passages, that may be found.
        where
            A filter of the documents' metadata, such as ``{"source": "garden", "year": {">=": 2020}}``: see
            :mod:`colbert_prf.search.filters`; ``{}`` for none, whatever the searcher was told. Or a function of a
            document's metadata; it is called for every document, which takes much longer.
        feedback
            Learn from what was found and search again: a method such as ``ColbertPRF()``, or the name of one with its
            defaults, ``"prf"`` or ``"centroid"``; False for none, whatever the searcher was told. The answer then has
            an ``expansion``, and in ``before`` the ranking of the first pass.
        relevant, non_relevant
            Ids of documents a person has marked: ``feedback`` learns from the former, all of them, instead of from the
            best of the first pass, and moves away from the latter.
        feedback_texts
            Texts that ``feedback`` learns from as if they were passages, such as answers that a language model wrote,
            instead of from the best of the first pass; see :mod:`colbert_prf.feedback.given_texts`.
        with_passages
            With ``feedback_texts``: learn from the best of the first pass as well.
        exact
            Score every document exactly, in both passes: nothing is missed, and the time grows with the index, some 0.1
            seconds for a million vectors on one core. An index in memory is always searched so.
        group
            ``"document"``, of an index made with ``passages``: rank documents by their best passage, which
            ``hit.passage_id`` names. Without, passages are ranked.

        Raises
        ------
        InputError
            If a number is not positive or beyond 2³¹ - 1, a document id is unknown, ``where`` is no filter or names a
            field that no document has, ``group`` is asked of an index without passages, the query's vectors are of
            another dim or its weights so large that a float32 may not hold a score, documents are marked without a
            feedback method, ``exact`` is given with ``probes`` or ``rescore``, ``rescore`` or ``exact`` to the preset
            ``paper``, or the searcher is closed.
        """
        if self._closed.is_set():
            raise InputError("the searcher is closed; make another with Searcher(index)")
        k, timings = self.k if k is None else positive("k", k), dict[str, float]()
        method = self.feedback if feedback is None else feedback_method(feedback)
        if isinstance(query, str):
            started = perf_counter()
            query = self.encode(query)
            timings["encode"] = perf_counter() - started
        encoded = self._checked(query)
        probes = positive_or_none("probes", probes) or self.probes
        rescore = positive_or_none("rescore", rescore) or self.rescore
        exact = self.exact if exact is None else exact
        self._check_effort(probes, rescore, exact)
        relevant, non_relevant = marked_ids(method, relevant, non_relevant)
        texts = self._encoded_texts(method, feedback_texts, with_passages)
        threads = positive_or_none("threads", threads) or self.threads
        # One generation for the whole search, whatever writers do meanwhile.
        collection = self.index.snapshot
        widen, rescore = rescore is None and not exact, max(1, collection.num_positions) if exact else rescore
        learner = None
        if method is not None:
            marked, unwanted = (collection.positions(dict.fromkeys(ids)) for ids in (relevant, non_relevant))
            learner = Learner(method, collection, marked, unwanted, rescore, texts, with_passages)
        ids = None if allowed is None else checked_ids("allowed", allowed)
        mask = _mask(collection, ids, self._filter if where is None else checked_filter(where), timings)

        def effort(depth: int) -> Effort:
            near = probes
            if self.preset != "paper" and not exact:
                near = probes or default_probes(depth, self.index.num_vectors)
            best = rescore or default_rescore(max(depth, learner.depth if learner else 0))
            return Effort(near, best, threads, self._pool, timings, widen)

        find = partial(self._ranking, collection, encoded, effort, mask, learner)
        group = self.group if group is None else group
        check_group(group, collection)
        return find(k) if group is None else by_document(find, k, collection.num_documents)

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
        threads = positive_or_none("threads", options.pop("threads", None)) or self.threads
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
            query = self.encode(query) if self.feedback is None else self.search(query, k).encoded_query
        return explain_hit(self.index.snapshot, self._checked(query), doc_id)

    def _check_effort(self, probes: int | None, rescore: int | None, exact: bool) -> None:
        if exact and (probes is not None or rescore is not None):
            raise InputError("exact=True scores every document: leave probes and rescore out")
        if self.preset == "paper" and (rescore is not None or exact):
            name = "rescore" if rescore is not None else "exact"
            raise InputError(f"the preset 'paper' scores every candidate exactly: leave {name} out, or use no preset")

    def encode(self, text: str) -> EncodedQuery:
        """Encode a query with the index's own model."""
        query = self.encoder.encode_query(text)
        return query if self.query_weights else EncodedQuery(query.token_ids, query.vectors)

    def _encoded_texts(
        self, method: Feedback | None, given: Sequence[str | EncodedDocument], with_passages: bool
    ) -> list[EncodedDocument]:
        """The texts feedback learns from, encoded and checked."""
        if isinstance(given, str) or not isinstance(given, Iterable):
            raise InputError(
                f"feedback_texts must be a sequence of texts, such as ['Carp live long.'], found {given!r}"
            )
        texts = list(given)
        if method is None and texts:
            raise InputError("feedback_texts need a feedback method: give feedback=ColbertPRF()")
        if with_passages and not texts:
            raise InputError(
                "with_passages goes with feedback_texts; without these feedback learns from passages anyway"
            )
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

    def _ranking(
        self,
        collection: Collection,
        query: EncodedQuery,
        effort_for: Callable[[int], Effort],
        mask: npt.NDArray[np.bool_] | None,
        learner: Learner | None,
        k: int,
    ) -> Ranking:
        effort = effort_for(k)
        first = self._begin(collection, query, k, effort, mask, learner)
        if learner is None:
            first.finish()
            return _shown(collection, query, first.best(k), effort.timings)
        found, expansion, before = search_with_feedback(first, query, k, learner, effort)
        after = _shown(collection, expansion.query, found, effort.timings)
        # The positions and scores alone: a ranking may be kept for long.
        return Ranking(after.query, after.hits, after.timings, expansion, partial(_shown, collection, query, before))

    def _begin(
        self,
        collection: Collection,
        query: EncodedQuery,
        k: int,
        effort: Effort,
        mask: npt.NDArray[np.bool_] | None,
        learner: Learner | None,
    ) -> FirstPass:
        if (stored := collection.on_disk) is None:
            return ExactPass(collection, query, effort, mask)
        depth, early = (k, 0) if learner is None else (max(k, learner.depth), learner.num_best)
        if self._paper is not None:
            return PaperPass(self._paper, stored, query, depth, effort, mask)
        return CompressedPass(stored, query, depth, effort, mask, early)

    @property
    def workers(self) -> Workers:
        """The threads this searcher computes with, as kernels take them."""
        return {"threads": self.threads, "executor": self._pool}

    @property
    def encoder(self) -> Encoder:
        """The model of the index, which encodes queries given as texts."""
        if (encoder := self.index.encoder) is None:
            raise InputError("the index has no encoder; give an EncodedQuery, or an encoder when creating the index")
        return encoder


def _shown(
    collection: Collection, query: EncodedQuery, found: Found, timings: dict[str, float] | None = None
) -> Ranking:
    """What was found, as a ranking; the time that takes counts where there are timings."""
    started = perf_counter()
    positions = found.positions
    doc_ids = collection.doc_ids_of(positions)
    hits = Hits(
        doc_ids,
        found.scores.tolist(),
        lambda rank: collection.text(int(positions[rank])),
        lambda rank: collection.metadata(int(positions[rank])),
    )
    if timings is None:
        return Ranking(query, hits)
    timings["hits"] = perf_counter() - started
    return Ranking(query, hits, timings)


def _mask(
    collection: Collection,
    allowed: tuple[str, ...] | None,
    where: Filter | Predicate | None,
    timings: dict[str, float],
) -> npt.NDArray[np.bool_] | None:
    """Whether each position may be found; None if all may."""
    if allowed is None and where is None:
        return None
    started = perf_counter()
    if allowed is not None and collection.passages is not None:
        allowed = expand_to_passages(collection, allowed)
    mask = np.zeros(collection.num_positions, dtype=np.bool_)
    mask[collection.positions(allowed) if allowed is not None else slice(None)] = True
    mask &= collection.live
    if isinstance(where, Filter):
        mask &= filter_mask(where, collection.fields)
    elif where is not None:
        for position in np.flatnonzero(mask).tolist():
            mask[position] = where(collection.metadata(position))
    timings["filter"] = perf_counter() - started
    return mask
