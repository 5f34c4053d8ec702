"""Measures of effectiveness: any expression of ir_measures, with one threshold of relevance for the binary ones."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from colbert_prf.errors import InputError, MissingExtraError

__all__ = ["DEFAULT_MEASURES", "Measure", "measure_queries", "parse_measures"]

DEFAULT_MEASURES = ("MAP", "nDCG@10", "MRR", "MRR@10", "R@1000")
"""Those of the ColBERT-PRF paper; its column "MRR@10" is reciprocal rank without a cut."""

_LARGEST_CUTOFF = 10**9
_EXAMPLES = "MAP, nDCG@10, P@5 or AP(rel=2)@100"

Values = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Measure:
    """A measure under the name its user gave it.

    Parameters
    ----------
    name
        As written, such as ``"MAP"``.
    implementation
        The measure of ir_measures, with the threshold of relevance.
    """

    name: str
    implementation: Any = field(repr=False)

    @property
    def expression(self) -> str:
        """All of the measure in the language of ir_measures, such as ``"AP(rel=2)"``."""
        return repr(self.implementation)


def parse_measures(expressions: Iterable[str], *, relevance: int = 1) -> tuple[Measure, ...]:
    """Read expressions of `ir_measures <https://ir-measur.es>`_.

    Parameters
    ----------
    expressions
        Such as ``"MAP"``, ``"nDCG@10"``, ``"P@5"``, ``"RR(rel=3)@10"``.
    relevance
        The lowest grade that counts as relevant in measures of relevant or not (AP, RR, R, P, ...), unless the
        expression has a ``rel`` of its own. Measures of graded gain (nDCG, ERR) use the grades as they are.

    Returns
    -------
    tuple of Measure
        In the order given; a name that comes twice is kept once.

    Raises
    ------
    InputError
        An unknown measure, a bad parameter, no measure at all.
    MissingExtraError
        Where ir_measures is not installed.

    Examples
    --------
    >>> [measure.expression for measure in parse_measures(["MAP", "nDCG@10", "P(rel=3)@5"], relevance=2)]
    ['AP(rel=2)', 'nDCG@10', 'P(rel=3)@5']
    """
    if relevance < 1:
        raise InputError(f"the lowest relevant grade must be 1 or more, found {relevance}; grade 0 is never relevant")
    names = dict.fromkeys(expression.strip() for expression in expressions)
    if not names:
        raise InputError(f"no measure to compute; name some, such as {_EXAMPLES}")
    return tuple(Measure(name, _parse(name, relevance)) for name in names)


def measure_queries(
    measures: Sequence[Measure],
    qrels: Mapping[str, Mapping[str, int]],
    run: Mapping[str, Mapping[str, float]],
) -> Values:
    """Compute each measure for each judged query; a query that the run lacks counts as one without documents.

    Parameters
    ----------
    measures
        From :func:`parse_measures`.
    qrels
        Grades of documents per query.
    run
        Scores of documents per query, without ties.

    Returns
    -------
    array of float64, shape (num_measures, num_queries)
        Queries in the order of ``qrels``.

    Examples
    --------
    >>> measures = parse_measures(["RR", "P@2"])
    >>> measure_queries(measures, {"q1": {"d1": 1}, "q2": {"d1": 1}}, {"q1": {"d2": 2.0, "d1": 1.0}})
    array([[0.5, 0. ],
           [0.5, 0. ]])
    """
    import ir_measures

    rows: dict[Any, list[int]] = {}
    for row, measure in enumerate(measures):
        rows.setdefault(measure.implementation, []).append(row)
    values = np.zeros((len(measures), len(qrels)))
    # Numbers for names: gdeval, which computes some measures, reads no others.
    judged = {str(number): dict(grades) for number, grades in enumerate(qrels.values(), start=1)}
    numbered = {number: run[query_id] for number, query_id in zip(judged, qrels, strict=True) if query_id in run}
    try:
        for metric in ir_measures.iter_calc(list(rows), judged, numbered):
            values[rows[metric.measure], int(metric.query_id) - 1] = metric.value
    except (ArithmeticError, AssertionError, OSError, TypeError, ValueError, subprocess.SubprocessError) as error:
        names = ", ".join(measure.name for measure in measures)
        raise InputError(f"ir_measures cannot compute {names}: {error}") from error
    return values


def _parse(name: str, relevance: int) -> Any:
    try:
        import ir_measures
    except ImportError:
        raise MissingExtraError("Computing measures", extra="evaluation") from None
    try:
        measure = ir_measures.parse_measure(name)
        threshold = measure.SUPPORTED_PARAMS.get("rel")
        # NumRet has a `rel` without default: given one, it would count something else. NumRel takes none but 1.
        counts = measure.NAME == "NumRel"
        if threshold is not None and threshold.default == 1 and "rel" not in measure.params and not counts:
            measure = measure(rel=relevance)
        _refuse_missing(measure, name)
        measure.validate_params()
    except NameError:
        raise InputError(f"there is no measure {name!r}; write an expression of ir_measures: {_EXAMPLES}") from None
    except InputError:
        raise
    except (AssertionError, KeyError, TypeError, ValueError) as error:
        raise InputError(f"cannot read the measure {name!r}: {error}; write one like {_EXAMPLES}") from None
    _check_parameters(measure, name)
    return measure


def _refuse_missing(measure: Any, name: str) -> None:
    for key, info in measure.SUPPORTED_PARAMS.items():
        if info.required and key not in measure.params:
            example = f"{name}@10" if key == "cutoff" else f"{name}({key}=...)"
            raise InputError(f"the measure {name!r} needs a {key}; write {example}")


def _check_parameters(measure: Any, name: str) -> None:
    """Refuse what would end the process: trec_eval crashes on a cutoff of 0."""
    cutoff, threshold = measure.params.get("cutoff", 1), measure.params.get("rel", 1)
    if not 1 <= cutoff <= _LARGEST_CUTOFF:
        raise InputError(f"the measure {name!r} is cut at {cutoff}; a cutoff is 1 or more")
    if threshold < 1:
        raise InputError(f"the measure {name!r} has rel={threshold}; the lowest relevant grade is 1 or more")
