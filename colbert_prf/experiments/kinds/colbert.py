"""ColBERT end to end, with or without feedback."""

from __future__ import annotations

from typing import Any, get_type_hints

from colbert_prf.errors import InputError
from colbert_prf.experiments.context import Context
from colbert_prf.experiments.registry import system
from colbert_prf.experiments.values import describe_type, fits
from colbert_prf.feedback import Feedback
from colbert_prf.feedback.methods import METHODS, make_feedback
from colbert_prf.search.retriever import Retriever
from colbert_prf.search.searcher import Preset

__all__ = ["colbert", "feedback_of"]

_OF_SEARCH = ("bits", "model", "preset", "probes", "query_weights", "rescore", "threads")


def feedback_of(feedback: str | None = None, **tuning: Any) -> Feedback | None:
    """The feedback method that parameters of a row describe; those of the search are passed over.

    Raises
    ------
    InputError
        An unknown method, an unknown parameter with the known ones, or a bad value.
    """
    tuning = {name: value for name, value in tuning.items() if name not in _OF_SEARCH}
    if feedback is None:
        if tuning:
            raise InputError(
                f"there is no parameter {next(iter(tuning))!r} without feedback; known are feedback, "
                f"{', '.join(_OF_SEARCH)}, and with feedback = 'prf' those of ColbertPRF"
            )
        return None
    hints = get_type_hints(METHODS[feedback]) if feedback in METHODS else {}
    for name, value in tuning.items():
        if not fits(value, hints.get(name, Any)):
            raise InputError(f"{name} must be {describe_type(hints[name])}, found {value!r}")
    return make_feedback(feedback, **tuning)


@system("colbert", check=feedback_of, models=("model",))
def colbert(
    context: Context,
    *,
    feedback: str | None = None,
    bits: int | None = None,
    model: str | None = None,
    preset: Preset | None = None,
    probes: int | None = None,
    rescore: int | None = None,
    threads: int | None = None,
    query_weights: bool = True,
    **tuning: Any,
) -> Retriever:
    """ColBERT over its index; ``tuning`` has the fields of the feedback method, such as ``weight`` or ``rerank``."""
    method = feedback_of(feedback, **tuning)
    given = {"probes": probes, "rescore": rescore, "threads": threads}
    options = {name: value for name, value in given.items() if value is not None}
    searcher = context.searcher(bits, preset=preset, model=model, query_weights=query_weights)
    return searcher.with_defaults(feedback=method, **options)
