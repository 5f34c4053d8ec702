"""From a query to a ranking."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from colbert_prf.encoder import Encoder
from colbert_prf.encoder.base import available_cores
from colbert_prf.errors import InputError
from colbert_prf.feedback import Feedback
from colbert_prf.feedback.source import source_of
from colbert_prf.index import Index, MemoryIndex
from colbert_prf.index.snapshot import Snapshot
from colbert_prf.kernels.parallel import Workers
from colbert_prf.search.effort import Effort
from colbert_prf.search.engine import Found, default_probes, default_rescore
from colbert_prf.search.explain import explain_hit
from colbert_prf.search.filters import Filter, filter_mask, parse_filter
from colbert_prf.search.first_pass import CompressedPass, ExactPass, FirstPass, PaperPass
from colbert_prf.search.grouping import Group, by_document, check_group, with_passages
from colbert_prf.search.ivfpq import BITS, PaperEngine
from colbert_prf.search.prf_search import Learner, search_with_feedback
from colbert_prf.search.scorer import check_scores
from colbert_prf.types import EncodedQuery, Explanation, Hits, Ranking

__all__ = ["PRESETS", "Preset", "Searcher", "Where"]

Predicate = Callable[[Mapping[str, Any]], bool]
Where = Mapping[str, Any] | Predicate
"""A filter as data, see :mod:`colbert_prf.search.filters`, or a test of a document's metadata."""
Preset = Literal["default", "paper"]
PRESETS: tuple[str, ...] = get_args(Preset)
_Source = Snapshot | MemoryIndex
LARGEST = 2**31 - 1
"""Of a number of documents, centroids or threads; no index has so many, and kernels count in 64 bits."""


