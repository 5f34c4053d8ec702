"""The service as an ASGI app."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fastapi import Depends, FastAPI, Request
from fastapi_offline import FastAPIOffline
from starlette.responses import Response
from starlette.routing import Match, Mount
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from colbert_prf.server import routes, write_routes
from colbert_prf.server.errors import install_error_handlers, responses
from colbert_prf.server.indexes import Indexes
from colbert_prf.server.keys import may_read
from colbert_prf.server.middleware import Requests
from colbert_prf.server.schemas import Health, Readiness
from colbert_prf.server.service import Service
from colbert_prf.server.settings import ServerSettings
from colbert_prf.version import __version__

__all__ = ["create_app"]

PAGE = Path(__file__).parent / "page"
POLICY = "default-src 'self'; img-src 'self' data:; style-src 'self' 'unsafe-inline'; frame-ancestors 'none'"
DESCRIPTION = (
    "ColBERT retrieval with pseudo-relevance feedback: search, explanations, and what feedback adds to a query."
)


def create_app(indexes: Indexes, settings: ServerSettings | None = None) -> FastAPI:
    """Make the app; it opens the indexes when it is started.

    Parameters
    ----------
    indexes
        What is served.
    settings
        Keys, limits and threads; open to readers and closed to writers if left out.
    """
    service = Service(indexes, settings or ServerSettings())
    app = FastAPIOffline(
        redoc_url=None,
        static_url="/docs/files",
        title="colbert-prf",
        version=__version__,
        description=DESCRIPTION,
        lifespan=service.life,
        swagger_ui_oauth2_redirect_url="/docs/oauth2-redirect",
    )
    app.state.service = service
    install_error_handlers(app)
    app.include_router(routes.router)
    app.include_router(write_routes.router)
    _add_probes(app, service)
    if PAGE.is_dir():
        app.router.routes.append(_PageMount("/", _Page(directory=PAGE, html=True), name="page"))
    app.add_middleware(Requests, settings=service.settings, metrics=service.metrics, queue=service.queue)
    return app


def _add_probes(app: FastAPI, service: Service) -> None:
    """What machines ask: does it live, may it be sent requests, what does it count."""

    @app.get("/health", response_model=Health, tags=["machines"])
    async def health() -> Health:
        """Whether the process answers."""
        return Health()

    unready: dict[int | str, dict[str, Any]] = {503: {"model": Readiness, "description": "Starting or stopping"}}

    @app.get("/ready", response_model=Readiness, responses=unready, tags=["machines"])
    async def ready() -> Response:
        """Whether models and kernels are warm and searches are taken."""
        readiness = service.readiness
        return routes.json_response(readiness.model_dump_json(), 200 if readiness.status == "ready" else 503)

    @app.get(
        "/metrics",
        response_class=Response,
        responses={200: {"content": {"text/plain": {}}, "description": "For Prometheus"}, **responses(401)},
        dependencies=[Depends(may_read)],
        tags=["machines"],
    )
    async def metrics(_: Request) -> Response:
        """Counts and times, for Prometheus."""
        return Response(service.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")


class _PageMount(Mount):
    """Everything that is no address of the API: there, a wrong method must stay 405 and not become 404."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        return (Match.NONE, {}) if scope["path"].startswith("/v1/") else super().matches(scope)


class _Page(StaticFiles):
    """The page, which may load nothing from elsewhere."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        response = await super().get_response(path, scope)
        response.headers["Content-Security-Policy"] = POLICY
        response.headers["Cache-Control"] = "no-cache"
        return response
