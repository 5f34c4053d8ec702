"""The paper's figure of feedback as coordinates."""

from __future__ import annotations

from pydantic import Field

from colbert_prf.server.schemas.base import Answer

__all__ = [
    "CentroidPoint",
    "ComparePoint",
    "FeedbackPoint",
    "PlaneAnswer",
    "Point",
    "QueryPoint",
]


class Point(Answer):
    """A vector in the plane."""

    x: float
    y: float
    token: str


class QueryPoint(Point):
    """A vector of the query."""

    special: bool
    weight: float


class FeedbackPoint(Point):
    """A vector of a passage that feedback learns from."""

    document: int = Field(description="Number in `documents`.")
    position: int = Field(description="Among the passage's vectors.")


class CentroidPoint(Point):
    """A centroid; its area in the figure grows with σ."""

    label: str
    sigma: float
    weight: float = Field(description="In the expanded query; 0 if it is not added.")
    probability: float
    chosen: bool = Field(description="Whether it is added to the query.")


class ComparePoint(Point):
    """A vector of the text to compare with."""

    shared: bool = Field(description="Whether the query, a centroid or a passage has its word too.")


class PlaneAnswer(Answer):
    """The plane of the two principal components of query and feedback vectors."""

    index: str
    generation: int
    took: float
    query: str
    explained: list[float] = Field(description="Share of the variance along x and along y.")
    documents: list[str] = Field(description="Ids of the passages learned from.")
    tokens: list[QueryPoint]
    feedback: list[FeedbackPoint]
    centroids: list[CentroidPoint]
    compare: list[ComparePoint] = Field(default_factory=list)
    twins: list[int] = Field(default_factory=list, description="Numbers in `feedback` of words shared with `compare`.")
