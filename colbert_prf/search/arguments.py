"""What a search is asked for, checked: every wrong argument is an error that says what to give instead."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, get_args

from colbert_prf.errors import InputError
from colbert_prf.feedback import Feedback
from colbert_prf.feedback.methods import make_feedback
from colbert_prf.index import Index, MemoryIndex
from colbert_prf.search.budget import Budget, default_probes, default_rescore
from colbert_prf.search.filters import Filter, parse_filter
from colbert_prf.search.grouping import Group
from colbert_prf.search.ivfpq import BITS
from colbert_prf.search.retriever import DEFAULT_K
from colbert_prf.types import EncodedDocument

__all__ = [
    "PRESETS",
    "Predicate",
    "Preset",
    "SearchOptions",
    "Where",
    "checked_filter",
    "checked_ids",
    "checked_preset",
    "checked_texts",
    "feedback_method",
    "marked_ids",
    "positive",
]

Predicate = Callable[[Mapping[str, Any]], bool]
Where = Mapping[str, Any] | Predicate
"""A filter as data, see :mod:`colbert_prf.search.filters`, or a test of a document's metadata."""
Preset = Literal["default", "paper"]
PRESETS: tuple[str, ...] = get_args(Preset)
LARGEST = 2**31 - 1
"""Of a number of documents, centroids or threads; no index has so many, and kernels count in 64 bits."""


@dataclass(frozen=True, kw_only=True)
class SearchOptions:
    """How a search is done, checked; what each option means, :class:`~colbert_prf.Searcher` says."""

    k: int = DEFAULT_K
    feedback: Feedback | None = None
    probes: int | None = None
    rescore: int | None = None
    exact: bool = False
    where: Filter | Predicate | None = None
    group: Group | None = None
    threads: int | None = None

    def __post_init__(self) -> None:
        if self.exact and (self.probes is not None or self.rescore is not None):
            raise InputError("exact=True scores every document: leave probes and rescore out")

    def changed(self, given: Mapping[str, Any]) -> SearchOptions:
        """The same options, except those that are given, as a caller writes them."""
        values, names = dict(given), [field.name for field in fields(self)]
        if unknown := [name for name in values if name not in names]:
            raise InputError(f"a searcher has no default {unknown[0]!r}; it has {', '.join(names)}")
        for name in ("k", "probes", "rescore", "threads"):
            if name in values and (values[name] is not None or name == "k"):
                values[name] = positive(name, values[name])
        if "feedback" in values:
            values["feedback"] = feedback_method(values["feedback"])
        if "where" in values:
            values["where"] = checked_filter(values["where"])
        return replace(self, **values) if values else self

    def budget(self, k: int, num_vectors: int, num_positions: int) -> Budget:
        """How many documents a first pass over a generation with so many vectors and positions looks at."""
        if self.exact:
            return Budget(None, max(1, num_positions))
        probes = self.probes or default_probes(k, num_vectors)
        return Budget(probes, self.rescore or default_rescore(k), widen=self.rescore is None)

    def check_preset(self, preset: str) -> None:
        """Refuse what the preset ``paper`` does not have."""
        if preset == "paper" and (self.rescore is not None or self.exact):
            name = "rescore" if self.rescore is not None else "exact"
            raise InputError(f"the preset 'paper' scores every candidate exactly: leave {name} out, or use no preset")


def checked_filter(where: Where | None) -> Filter | Predicate | None:
    """A filter, read from data where it was given so; or the function itself."""
    if where is None or isinstance(where, Filter):
        return where
    if isinstance(where, Mapping):
        return parse_filter(where)
    if callable(where):
        return where
    raise InputError(
        f'where must be a filter such as {{"year": {{">=": 2020}}}} or a function of metadata, found {where!r:.80}'
    )


def feedback_method(feedback: Feedback | str | Literal[False] | None) -> Feedback | None:
    """A feedback method, from its name where that was given."""
    if isinstance(feedback, str):
        return make_feedback(feedback)
    if feedback is None or feedback is False:
        return None
    if not isinstance(feedback, Feedback):
        raise InputError(f"feedback must be a feedback method such as ColbertPRF(), or its name, found {feedback!r}")
    return feedback


def marked_ids(
    feedback: Feedback | None, relevant: Sequence[str], non_relevant: Sequence[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The ids a person has marked, checked."""
    relevant, non_relevant = checked_ids("relevant", relevant), checked_ids("non_relevant", non_relevant)
    if both := set(relevant) & set(non_relevant):
        raise InputError(f"{min(both)!r} is marked as relevant and as not relevant; decide")
    if feedback is None and (relevant or non_relevant):
        raise InputError("relevant and non_relevant need a feedback method: give feedback=ColbertPRF()")
    return relevant, non_relevant


def checked_texts(
    feedback: Feedback | None, given: Sequence[str | EncodedDocument], *, with_passages: bool
) -> list[str | EncodedDocument]:
    """The texts that feedback learns from."""
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise InputError(f"feedback_texts must be a sequence of texts, such as ['Carp live long.'], found {given!r}")
    texts = list(given)
    if feedback is None and texts:
        raise InputError("feedback_texts need a feedback method: give feedback=ColbertPRF()")
    if with_passages and not texts:
        raise InputError("with_passages goes with feedback_texts; without these feedback learns from passages anyway")
    return texts


def checked_ids(name: str, doc_ids: Iterable[str]) -> tuple[str, ...]:
    """Ids of documents, as strings."""
    if isinstance(doc_ids, str) or not isinstance(doc_ids, Iterable):
        raise InputError(f"{name} must be a sequence of document ids, such as ['d1'], found {doc_ids!r}")
    ids = tuple(doc_ids)
    if wrong := [doc_id for doc_id in ids if not isinstance(doc_id, str)]:
        raise InputError(f"{name} must hold document ids, which are strings, found {wrong[0]!r}")
    return ids


def checked_preset(preset: str | None, index: Index | MemoryIndex) -> str:
    """The name of a preset that suits the index."""
    if preset is not None and preset not in PRESETS:
        raise InputError(f"preset must be one of {PRESETS}, found {preset!r}")
    stored = index.snapshot.on_disk if preset == "paper" else None
    if preset == "paper" and (stored is None or stored.codec.bits != BITS):
        found = "one in memory" if stored is None else f"one with bits={stored.codec.bits}"
        raise InputError(
            f"the preset 'paper' needs an index folder with bits={BITS}, found {found}; create one with "
            f"Index.create(path, documents, bits={BITS}) or `colbert-prf index CORPUS INDEX --bits {BITS}`"
        )
    return preset or "default"


def positive(name: str, value: int) -> int:
    """A whole number from 1 to 2³¹ - 1."""
    try:
        whole = operator.index(value)
    except TypeError:
        raise InputError(f"{name} must be a whole number, found {value!r}") from None
    if whole < 1:
        raise InputError(f"{name} must be at least 1, found {value}")
    if whole > LARGEST:
        raise InputError(f"{name} must be at most {LARGEST:,}, found {value}; the number of documents gives all")
    return whole
