"""From a request to a feedback method."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, cast, get_args

import numpy as np
import numpy.typing as npt

from colbert_prf.baselines.lexical import TermFeedback
from colbert_prf.baselines.lexical.methods import METHODS as TERM_METHODS
from colbert_prf.errors import InputError
from colbert_prf.feedback import ColbertPRF, Feedback
from colbert_prf.feedback.methods import METHODS, make_feedback
from colbert_prf.feedback.strength import Strength
from colbert_prf.index.collection import Collection, DocumentVectors
from colbert_prf.kernels.workers import ALONE, Workers
from colbert_prf.server.schemas import FeedbackInfo, FeedbackMethod, FeedbackRequest, Parameter
from colbert_prf.types import EncodedDocument, EncodedQuery, Expansion

__all__ = ["Without", "feedback_infos", "plane_methods", "switched_off", "term_feedback", "vector_feedback"]

TITLES = {"prf": "ColBERT-PRF", "centroid": "Centroids of the codec", "rm3": "RM3", "bo1": "Bo1", "kl": "KL"}
_MARKS = ("relevant", "non_relevant", "texts", "with_passages", "without")
"""What a request gives to learn from, beside the parameters of a method."""


@dataclass(frozen=True, kw_only=True)
class Without(Feedback):
    """A feedback method, some of whose vectors are switched off: they weigh 0, and the others keep their numbers.

    Parameters
    ----------
    method
        What learns.
    numbers
        Of the vectors that weigh 0; those beyond the last are passed over.
    """

    method: Feedback
    numbers: tuple[int, ...]

    @classmethod
    def of(cls, method: Feedback, numbers: Iterable[int]) -> Without:
        """Switch vectors of a method off."""
        shared = {field.name: getattr(method, field.name) for field in fields(Feedback)}
        return cls(**shared, method=method, numbers=tuple(sorted(set(numbers))))

    @property
    def _default_strength(self) -> Strength:
        return self.method.strength

    def learn_from(
        self,
        query: EncodedQuery,
        positions: npt.NDArray[np.int64],
        collection: Collection,
        *,
        non_relevant: npt.NDArray[np.int64],
        texts: Sequence[EncodedDocument] = (),
        weights: npt.NDArray[np.float64] | None = None,
        workers: Workers = ALONE,
    ) -> Expansion:
        """Expand the query; see :meth:`Feedback.learn_from`."""
        expansion = self.method.learn_from(
            query, positions, collection, non_relevant=non_relevant, texts=texts, weights=weights, workers=workers
        )
        return switched_off(expansion, self.numbers)

    def _learn(
        self,
        query: EncodedQuery,
        feedback: DocumentVectors,
        doc_ids: Sequence[str],
        collection: Collection,
        workers: Workers,
    ) -> Expansion:
        return self.method._learn(query, feedback, doc_ids, collection, workers)


def switched_off(expansion: Expansion, numbers: Iterable[int]) -> Expansion:
    """Give some of the added vectors, by their numbers, the weight 0."""
    off = {number for number in numbers if number < len(expansion)}
    if not off:
        return expansion
    weights = expansion.query.weights.copy()
    weights[[expansion.num_original + number for number in off]] = 0
    vectors = [
        replace(vector, weight=0.0) if number in off else vector for number, vector in enumerate(expansion.vectors)
    ]
    query = EncodedQuery(expansion.query.token_ids, expansion.query.vectors, weights)
    return Expansion(query, tuple(vectors), expansion.feedback)


def vector_feedback(request: FeedbackRequest | None) -> Feedback | None:
    """The method that learns vectors; None if none is asked for, or one that learns terms."""
    if request is None or request.method not in METHODS:
        return None
    method = make_feedback(request.method, **_parameters(request))
    return Without.of(method, request.without) if request.without else method


def term_feedback(request: FeedbackRequest | None) -> TermFeedback | None:
    """The method that learns terms; None if none is asked for, or one that learns vectors."""
    if request is None or request.method not in TERM_METHODS:
        return None
    method, given = TERM_METHODS[request.method], _parameters(request)
    known = [field.name for field in fields(cast(Any, method))]
    if unknown := [name for name in given if name not in known]:
        raise InputError(f"feedback {request.method!r} has no parameter {unknown[0]!r}; it has {', '.join(known)}")
    if marks := [name for name in _MARKS if getattr(request, name)]:
        raise InputError(f"feedback {request.method!r} does not take {marks[0]!r}; prf does")
    return method(**given)


def feedback_infos(*, lexical: bool) -> list[FeedbackInfo]:
    """The methods, with the defaults of their parameters."""
    infos = []
    for name in get_args(FeedbackMethod):
        method: Any = {**METHODS, **(TERM_METHODS if lexical else {})}.get(name)
        if method is not None:
            defaults = method()
            values = {field.name: getattr(defaults, field.name) for field in fields(defaults)}
            if isinstance(defaults, Feedback):
                values[defaults.strength.name] = defaults.strength.value
            parameters = [Parameter(name=key, default=value) for key, value in values.items()]
            infos.append(FeedbackInfo(method=name, title=TITLES[name], parameters=parameters))
    return infos


def plane_methods(request: FeedbackRequest | None) -> tuple[ColbertPRF, ColbertPRF]:
    """ColBERT-PRF as asked for, and the same with every centroid added."""
    request = request or FeedbackRequest()
    if request.method != "prf":
        raise InputError(f"the plane shows the centroids of 'prf', found {request.method!r}; leave method out")
    asked = make_feedback("prf", **_parameters(request))
    assert isinstance(asked, ColbertPRF)
    return asked, replace(asked, expansion_vectors=asked.clusters)


def _parameters(request: FeedbackRequest) -> dict[str, Any]:
    given = request.model_dump(exclude_none=True, exclude_unset=True)
    return {name: value for name, value in given.items() if name not in ("method", *_MARKS)}
