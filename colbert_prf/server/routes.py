"""The addresses that read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query, Request
from starlette.responses import Response

from colbert_prf.encoder.text import valid_document
from colbert_prf.server.errors import ApiError, responses
from colbert_prf.server.feedback import feedback_infos
from colbert_prf.server.indexes import Generation, ServedIndex
from colbert_prf.server.keys import may_read
from colbert_prf.server.planes import plane
from colbert_prf.server.schemas import (
    Document,
    ExpandAnswer,
    ExpandRequest,
    ExplainAnswer,
    ExplainRequest,
    IndexAnswer,
    IndexList,
    IndexSummary,
    Limits,
    PlaneAnswer,
    PlaneRequest,
    SearchAnswer,
    SearchRequest,
    TaskAnswer,
)
from colbert_prf.server.searching import expand, explain, search
from colbert_prf.server.service import Service
from colbert_prf.version import __version__

__all__ = ["IndexName", "json_response", "router", "service_of"]

router = APIRouter(prefix="/v1", dependencies=[Depends(may_read)], tags=["read"])
IndexName = Annotated[str, Path(description="An index by its name.", examples=["demo"])]
_READ = responses(401, 404, 422, 503)
_POST = responses(400, 401, 404, 409, 413, 415, 422, 503)


def service_of(request: Request) -> Service:
    """The state of the app."""
    service = request.app.state.service
    assert isinstance(service, Service)
    return service


def json_response(body: bytes | str, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """JSON that is written already."""
    return Response(body, status, headers, media_type="application/json")


@router.get("/indexes", response_model=IndexList, responses=responses(401, 422))
async def list_indexes(request: Request) -> IndexList:
    """List the indexes, and what a request may ask for."""
    service = service_of(request)
    return IndexList(
        indexes=[_summary(served) for served in service.indexes.values() if served.is_open],
        limits=service.settings.limits,
        writable=service.settings.write_key is not None,
        version=__version__,
    )


@router.get("/indexes/{name}", response_model=IndexAnswer, responses=_READ)
async def describe_index(request: Request, name: IndexName) -> Response:
    """What an index is made of, its feedback methods with their defaults, and queries to try."""
    service = service_of(request)
    served = service.indexes[name]
    current = served.current
    return json_response(await service.queue.run(lambda _: _described(served, current).model_dump_json()))


@router.post("/indexes/{name}/search", response_model=SearchAnswer, responses=_POST)
async def search_index(request: Request, name: IndexName, body: SearchRequest) -> Response:
    """Search, with or without feedback."""
    service = service_of(request)
    queries = [body.query] if body.query is not None else body.queries or []
    limits = service.settings.limits
    _check_queries(limits, queries)
    _check("k", body.k, limits.k)
    if body.explain:
        _check("explanations: k times the number of queries", body.k * len(queries), limits.explanations)
    _log_queries(request, service, queries)
    return json_response(await service.answer(name, SearchAnswer, lambda found: {"results": search(found, body)}))


@router.post("/indexes/{name}/explain", response_model=ExplainAnswer, responses=_POST)
async def explain_documents(request: Request, name: IndexName, body: ExplainRequest) -> Response:
    """Which tokens give documents their scores."""
    service = service_of(request)
    limits = service.settings.limits
    _check_queries(limits, [body.query])
    _check("k", body.k, limits.k)
    _check("doc_ids", len(body.doc_ids), limits.explanations)
    _log_queries(request, service, [body.query])
    return json_response(await service.answer(name, ExplainAnswer, lambda found: explain(found, body)))


@router.post("/indexes/{name}/expand", response_model=ExpandAnswer, responses=_POST)
async def expand_query(request: Request, name: IndexName, body: ExpandRequest) -> Response:
    """What feedback adds to a query."""
    service = service_of(request)
    _check_queries(service.settings.limits, [body.query])
    _log_queries(request, service, [body.query])
    return json_response(await service.answer(name, ExpandAnswer, lambda found: expand(found, body)))


@router.post("/indexes/{name}/plane", response_model=PlaneAnswer, responses=_POST)
async def draw_plane(request: Request, name: IndexName, body: PlaneRequest) -> Response:
    """The paper's figure of feedback, as coordinates."""
    service = service_of(request)
    _check_queries(service.settings.limits, [body.query, body.compare or ""])
    _log_queries(request, service, [body.query])
    return json_response(await service.answer(name, PlaneAnswer, lambda found: plane(found, body)))


@router.get("/indexes/{name}/documents", response_model=Document, responses=_READ)
async def document_by_parameter(
    request: Request, name: IndexName, id: Annotated[str, Query(description="A document's id, whatever it holds.")]
) -> Response:
    """A document; for ids that do not fit into an address."""
    return await _document(service_of(request), name, id)


@router.get("/indexes/{name}/documents/{doc_id:path}", response_model=Document, responses=_READ)
async def document(
    request: Request, name: IndexName, doc_id: Annotated[str, Path(description="A document's id, slashes and all.")]
) -> Response:
    """A document."""
    return await _document(service_of(request), name, doc_id)


@router.get("/tasks/{task_id}", response_model=TaskAnswer, responses=responses(401, 404, 422))
async def task(request: Request, task_id: str) -> Response:
    """How a write stands."""
    return json_response(service_of(request).tasks[task_id].answer.model_dump_json())


async def _document(service: Service, name: str, doc_id: str) -> Response:
    generation = service.indexes[name].current
    return json_response(await service.queue.run(lambda _: _found(generation, doc_id).model_dump_json()))


def _found(generation: Generation, doc_id: str) -> Document:
    index = generation.index
    position = index.snapshot.find(doc_id)
    if position is None:
        raise ApiError(404, "unknown_document", f"there is no document {doc_id!r}", "search, and take the id of a hit")
    text = index.text(position)
    return Document(
        doc_id=valid_document(doc_id),
        text=None if text is None else valid_document(text),
        metadata=index.metadata(position),
        generation=generation.number,
    )


def _summary(served: ServedIndex) -> IndexSummary:
    index = served.current.index
    return IndexSummary(name=served.name, num_documents=index.num_documents, generation=index.generation)


def _described(served: ServedIndex, current: Generation) -> IndexAnswer:
    info = current.index.info()
    shown: dict[str, Any] = {
        name: getattr(info, name)
        for name in (
            "num_documents generation num_deleted num_vectors num_segments num_centroids dim bits texts".split()
        )
    }
    return IndexAnswer(
        name=served.name,
        num_bytes=sum(info.num_bytes.values()),
        model=info.model.name,
        methods=["colbert", "bm25", "hybrid"] if info.texts else ["colbert"],
        feedback=feedback_infos(lexical=info.texts),
        examples=served.examples,
        **shown,
    )


def _check(name: str, value: int, limit: int) -> None:
    if value > limit:
        hint = "GET /v1/indexes has the limits of this server"
        raise ApiError(422, "over_limit", f"{name} may be at most {limit:,}, found {value:,}", hint)


def _check_queries(limits: Limits, queries: list[str]) -> None:
    _check("the number of queries", len(queries), limits.queries)
    _check("the characters of a query", max(map(len, queries), default=0), limits.query_characters)


def _log_queries(request: Request, service: Service, queries: list[str]) -> None:
    if service.settings.log_queries:
        request.scope["logged"] = {"queries": queries}
