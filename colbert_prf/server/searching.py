"""The requests that read: each takes one generation of an index and gives an answer."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from colbert_prf.baselines.fusion import Fusion
from colbert_prf.baselines.lexical import BM25
from colbert_prf.encoder.text import valid_document
from colbert_prf.errors import InputError
from colbert_prf.feedback.given_texts import text_names
from colbert_prf.search.retriever import DEFAULT_K, Retriever
from colbert_prf.search.searcher import Searcher
from colbert_prf.search.spelling import ranks_before
from colbert_prf.server.explaining import (
    expansion_answer,
    explained_hit,
    explained_terms,
    query_tokens,
    term_expansion_answer,
)
from colbert_prf.server.feedback import term_feedback, vector_feedback
from colbert_prf.server.indexes import Generation
from colbert_prf.server.passages import Passages
from colbert_prf.server.schemas import (
    ExpandRequest,
    ExpansionAnswer,
    ExplainRequest,
    FeedbackRequest,
    SearchHit,
    SearchRequest,
    SearchResult,
    ShardCounts,
    Timing,
)
from colbert_prf.types import Expansion, Ranking

__all__ = ["expand", "explain", "metadata_of", "search", "timings_of"]

FUSED = 100
"""Hits of each system that are fused, at least."""
Group = Literal["wait", "encode", "first pass", "learn", "second pass", "answer"]
_GROUPS: dict[str, Group] = {"queue": "wait", "encode": "encode", "expansion": "learn", "hits": "answer"}
_SYSTEM = re.compile(r"\d+: ")


def search(generation: Generation, request: SearchRequest) -> list[SearchResult]:
    """Answer one query or several."""
    queries = _queries(request)
    _check(request.method, request.feedback, explain=request.explain)
    if request.group is not None and request.method != "colbert":
        raise InputError(f"the method {request.method!r} does not group; leave group out, or use colbert")
    rankings = _rankings(generation, request, queries)
    return [_result(generation, request, text, ranking) for text, ranking in zip(queries, rankings, strict=True)]


def explain(generation: Generation, request: ExplainRequest) -> dict[str, Any]:
    """Explain documents: the fields of an :class:`~colbert_prf.server.schemas.ExplainAnswer`."""
    _check(request.method, request.feedback)
    index = generation.index
    texts = [index.text(position) for position in index.positions(request.doc_ids).tolist()]
    shown: dict[str, Any] = {"texts": [None if text is None else valid_document(text) for text in texts]}
    if request.method == "bm25":
        system = BM25(generation.lexical(), feedback=term_feedback(request.feedback), where=request.where)
        explanations = [system.explain(request.query, doc_id) for doc_id in request.doc_ids]
        return {**shown, "tokens": [], "explanations": [explained_terms(each) for each in explanations]}
    searcher, encoder = generation.searcher, generation.searcher.encoder
    passages, query = Passages(index, encoder), searcher.encode(request.query)
    shown |= {"tokens": query_tokens(query, encoder)}
    num_original = len(query)
    if request.feedback is not None:
        expansion = searcher.search(query, request.k, **_options(request)).expansion
        assert expansion is not None  # there was feedback
        query = expansion.query
        shown["expansion"] = _expansion_answer(generation, expansion, request.feedback)
    shown["explanations"] = [
        explained_hit(searcher.explain(query, doc_id), num_original, passages[doc_id], encoder)
        for doc_id in request.doc_ids
    ]
    return shown


def expand(generation: Generation, request: ExpandRequest) -> dict[str, Any]:
    """Expand a query: the fields of an :class:`~colbert_prf.server.schemas.ExpandAnswer`."""
    request = request.model_copy(update={"feedback": request.feedback or FeedbackRequest()})
    assert request.feedback is not None
    if vector_feedback(request.feedback) is None:
        system = BM25(generation.lexical(), feedback=term_feedback(request.feedback), where=request.where)
        _check("bm25", request.feedback)
        terms = system.search(request.query, 1).term_expansion
        assert terms is not None  # there was feedback
        return {"query": request.query, "tokens": [], "expansion": term_expansion_answer(terms)}
    searcher, encoder = generation.searcher, generation.searcher.encoder
    query = searcher.encode(request.query)
    expansion = searcher.search(query, 1, **_options(request)).expansion
    assert expansion is not None  # there was feedback
    return {
        "query": request.query,
        "tokens": query_tokens(query, encoder),
        "expansion": _expansion_answer(generation, expansion, request.feedback),
    }


def timings_of(timings: Mapping[str, float], waited: float | None = None) -> list[Timing]:
    """Stages with their groups, in milliseconds."""
    stages = ({} if waited is None else {"queue": waited}) | dict(timings)
    return [Timing(stage=stage, group=_group(stage), milliseconds=1000 * value) for stage, value in stages.items()]


def metadata_of(metadata: Mapping[str, Any], fields: Sequence[str]) -> dict[str, Any] | None:
    """Some fields of a document's metadata; None if none are asked for."""
    if not fields:
        return None
    return dict(metadata) if "*" in fields else {name: metadata[name] for name in fields if name in metadata}


def _queries(request: SearchRequest) -> list[str]:
    if (request.query is None) == (request.queries is None):
        raise InputError("a search needs either a query or queries; give one of the two")
    return [request.query] if request.query is not None else request.queries or []


