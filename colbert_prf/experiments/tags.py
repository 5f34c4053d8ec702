"""The name of a run in the last column of its file: one word that says the configuration."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import Any

from colbert_prf.feedback import Feedback
from colbert_prf.feedback.methods import METHODS

__all__ = ["feedback_facts", "tag_of"]

_ALWAYS = {"feedback_docs": "fb", "clusters": "K", "expansion_vectors": "fe", "weight": "weight", "beta": "beta"}
"""What a tag always says, in this order; of the last two the one in force."""


def tag_of(feedback: Feedback | None, *, preset: str | None = None) -> str:
    """Say how a run was made.

    Examples
    --------
    >>> from colbert_prf.feedback import CentroidPRF, ColbertPRF
    >>> tag_of(None), tag_of(ColbertPRF()), tag_of(ColbertPRF(beta=1, rerank=True))
    ('colbert-prf.e2e', 'colbert-prf.prf.fb1.K24.fe20.weight0.15', 'colbert-prf.prf.fb1.K24.fe20.beta1.rerank')
    >>> tag_of(CentroidPRF(relevance=0.5), preset="paper")
    'colbert-prf.paper.centroid.fb3.fe14.weight0.1.relevance0.5'
    """
    parts = ["colbert-prf", *([preset] if preset and preset != "default" else [])]
    facts = feedback_facts(feedback)
    if feedback is None or facts is None:
        return ".".join([*parts, "e2e"])
    parts.append(facts["method"])
    parts += [f"{short}{facts[name]:g}" for name, short in _ALWAYS.items() if facts.get(name) is not None]
    for one in fields(feedback):
        value = facts[one.name]
        if one.name not in _ALWAYS and value != one.default and value is not None:
            parts.append(_spelled(one.name, value))
    return ".".join(parts)


def feedback_facts(feedback: Feedback | None) -> dict[str, Any] | None:
    """All parameters of a feedback method, the default of ``weight`` or ``beta`` written out, and its name."""
    if feedback is None:
        return None
    names = {kind: name for name, kind in METHODS.items()}
    method, strength = names.get(type(feedback), type(feedback).__name__), feedback.strength
    return {"method": method, **asdict(feedback), strength.name: strength.value}


def _spelled(name: str, value: object) -> str:
    if isinstance(value, bool):
        return name
    if name in ("clustering", "weighting"):
        return str(value)
    return f"{name}{value}".replace(" ", "")
