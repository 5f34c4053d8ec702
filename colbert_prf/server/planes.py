"""The paper's figure of feedback as coordinates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from colbert_prf.encoder import Encoder
from colbert_prf.errors import InputError
from colbert_prf.feedback import ColbertPRF
from colbert_prf.plots.plane import Plane, feedback_plane
from colbert_prf.search.spelling import likely_words
from colbert_prf.server.explaining import query_tokens
from colbert_prf.server.feedback import plane_methods
from colbert_prf.server.indexes import Generation
from colbert_prf.server.schemas import (
    CentroidPoint,
    ComparePoint,
    FeedbackPoint,
    FeedbackRequest,
    PlaneRequest,
    QueryPoint,
)

__all__ = ["plane"]


def plane(generation: Generation, request: PlaneRequest) -> dict[str, Any]:
    """Project a query and its feedback: the fields of a :class:`~colbert_prf.server.schemas.PlaneAnswer`."""
    marks = request.feedback or FeedbackRequest()
    asked, every = plane_methods(request.feedback)
    if marks.texts:
        raise InputError("the plane shows passages of the index; leave texts out")
    searcher, encoder = generation.searcher, generation.searcher.encoder
    query = searcher.encode(request.query)
    found = feedback_plane(
        searcher,
        query,
        [every],
        relevant=marks.relevant,
        non_relevant=marks.non_relevant,
        compare=request.compare,
        where=request.where,
    )
    place = found.projection
    words, feedback = query_tokens(query, encoder), found.feedback
    shown: dict[str, Any] = {
        "query": request.query,
        "explained": place.explained.tolist(),
        "documents": list(found.doc_ids),
        "tokens": [
            QueryPoint(x=x, y=y, **word.model_dump()) for (x, y), word in zip(place(query.vectors), words, strict=True)
        ],
        "feedback": [
            FeedbackPoint(x=x, y=y, token=token, document=document, position=position)
            for (x, y), token, document, position in zip(
                place(feedback.vectors).tolist(),
                encoder.tokens(feedback.token_ids.tolist()),
                feedback.documents.tolist(),
                feedback.token_positions.tolist(),
                strict=True,
            )
        ],
        "centroids": _centroids(found, asked, marks.without, encoder),
    }
    if (other := found.comparison) is not None:
        points, names = place(other.document.vectors).tolist(), encoder.tokens(other.document.token_ids.tolist())
        shared = set(other.shared.tolist())
        shown["compare"] = [
            ComparePoint(x=x, y=y, token=name, shared=number in shared)
            for number, ((x, y), name) in enumerate(zip(points, names, strict=True))
        ]
        shown["twins"] = other.twins.tolist()
    return shown


def _centroids(found: Plane, asked: ColbertPRF, without: Sequence[int], encoder: Encoder) -> list[CentroidPoint]:
    """Every centroid; those that feedback would add to the query are chosen."""
    (expansion,) = found.expansions
    points = found.projection(expansion.query.vectors[expansion.num_original :]).tolist()
    chosen = expansion.vectors[: asked.expansion_vectors]
    weights = asked.weights_of(found.query, np.array([vector.sigma for vector in chosen], dtype=np.float64)).tolist()
    off = set(without)
    return [
        CentroidPoint(
            x=x,
            y=y,
            token=encoder.tokens([vector.token_id])[0],
            label=likely_words(vector, encoder.tokens),
            sigma=vector.sigma,
            weight=weights[number] if number < len(weights) and number not in off else 0.0,
            probability=vector.probability,
            chosen=number < len(weights) and number not in off,
        )
        for number, ((x, y), vector) in enumerate(zip(points, expansion.vectors, strict=True))
    ]