def _check(method: str, feedback: FeedbackRequest | None, *, explain: bool = False) -> None:
    """Refuse what does not go together."""
    learns_terms = feedback is not None and vector_feedback(feedback) is None
    if feedback is not None and method == ("colbert" if learns_terms else "bm25"):
        others = "prf or centroid" if learns_terms else "rm3, bo1 or kl"
        raise InputError(f"feedback {feedback.method!r} does not go with the method {method!r}; choose {others}")
    if explain and method == "hybrid":
        raise InputError("a hybrid score has no parts to explain; explain colbert or bm25")


def _options(request: SearchRequest | ExplainRequest | ExpandRequest) -> dict[str, Any]:
    """What :meth:`Searcher.search` takes, from a request."""
    options: dict[str, Any] = {"where": request.where}
    if isinstance(request, SearchRequest):
        options |= {"probes": request.probes, "rescore": request.rescore, "exact": request.exact}
        options["group"] = request.group
    if (feedback := request.feedback) is not None and (method := vector_feedback(feedback)) is not None:
        options |= {"feedback": method, "relevant": feedback.relevant, "non_relevant": feedback.non_relevant}
        options |= {"feedback_texts": feedback.texts, "with_passages": feedback.with_passages}
    return options


class _AsAsked(Retriever):
    """A searcher that searches as a request asks for, so that it can be fused with others."""

    def __init__(self, searcher: Searcher, options: Mapping[str, Any]) -> None:
        self._searcher = searcher
        self._options = options

    def search(self, query: str, k: int = DEFAULT_K) -> Ranking:
        return self._searcher.search(query, k, **self._options)


def _rankings(generation: Generation, request: SearchRequest, queries: Sequence[str]) -> Iterator[Ranking]:
    if request.method == "colbert":
        return generation.searcher.search_many(queries, request.k, **_options(request))
    lexical = BM25(generation.lexical(), feedback=term_feedback(request.feedback), where=request.where)
    if request.method == "bm25":
        return lexical.search_many(queries, request.k)
    vectors = _AsAsked(generation.searcher, _options(request))
    return Fusion([vectors, lexical], depth=max(FUSED, request.k)).search_many(queries, request.k)


def _result(generation: Generation, request: SearchRequest, text: str, ranking: Ranking) -> SearchResult:
    result = SearchResult(query=text, tokens=[], hits=_hits(request, ranking), timings=timings_of(ranking.timings))
    if ranking.shards is not None:
        result.shards = ShardCounts(total=ranking.shards.total, answered=ranking.shards.answered)
    if (before := ranking.before) is not None:
        result.before = _hits(request, before)
    if ranking.term_expansion is not None:
        result.expansion = term_expansion_answer(ranking.term_expansion)
    if request.method == "colbert":
        _add_vectors(result, generation, request, ranking)
    elif request.explain:
        system = BM25(generation.lexical(), feedback=term_feedback(request.feedback), where=request.where)
        for hit in result.hits:
            hit.explanation = explained_terms(system.explain(text, hit.doc_id))
    return result


def _add_vectors(result: SearchResult, generation: Generation, request: SearchRequest, ranking: Ranking) -> None:
    """Add what only a search by vectors has: the tokens of the query, its expansion, explanations."""
    encoder = generation.searcher.encoder
    passages, expansion, query = Passages(generation.index, encoder), ranking.expansion, ranking.encoded_query
    num_original = len(query) if expansion is None else expansion.num_original
    result.tokens = query_tokens(query, encoder)[:num_original]
    if expansion is not None:
        result.expansion = _expansion_answer(generation, expansion, request.feedback or FeedbackRequest())
    if request.explain:
        for hit, found in zip(result.hits, ranking, strict=True):
            passage_id = found.passage_id or found.doc_id
            explanation = generation.searcher.explain(query, passage_id)
            hit.explanation = explained_hit(explanation, num_original, passages[passage_id], encoder)


def _expansion_answer(generation: Generation, expansion: Expansion, feedback: FeedbackRequest) -> ExpansionAnswer:
    encoder, find = generation.searcher.encoder, generation.index.snapshot.find
    if taken := [name for name in text_names(len(feedback.texts)) if find(name) is not None]:
        raise InputError(f"a document is called {taken[0]!r}, as a text is; leave texts out, or rename the document")
    learned_from = Passages(generation.index, encoder, feedback.texts)
    return expansion_answer(expansion, learned_from, encoder, feedback.without)


def _hits(request: SearchRequest, ranking: Ranking) -> list[SearchHit]:
    before, hits = ranks_before(ranking), list[SearchHit]()
    for rank, found in enumerate(ranking, start=1):
        hit = SearchHit(rank=rank, doc_id=valid_document(found.doc_id), score=found.score)
        if request.texts and (text := found.text) is not None:
            hit.text = valid_document(text)
        if request.fields:
            hit.metadata = metadata_of(found.metadata, request.fields)
        if found.passage_id is not None:
            hit.passage_id = valid_document(found.passage_id)
        if before is not None and (rank_before := before[rank - 1]) is not None:
            hit.rank_before, hit.move = rank_before, rank_before - rank
        hits.append(hit)
    return hits


def _group(stage: str) -> Group:
    stage = _SYSTEM.sub("", stage)  # a fusion numbers its systems
    if stage in _GROUPS:
        return _GROUPS[stage]
    return "second pass" if stage.endswith("again") else "first pass"
