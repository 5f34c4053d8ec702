"""Tools for language-model agents, over the Model Context Protocol: the functions of the service without HTTP."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, Field

from colbert_prf.errors import MissingExtraError
from colbert_prf.server.indexes import ServedIndex
from colbert_prf.server.schemas import FeedbackRequest, SearchRequest
from colbert_prf.server.searching import search
from colbert_prf.version import __version__

__all__ = ["agent_server"]

MAX_K, MAX_DOCS = 100, 20
"""Hits and feedback documents an agent may ask for: what it gets must fit into its context."""

Query = Annotated[str, Field(min_length=1, max_length=10_000, description="What to look for, in words.")]
Count = Annotated[int, Field(ge=1, le=MAX_K, description="How many passages.")]
Where = Annotated[dict[str, Any] | None, Field(description='A filter on metadata, such as {"year": {">=": 1999}}.')]


class Passage(BaseModel):
    """A passage that was found."""

    doc_id: str
    score: float
    text: str | None
    rank_before: int | None = Field(default=None, description="Its rank before feedback; null if it is new.")


class Passages(BaseModel):
    """Passages, best first."""

    passages: list[Passage]
    learned: list[str] = Field(default_factory=list, description="What feedback added to the query, in words.")


class Text(BaseModel):
    """A document."""

    doc_id: str
    text: str | None
    metadata: dict[str, Any]


def agent_server(served: ServedIndex) -> Any:
    """Make a server with the tools ``search``, ``search_with_feedback`` and ``document``.

    Parameters
    ----------
    served
        The index; a newer generation is seen by the next call.

    Returns
    -------
    mcp.server.MCPServer
        To be run over standard input and output, or handed to the package's own client.
    """
    try:
        from mcp.server import MCPServer
    except ImportError as error:
        raise MissingExtraError("Serving tools to agents", extra="mcp") from error
    served.refresh()
    server = MCPServer(
        "colbert-prf",
        version=__version__,
        instructions=f"Search the passages of {served.name!r} by meaning; with feedback, find more of the same kind.",
    )

    @server.tool(name="search")
    def search_tool(query: Query, k: Count = 5, where: Where = None) -> Passages:
        """Find the passages that answer a query best (ColBERT)."""
        return _found(served, SearchRequest(query=query, k=k, where=where))

    @server.tool()
    def search_with_feedback(
        query: Query,
        k: Count = 5,
        feedback_docs: Annotated[int, Field(ge=1, le=MAX_DOCS, description="Passages to learn from.")] = 3,
        relevant: Annotated[list[str] | None, Field(description="Ids of passages known to be relevant.")] = None,
        non_relevant: Annotated[list[str] | None, Field(description="Ids of passages that are not.")] = None,
        where: Where = None,
    ) -> Passages:
        """Find passages, learn from the best of them or from those marked as relevant, and search again (ColBERT-PRF).

        It finds more passages on the same topic, also in other words. Mark passages by their doc_id.
        """
        feedback = FeedbackRequest(
            feedback_docs=feedback_docs, relevant=relevant or [], non_relevant=non_relevant or []
        )
        return _found(served, SearchRequest(query=query, k=k, where=where, feedback=feedback))

    @server.tool()
    def document(doc_id: Annotated[str, Field(description="The doc_id of a passage.")]) -> Text:
        """Read one document in full, with its metadata."""
        served.try_refresh()
        index = served.current.index
        position = int(index.positions([doc_id])[0])
        return Text(doc_id=doc_id, text=index.text(position), metadata=index.metadata(position))

    return server


def _found(served: ServedIndex, request: SearchRequest) -> Passages:
    served.try_refresh()
    (result,) = search(served.current, request)
    passages = [
        Passage(doc_id=hit.doc_id, score=hit.score, text=hit.text, rank_before=hit.rank_before) for hit in result.hits
    ]
    learned = [] if result.expansion is None else [vector.label for vector in result.expansion.vectors]
    return Passages(passages=passages, learned=list(dict.fromkeys(learned)))
