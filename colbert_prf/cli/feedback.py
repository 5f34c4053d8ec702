"""The options of every command that takes feedback, and the method they describe."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, TypeVar

import click

from colbert_prf.errors import InputError
from colbert_prf.feedback import Feedback
from colbert_prf.feedback.clustering import CLUSTERINGS
from colbert_prf.feedback.methods import METHODS, make_feedback
from colbert_prf.feedback.strength import DEFAULT_AS_PUBLISHED
from colbert_prf.feedback.weighting import WEIGHTINGS

__all__ = [
    "absolute_beta_option",
    "feedback_from",
    "feedback_options",
    "marking_options",
    "text_options",
    "tuning_option",
]

Command = TypeVar("Command", bound=Callable[..., Any])

_COUNT, _AMOUNT = click.IntRange(min=1), click.FloatRange(min=0)
_AS_PUBLISHED = f"{DEFAULT_AS_PUBLISHED.name} {DEFAULT_AS_PUBLISHED.value}"
_TUNING: dict[str, tuple[click.ParamType[Any], str]] = {
    "feedback_docs": (_COUNT, "Passages learned from: the best of the first pass."),
    "clusters": (_COUNT, "Clusters of their vectors, K."),
    "expansion_vectors": (_COUNT, "Vectors added to the query, at most as many as clusters."),
    "weight": (
        _AMOUNT,
        "What the added vectors weigh together, relative to the query: 0.5 is half as much as the query; 0 leaves the "
        "ranking alone.",
    ),
    "beta": (
        _AMOUNT,
        "The paper's β, instead of --weight: an added vector weighs β·σ, so with 0.5 one of σ = 4 weighs 2, as much as "
        "two query vectors of weight 1.",
    ),
    "clustering": (click.Choice(CLUSTERINGS), "How vectors are clustered."),
    "weighting": (click.Choice(WEIGHTINGS), "What weighs an added vector, σ."),
    "compat": (click.Choice(["paper"]), f"Cluster as the authors' code does; the default is then {_AS_PUBLISHED}."),
}
"""Names are those of fields of the classes in ``METHODS``."""


def tuning_option(name: str, *, multiple: bool = False) -> Callable[[Command], Command]:
    """The option for one parameter of a feedback method; its help names the default of each method that has it."""
    kind, text = _TUNING[name]
    flag = "--" + name.replace("_", "-")
    return click.option(flag, name, type=kind, multiple=multiple, help=f"{text}{_defaults(name)}")


def absolute_beta_option(command: Command) -> Command:
    """The option ``--absolute-beta`` of old, which says what to write instead."""

    def refuse(context: click.Context, parameter: click.Parameter, given: bool) -> None:
        if given:
            raise click.UsageError(
                "--absolute-beta is gone: --beta is now the paper's β without it, and --weight what --beta alone was."
            )

    return click.option("--absolute-beta", is_flag=True, hidden=True, expose_value=False, callback=refuse)(command)


def feedback_options(command: Command) -> Command:
    """The options from which :func:`feedback_from` makes a feedback method."""
    options = [
        click.option(
            "--feedback", type=click.Choice(list(METHODS)), help="Learn from the best passages and search again."
        ),
        click.option(
            "--rerank",
            is_flag=True,
            help="Only score the passages of the first pass again; do not search the index again.",
        ),
        *(tuning_option(name) for name in _TUNING),
        absolute_beta_option,
    ]
    for option in reversed(options):
        command = option(command)
    return command


def marking_options(command: Command) -> Command:
    """The options by which a person says what is relevant."""
    command = click.option(
        "--non-relevant", metavar="ID", multiple=True, help="A passage to move away from; may be repeated."
    )(command)
    return click.option(
        "--relevant", metavar="ID", multiple=True, help="A passage to learn from, instead of the best; may be repeated."
    )(command)


def text_options(command: Command) -> Command:
    """The options by which a person gives texts to learn from."""
    command = click.option(
        "--with-passages", is_flag=True, help="With --feedback-text: learn from the best passages as well."
    )(command)
    return click.option(
        "--feedback-text",
        metavar="TEXT",
        multiple=True,
        help="A text to learn from, such as an answer a language model wrote, instead of the best passages; may be "
        "repeated.",
    )(command)


def feedback_from(options: Mapping[str, Any]) -> Feedback | None:
    """Make the feedback method the options ask for.

    Parameters
    ----------
    options
        The values of :func:`feedback_options` by name, None where one was not given; and those of
        :func:`marking_options`, if the command has them. Other names are passed over.

    Returns
    -------
    feedback
        None if none was asked for.

    Raises
    ------
    click.UsageError
        If an option was given that the method does not have, or a value it refuses.

    Examples
    --------
    >>> feedback_from({"feedback": "prf", "clusters": 8, "rerank": True}).clusters
    8
    >>> feedback_from({"feedback": None}) is None
    True
    """
    given = {name: options[name] for name in _TUNING if options.get(name) is not None}
    if options.get("rerank"):
        given["rerank"] = True
    if (chosen := options.get("feedback")) is None:
        marked = [name for name in ("relevant", "non_relevant", "feedback_text") if options.get(name)]
        if unused := [*given, *marked]:
            raise click.UsageError(f"{_flag(unused[0])} needs a feedback method: add --feedback prf.")
        return None
    _refuse_foreign(given, chosen)
    try:
        return make_feedback(chosen, **given)
    except InputError as error:
        raise click.UsageError(_in_flags(str(error))) from error


def _refuse_foreign(given: Mapping[str, Any], chosen: str) -> None:
    known = {field.name for field in fields(METHODS[chosen])}
    for name in given:
        if name not in known:
            others = " or ".join(other for other, method in METHODS.items() if hasattr(method, name))
            raise click.UsageError(f"{_flag(name)} does not apply to --feedback {chosen}, only to {others}.")
    if "weight" in given and "beta" in given:
        raise click.UsageError("give --weight, relative to the query, or --beta, the paper's, not both.")
    if "compat" in given and "clustering" in given:
        raise click.UsageError("--clustering does not apply to --compat paper, which clusters in its own way.")


def _defaults(name: str) -> str:
    """The default of a parameter, once where all methods agree, and which methods have it."""
    found = {label: _default(method, name) for label, method in METHODS.items() if hasattr(method, name)}
    only = "" if len(found) == len(METHODS) else f" With {' or '.join(found)} only."
    if set(found.values()) == {None}:
        return only
    first, *others = found.items()
    more = "".join(f", {value} with {label}" for label, value in others if value != first[1])
    return f" Default: {first[1]}{more}.{only}"


def _default(method: type[Feedback], name: str) -> object:
    strength = method().strength
    return strength.value if name == strength.name else getattr(method, name)


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def _in_flags(message: str) -> str:
    """An error of the library in the words of the command line."""
    return re.sub(rf"\b({'|'.join(_TUNING)})\b", lambda name: _flag(name[0]), message)
