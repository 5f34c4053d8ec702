"""From a query to a ranking."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from colbert_prf.effort import Effort
from colbert_prf.encoder import Encoder
from colbert_prf.encoder.base import available_cores
from colbert_prf.engine import Found, default_probes, default_rescore
from colbert_prf.errors import InputError
from colbert_prf.explain import explain_hit
from colbert_prf.feedback import Feedback
from colbert_prf.feedback.source import source_of
from colbert_prf.index import Index, MemoryIndex
from colbert_prf.index.snapshot import Snapshot
from colbert_prf.kernels.parallel import Workers
from colbert_prf.paper import BITS, PaperEngine
from colbert_prf.passes import CompressedPasses, ExactPasses, PaperPasses, Passes
from colbert_prf.types import EncodedQuery, Expansion, Explanation, Hits, Ranking

__all__ = ["PRESETS", "Preset", "Searcher"]

Predicate = Callable[[Mapping[str, Any]], bool]
Preset = Literal["default", "paper"]
PRESETS: tuple[str, ...] = get_args(Preset)
_Source = Snapshot | MemoryIndex
LARGEST = 2**31 - 1
"""Of a number of documents, centroids or threads; no index has so many, and kernels count in 64 bits."""
LARGEST_SCORE = float(np.finfo(np.float32).max) / 16
"""A sixteenth of what a float32 holds, for scores are added and subtracted on their way."""


class Searcher:
    """Answers queries over an index; a search never changes the next one, and many threads may search at once.

    Parameters
    ----------
    index
        What to search: an index on disk, or one in memory, which is scored exactly.
    threads
        Threads per search unless the search says otherwise; as many as there are cores if left out.
    preset
        ``"paper"`` for the search of the authors of ColBERT-PRF, to compare with: see :mod:`colbert_prf.paper`. It
        needs an index with ``bits=16``; its first search builds a FAISS index, and keeps it in the folder of the index.
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
        where: Predicate | None = None,
        feedback: Feedback | None = None,
        relevant: Sequence[str] = (),
        non_relevant: Sequence[str] = (),
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
            Ids of the documents that may be found.
        where
            A test of a document's metadata: only documents that pass may be found. It is called for every document, so
            prefer ``allowed`` where the same filter serves many queries.
        feedback
            Learn from what was found and search again, for example ``ColbertPRF()``. The answer then has an
            ``expansion``, and in ``before`` the ranking of the first pass.
        relevant, non_relevant
            Ids of documents a person has marked: ``feedback`` learns from the former, all of them, instead of from the
            best of the first pass, and moves away from the latter.

        Raises
        ------
        InputError
            If a number is not positive or beyond 2³¹ - 1, a document id is unknown, the query's vectors are of another
            dim or its weights so large that a float32 may not hold a score, documents are marked without a feedback
            method, or ``rescore`` is given to the preset ``paper``.
        """
        k, timings = _positive("k", k), dict[str, float]()
        if isinstance(query, str):
            started = perf_counter()
            query = self.encode(query)
            timings["encode"] = perf_counter() - started
        query = self._checked(query)
        probes, rescore = _positive_or_none("probes", probes), _positive_or_none("rescore", rescore)
        if self.preset == "paper" and rescore is not None:
            raise InputError("the preset 'paper' scores every candidate exactly: leave rescore out, or use no preset")
        marked = _marked(feedback, relevant, non_relevant, rescore)
        effort = Effort(
            probes=probes or (None if self.preset == "paper" else default_probes(k, self.index.num_vectors)),
            rescore=rescore or default_rescore(max(k, marked.depth if marked else 0)),
            threads=_positive_or_none("threads", threads) or self.threads,
            executor=self._pool,
            timings=timings,
        )
        allowed = None if allowed is None else _ids("allowed", allowed)
        return self._ranking(query, k, effort, _Filters(allowed, where), marked)

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
        _check_scores(query, "divide all weights of the query by one number, which leaves the ranking as it is")
        return query

    def _ranking(
        self, query: EncodedQuery, k: int, effort: Effort, filters: _Filters, feedback: _Feedback | None
    ) -> Ranking:
        # One generation for the whole search, whatever writers do meanwhile.
        source = self.index if isinstance(self.index, MemoryIndex) else self.index.snapshot
        mask = None
        if filters.any:
            with effort.stage("filter"):
                mask = filters.mask(source)
        passes = self._passes(source, effort, mask)
        if feedback is None:
            return self._shown(source, query, passes.first(query, k), effort)
        read_first, expansion = passes.first_and_learned(
            query,
            max(k, feedback.depth),
            feedback.learned_from,
            partial(feedback.expand, query, source),
        )

        def first() -> Found:
            found = read_first()
            return Found(found.positions[:k], found.scores[:k])

        found = passes.again(expansion, k, feedback.method, feedback.rescore) if len(expansion) else first()
        after = self._shown(source, expansion.query, found, effort)
        return Ranking(
            after.query, after.hits, after.timings, expansion, lambda: self._shown(source, query, first(), None)
        )

    def _passes(self, source: _Source, effort: Effort, mask: npt.NDArray[np.bool_] | None) -> Passes:
        if isinstance(source, MemoryIndex):
            return ExactPasses(source, effort, mask)
        if self._paper is not None:
            return PaperPasses(source, effort, mask, self._paper)
        return CompressedPasses(source, effort, mask)

    def _shown(self, source: _Source, query: EncodedQuery, found: Found, effort: Effort | None) -> Ranking:
        """What was found, as a ranking; the time that takes counts where there is an effort."""
        started = perf_counter()
        positions = found.positions
        hits = Hits(source.doc_ids_of(positions), found.scores.tolist(), lambda rank: source.text(int(positions[rank])))
        if effort is None:
            return Ranking(query, hits)
        effort.timings["hits"] = perf_counter() - started
        return Ranking(query, hits, effort.timings)

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
    where: Predicate | None

    @property
    def any(self) -> bool:
        return self.allowed is not None or self.where is not None

    def mask(self, source: _Source) -> npt.NDArray[np.bool_]:
        """Whether each position may be found."""
        mask = np.zeros(source.num_positions, dtype=np.bool_)
        mask[source.positions(self.allowed) if self.allowed is not None else slice(None)] = True
        if self.where is not None:
            if isinstance(source, Snapshot):
                mask &= source.live
            for position in np.flatnonzero(mask).tolist():
                mask[position] = self.where(source.metadata(position))
        return mask


@dataclass(frozen=True)
class _Feedback:
    """A feedback method and what one search gives to it."""

    method: Feedback
    relevant: Sequence[str]
    non_relevant: Sequence[str]
    rescore: int | None

    @property
    def depth(self) -> int:
        """Documents of the first pass it may need."""
        scored_again = self.method.rerank_depth if self.method.rerank else None
        return max(self.learned_from, scored_again or 0)

    @property
    def learned_from(self) -> int:
        """Documents of the first pass it learns from at most; none if some are marked as relevant."""
        return 0 if len(self.relevant) else self.method.feedback_docs + len(self.non_relevant)

    def expand(self, query: EncodedQuery, source: _Source, found: Found, workers: Workers) -> Expansion:
        """Learn from the documents marked as relevant, or else from those found."""
        if len(self.relevant):
            documents: Ranking | Sequence[str] = self.relevant
            seen = source_of(source)
        else:
            best = found.positions[: self.learned_from]
            names, scores = source.doc_ids_of(best), found.scores[: self.learned_from].tolist()
            documents = Ranking(query, Hits(names, scores))
            seen = source_of(source, known=dict(zip(names, best.tolist(), strict=True)))
        expansion = self.method.expand(query, documents, seen, non_relevant=self.non_relevant, workers=workers)
        _check_scores(expansion.query, "lower the weight, beta or push of feedback, or all weights of the query")
        return expansion


def _marked(
    feedback: Feedback | None, relevant: Sequence[str], non_relevant: Sequence[str], rescore: int | None
) -> _Feedback | None:
    relevant, non_relevant = _ids("relevant", relevant), _ids("non_relevant", non_relevant)
    if both := set(relevant) & set(non_relevant):
        raise InputError(f"{min(both)!r} is marked as relevant and as not relevant; decide")
    if feedback is not None:
        if not isinstance(feedback, Feedback):
            raise InputError(f"feedback must be a feedback method such as ColbertPRF(), found {feedback!r}")
        return _Feedback(feedback, relevant, non_relevant, rescore)
    if len(relevant) or len(non_relevant):
        raise InputError("relevant and non_relevant need a feedback method: give feedback=ColbertPRF()")
    return None


def _check_scores(query: EncodedQuery, advice: str) -> None:
    """Refuse a query whose scores a float32 may not hold: a document would be lost, or all be equal.

    Document vectors have unit length, so no score is beyond the sum of the lengths of the query's, times their weights.
    """
    lengths = np.sqrt(np.einsum("ij,ij->i", query.vectors, query.vectors, dtype=np.float64))
    most = float(max(lengths @ query.weights, lengths.max()))
    if not most < LARGEST_SCORE:
        raise InputError(f"scores may come to {most:.1e}, and must stay below {LARGEST_SCORE:.1e}; {advice}")


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