class Searcher:
    """Answers queries over an index; a search never changes the next one, and many threads may search at once.

    Parameters
    ----------
    index
        What to search: an index on disk, or one in memory, which is scored exactly.
    threads
        Threads per search unless the search says otherwise; as many as there are cores if left out.
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
        If the preset is unknown or the index does not suit it.

    Examples
    --------
    >>> index = MemoryIndex.create([("a", "Goldfish grow all their life."), ("b", "Bank rates fell.")])
    >>> Searcher(index).search("do fish grow", k=1).doc_ids
    ['a']
    """

    def __init__(
        self,
        index: Index | MemoryIndex,
        *,
        threads: int | None = None,
        preset: Preset | None = None,
        progress: bool = True,
        query_weights: bool = True,
    ) -> None:
        self.index = index
        self.query_weights = query_weights
        self.preset = _checked_preset(preset, index)
        self._paper = PaperEngine(progress=progress) if self.preset == "paper" else None
        self.threads = _positive_or_none("threads", threads) or available_cores()
        self._pool = ThreadPoolExecutor(max(1, available_cores()), thread_name_prefix="colbert-prf")

    def search(
        self,
        query: str | EncodedQuery,
        k: int = 10,
        *,
        probes: int | None = None,
        rescore: int | None = None,
        threads: int | None = None,
        allowed: Iterable[str] | None = None,
        where: Where | None = None,
        feedback: Feedback | None = None,
        relevant: Sequence[str] = (),
        non_relevant: Sequence[str] = (),
        group: Group | None = None,
    ) -> Ranking:
        """Find the ``k`` best documents.

        Parameters
        ----------
        query
            A text, encoded with the index's own model; or an encoded query with any weights.
        k
            How many; fewer come back only if fewer exist.
        probes
            Centroids per query vector whose documents are looked at; by default all documents of an index of up to ten
            million vectors, then 2, 4 or 16 for k up to 10, 100 or more. With the preset ``paper``, lists of the FAISS
            index per query vector, by default 10.
        rescore
            Documents scored exactly; by default 200, 500 or 2,300 for k of 10, 100 or 1,000. With ``feedback`` a
            ReRanker scores all of them again with the expanded query, and the Ranker those that promise most of all
            documents, by default k + 90 at the default weight. Not with the preset ``paper``, which scores all it looks
            at.
        threads
            For this search.
        allowed
            Ids of the documents, or of passages, that may be found.
        where
            A filter of the documents' metadata, such as ``{"source": "garden", "year": {">=": 2020}}``: see
            :mod:`colbert_prf.search.filters`. Or a function of a document's metadata; it is called for every document,
            which takes much longer.
        feedback
            Learn from what was found and search again, for example ``ColbertPRF()``. The answer then has an
            ``expansion``, and in ``before`` the ranking of the first pass.
        relevant, non_relevant
            Ids of documents a person has marked: ``feedback`` learns from the former, all of them, instead of from the
            best of the first pass, and moves away from the latter.
        group
            ``"document"``, of an index made with ``passages``: rank documents by their best passage, which
            ``hit.passage_id`` names. Without, passages are ranked.

        Raises
        ------
        InputError
            If a number is not positive or beyond 2³¹ - 1, a document id is unknown, ``where`` is no filter or names a
            field that no document has, the query's vectors are of another
            dim or its weights so large that a float32 may not hold a score, documents are marked without a feedback
            method, or ``rescore`` is given to the preset ``paper``.
        """
        k, timings = _positive("k", k), dict[str, float]()
        if isinstance(query, str):
            started = perf_counter()
            query = self.encode(query)
            timings["encode"] = perf_counter() - started
        query = self._checked(query)
        check_group(group, self.index)
        if group is not None:
            options: dict[str, Any] = {"probes": probes, "rescore": rescore, "threads": threads, "allowed": allowed}
            options |= {"where": where, "feedback": feedback, "relevant": relevant, "non_relevant": non_relevant}
            found = by_document(lambda depth: self.search(query, depth, **options), k, self.index.num_documents)
            return replace(found, timings={**timings, **found.timings})
        probes, rescore = _positive_or_none("probes", probes), _positive_or_none("rescore", rescore)
        if self.preset == "paper" and rescore is not None:
            raise InputError("the preset 'paper' scores every candidate exactly: leave rescore out, or use no preset")
        relevant, non_relevant = _marked(feedback, relevant, non_relevant)
        threads = _positive_or_none("threads", threads) or self.threads
        allowed = None if allowed is None else _ids("allowed", allowed)
        # One generation for the whole search, whatever writers do meanwhile.
        source = self.index if isinstance(self.index, MemoryIndex) else self.index.snapshot
        if allowed is not None and isinstance(source, Snapshot) and source.manifest.settings.passages is not None:
            allowed = with_passages(source, allowed)
        filters = _Filters(allowed, _checked_where(where))
        learner = None
        if feedback is not None:
            marked, unwanted = (source.positions(dict.fromkeys(ids)) for ids in (relevant, non_relevant))
            learner = Learner(feedback, source_of(source), marked, unwanted, rescore)
        if self.preset != "paper":
            probes = probes or default_probes(k, self.index.num_vectors)
        rescore = rescore or default_rescore(max(k, learner.depth if learner else 0))
        effort = Effort(probes, rescore, threads, self._pool, timings)
        return self._ranking(source, query, k, effort, filters, learner)

    def explain(self, query: str | EncodedQuery, doc_id: str) -> Explanation:
        """Tell which token of a document each query vector matched, and what that gave to its score."""
        return explain_hit(self.index, self._checked(self.encode(query) if isinstance(query, str) else query), doc_id)

    def encode(self, text: str) -> EncodedQuery:
        """Encode a query with the index's own model."""
        query = self.encoder.encode_query(text)
        return query if self.query_weights else EncodedQuery(query.token_ids, query.vectors)

    def _checked(self, query: EncodedQuery) -> EncodedQuery:
        if not isinstance(query, EncodedQuery):
            raise InputError(f"a query is a text or an EncodedQuery, found {type(query).__name__}")
        if query.dim != self.index.dim:
            raise InputError(f"the query has vectors of dim {query.dim}, the index of dim {self.index.dim}")
        check_scores(query, "divide all weights of the query by one number, which leaves the ranking as it is")
        return query

    def _ranking(
        self, source: _Source, query: EncodedQuery, k: int, effort: Effort, filters: _Filters, learner: Learner | None
    ) -> Ranking:
        mask = None
        if filters.any:
            with effort.stage("filter"):
                mask = filters.mask(source)
        first = self._begin(source, query, k, effort, mask, learner)
        if learner is None:
            first.finish()
            return _shown(source, query, first.best(k), effort.timings)
        found, expansion, before = search_with_feedback(first, query, k, learner, effort)
        after = _shown(source, expansion.query, found, effort.timings)
        # The positions and scores alone: a ranking may be kept for long.
        return Ranking(after.query, after.hits, after.timings, expansion, partial(_shown, source, query, before))

    def _begin(
        self,
        source: _Source,
        query: EncodedQuery,
        k: int,
        effort: Effort,
        mask: npt.NDArray[np.bool_] | None,
        learner: Learner | None,
    ) -> FirstPass:
        if isinstance(source, MemoryIndex):
            return ExactPass(source, query, effort, mask)
        depth, early = (k, 0) if learner is None else (max(k, learner.depth), learner.num_best)
        if self._paper is not None:
            return PaperPass(self._paper, source, query, depth, effort, mask)
        return CompressedPass(source, query, depth, effort, mask, early)

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


