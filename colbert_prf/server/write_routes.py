"""The addresses that write: each answers 202 with a task."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Request
from starlette.responses import Response

from colbert_prf.server.errors import ApiError, responses
from colbert_prf.server.keys import may_write
from colbert_prf.server.routes import IndexName, json_response, service_of
from colbert_prf.server.schemas import DeleteRequest, MergeRequest, TaskAnswer
from colbert_prf.server.service import Service
from colbert_prf.server.tasks import Task
from colbert_prf.server.uploads import receive

__all__ = ["router"]

router = APIRouter(prefix="/v1", dependencies=[Depends(may_write)], tags=["write"])
_WRITE = responses(400, 401, 403, 404, 409, 413, 415, 422, 429, 503)
_LINES = {
    "requestBody": {
        "required": True,
        "description": 'JSON lines: `{"doc_id": …, "text": …}`, perhaps a `title`; other fields are metadata.',
        "content": {"application/x-ndjson": {"schema": {"type": "string", "format": "binary"}}},
    }
}


@router.put(
    "/indexes/{name}/documents", status_code=202, response_model=TaskAnswer, responses=_WRITE, openapi_extra=_LINES
)
async def upsert_documents(request: Request, name: IndexName) -> Response:
    """Add documents, replacing those whose ids are there."""
    service = service_of(request)
    served = service.indexes[name]
    service.check_running()
    service.tasks.check_room()
    upload = await receive(request.stream())
    try:
        await asyncio.to_thread(upload.check)
        task = await asyncio.to_thread(
            service.tasks.submit,
            served,
            "upsert",
            upload.num_documents,
            lambda index, task: index.upsert(task.counted(upload.documents())),
            after=upload.close,
        )
    except BaseException:
        upload.close()
        raise
    return _accepted(task)


@router.delete("/indexes/{name}/documents", status_code=202, response_model=TaskAnswer, responses=_WRITE)
async def delete_documents(request: Request, name: IndexName, body: DeleteRequest) -> Response:
    """Delete documents, all of them or none."""
    return await _delete(service_of(request), name, body.doc_ids)


@router.delete("/indexes/{name}/documents/{doc_id:path}", status_code=202, response_model=TaskAnswer, responses=_WRITE)
async def delete_document(
    request: Request, name: IndexName, doc_id: Annotated[str, Path(description="A document's id, slashes and all.")]
) -> Response:
    """Delete a document."""
    return await _delete(service_of(request), name, [doc_id])


@router.post("/indexes/{name}/merge", status_code=202, response_model=TaskAnswer, responses=_WRITE)
async def merge(request: Request, name: IndexName, body: MergeRequest | None = None) -> Response:
    """Join the segments and drop what was deleted."""
    service, asked = service_of(request), body or MergeRequest()
    served = service.indexes[name]
    service.check_running()
    if asked.reencode and not asked.retrain:
        raise ApiError(422, "invalid_input", "reencode needs retrain", "send both")
    task = await asyncio.to_thread(
        service.tasks.submit,
        served,
        "merge",
        served.current.index.num_documents,
        lambda index, _: index.merge(retrain=asked.retrain, reencode=asked.reencode),
    )
    return _accepted(task)


async def _delete(service: Service, name: str, doc_ids: Sequence[str]) -> Response:
    served, wanted = service.indexes[name], list(dict.fromkeys(doc_ids))
    service.check_running()
    # With no write waiting, what is unknown now is unknown then.
    if not service.tasks.num_pending:
        served.try_refresh()
        snapshot = served.current.index.snapshot
        if unknown := [doc_id for doc_id in wanted if snapshot.find(doc_id) is None]:
            message = f"there is no document {unknown[0]!r}"
            raise ApiError(404, "unknown_document", message, "nothing was deleted; leave it out")
    task = await asyncio.to_thread(
        service.tasks.submit, served, "delete", len(wanted), lambda index, _: index.delete(wanted)
    )
    return _accepted(task)


def _accepted(task: Task) -> Response:
    return json_response(task.answer.model_dump_json(), 202, {"Location": f"/v1/tasks/{task.task_id}"})
