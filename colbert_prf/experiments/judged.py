"""Topics with their judgements: what an experiment and a study are over."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from colbert_prf.datasets import read_qrels, read_topics
from colbert_prf.datasets.irds import is_irds
from colbert_prf.errors import DatasetWarning, InputError
from colbert_prf.evaluation.checks import check_qrels
from colbert_prf.experiments.config import Collection

__all__ = ["Judged", "judged_topics", "located", "read_judged"]


class Judged(NamedTuple):
    """Texts and grades of the same queries."""

    topics: dict[str, str]
    qrels: dict[str, dict[str, int]]


def located(name: str, folder: Path) -> str:
    """Where a file of a configuration is: under the data folder, unless it is a dataset of ir_datasets.

    Examples
    --------
    >>> located("irds:vaswani", Path("data")), located("vaswani/qrels.txt", Path("data"))
    ('irds:vaswani', 'data/vaswani/qrels.txt')
    """
    return name if is_irds(name) else str(folder / name)


def read_judged(collection: Collection, data: Path) -> Judged:
    """Read the topics of a collection and their judgements; see :func:`judged_topics`."""
    topics, qrels = read_topics(located(collection.topics, data)), read_qrels(located(collection.qrels, data))
    return judged_topics(topics, qrels, collection.relevance, collection.name)


def judged_topics(topics: Mapping[str, str], qrels: Mapping[str, dict[str, int]], relevance: int, name: str) -> Judged:
    """Keep what has both a text and judgements, and check before anything runs that something is relevant.

    Parameters
    ----------
    topics, qrels
        By query id.
    relevance
        The lowest relevant grade.
    name
        Of the collection, for messages.

    Raises
    ------
    InputError
        Where they share nothing, or nothing is relevant.

    Warns
    -----
    DatasetWarning
        Topics without judgements, judgements without topics.
    """
    both = [query_id for query_id in topics if query_id in qrels]
    if not both:
        raise InputError(
            f"{name}: none of the {len(topics)} topics (first: {next(iter(topics), None)!r}) is judged (first: "
            f"{next(iter(qrels))!r}); use the judgements of the same topics"
        )
    for what, more in (("topics have no judgements", set(topics)), ("judged queries have no topic", set(qrels))):
        if alone := sorted(more - set(both)):
            message = f"{name}: {len(alone)} of {len(more)} {what} (first: {alone[0]!r}); they are left out"
            warnings.warn(message, DatasetWarning, stacklevel=3)
    kept = {query_id: qrels[query_id] for query_id in both}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DatasetWarning)  # the evaluation will say it
        try:
            check_qrels(kept, relevance)
        except InputError as error:
            raise InputError(f"{name}: {error}") from error
    return Judged({query_id: topics[query_id] for query_id in both}, kept)