@dataclass(frozen=True)
class _Filters:
    """Which documents may be found."""

    allowed: Iterable[str] | None
    where: Filter | Predicate | None

    @property
    def any(self) -> bool:
        return self.allowed is not None or self.where is not None

    def mask(self, source: _Source) -> npt.NDArray[np.bool_]:
        """Whether each position may be found."""
        mask = np.zeros(source.num_positions, dtype=np.bool_)
        mask[source.positions(self.allowed) if self.allowed is not None else slice(None)] = True
        if isinstance(source, Snapshot):
            mask &= source.live
        if isinstance(self.where, Filter):
            mask &= filter_mask(self.where, source.fields)
        elif self.where is not None:
            for position in np.flatnonzero(mask).tolist():
                mask[position] = self.where(source.metadata(position))
        return mask


def _shown(source: _Source, query: EncodedQuery, found: Found, timings: dict[str, float] | None = None) -> Ranking:
    """What was found, as a ranking; the time that takes counts where there are timings."""
    started = perf_counter()
    positions = found.positions
    doc_ids = source.doc_ids_of(positions)
    hits = Hits(doc_ids, found.scores.tolist(), lambda rank: source.text(int(positions[rank])))
    if timings is None:
        return Ranking(query, hits)
    timings["hits"] = perf_counter() - started
    return Ranking(query, hits, timings)


def _marked(
    feedback: Feedback | None, relevant: Sequence[str], non_relevant: Sequence[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The ids a person has marked, checked."""
    relevant, non_relevant = _ids("relevant", relevant), _ids("non_relevant", non_relevant)
    if both := set(relevant) & set(non_relevant):
        raise InputError(f"{min(both)!r} is marked as relevant and as not relevant; decide")
    if feedback is not None and not isinstance(feedback, Feedback):
        raise InputError(f"feedback must be a feedback method such as ColbertPRF(), found {feedback!r}")
    if feedback is None and (relevant or non_relevant):
        raise InputError("relevant and non_relevant need a feedback method: give feedback=ColbertPRF()")
    return relevant, non_relevant


def _checked_where(where: Where | None) -> Filter | Predicate | None:
    if where is None or isinstance(where, Filter):
        return where
    if isinstance(where, Mapping):
        return parse_filter(where)
    if callable(where):
        return where
    raise InputError(
        f'where must be a filter such as {{"year": {{">=": 2020}}}} or a function of metadata, found {where!r:.80}'
    )


def _ids(name: str, doc_ids: Iterable[str]) -> tuple[str, ...]:
    if isinstance(doc_ids, str) or not isinstance(doc_ids, Iterable):
        raise InputError(f"{name} must be a sequence of document ids, such as ['d1'], found {doc_ids!r}")
    ids = tuple(doc_ids)
    if wrong := [doc_id for doc_id in ids if not isinstance(doc_id, str)]:
        raise InputError(f"{name} must hold document ids, which are strings, found {wrong[0]!r}")
    return ids


def _checked_preset(preset: str | None, index: Index | MemoryIndex) -> str:
    if preset is not None and preset not in PRESETS:
        raise InputError(f"preset must be one of {PRESETS}, found {preset!r}")
    if preset == "paper" and (isinstance(index, MemoryIndex) or index.bits != BITS):
        found = "one in memory" if isinstance(index, MemoryIndex) else f"one with bits={index.bits}"
        raise InputError(
            f"the preset 'paper' needs an index folder with bits={BITS}, found {found}; create one with "
            f"Index.create(path, documents, bits={BITS}) or `colbert-prf index CORPUS INDEX --bits {BITS}`"
        )
    return preset or "default"


def _positive(name: str, value: int) -> int:
    try:
        whole = operator.index(value)
    except TypeError:
        raise InputError(f"{name} must be a whole number, found {value!r}") from None
    if whole < 1:
        raise InputError(f"{name} must be at least 1, found {value}")
    if whole > LARGEST:
        raise InputError(f"{name} must be at most {LARGEST:,}, found {value}; the number of documents gives all")
    return whole


def _positive_or_none(name: str, value: int | None) -> int | None:
    return None if value is None else _positive(name, value)
