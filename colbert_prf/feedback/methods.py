"""Feedback methods by name, for those who write names: command lines and configurations."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from colbert_prf.errors import InputError
from colbert_prf.feedback.base import Feedback
from colbert_prf.feedback.centroid_prf import CentroidPRF
from colbert_prf.feedback.prf import ColbertPRF

__all__ = ["METHODS", "make_feedback"]

METHODS: dict[str, type[Feedback]] = {"prf": ColbertPRF, "centroid": CentroidPRF}


def make_feedback(method: str, **parameters: Any) -> Feedback:
    """Make a feedback method by its name.

    Parameters
    ----------
    method
        A key of ``METHODS``.
    parameters
        Fields of its class. Who asks for fewer clusters than vectors are added by default gets as few vectors.

    Raises
    ------
    InputError
        An unknown method or parameter, with those known; or a value the method refuses.

    Examples
    --------
    >>> make_feedback("prf", clusters=8).expansion_vectors
    8
    """
    if method not in METHODS:
        raise InputError(f"there is no feedback method {method!r}; choose {' or '.join(METHODS)}")
    known = [field.name for field in fields(METHODS[method])]
    for name in parameters:
        if name == "relative":
            raise InputError("there is no parameter 'relative'; weight is relative to the query, beta is the paper's β")
        if name not in known:
            raise InputError(f"feedback {method!r} has no parameter {name!r}; it has {', '.join(known)}")
    if "clusters" in parameters and "expansion_vectors" not in parameters:
        default = METHODS[method].expansion_vectors
        parameters["expansion_vectors"] = min(parameters["clusters"], default)
    return METHODS[method](**parameters)
