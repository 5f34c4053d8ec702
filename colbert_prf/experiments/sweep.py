"""The paper's parameter studies: clusters and vectors added, feedback documents, weight or β; Ranker and ReRanker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from colbert_prf.encoder.base import available_cores
from colbert_prf.errors import InputError
from colbert_prf.evaluation.measures import Measure, measure_queries, parse_measures
from colbert_prf.evaluation.order import ranks_as_scores
from colbert_prf.evaluation.tables import Cell, Column, Row, Table
from colbert_prf.experiments.experiment import Judged
from colbert_prf.feedback import ColbertPRF
from colbert_prf.index import Index
from colbert_prf.progress import progress_bar
from colbert_prf.search.budget import Budget, Execution, default_probes, default_rescore
from colbert_prf.search.candidates import find_candidates
from colbert_prf.search.first_pass import PrunedPass
from colbert_prf.search.retriever import RUN_DEPTH
from colbert_prf.search.scorer import TopDocuments
from colbert_prf.types import EncodedQuery, Expansion, Hit, Ranking

__all__ = ["GRID", "STUDIES", "KeptFirstPass", "Sweep", "run_sweep", "sweep_settings", "trimmed", "varied_values"]


class KeptFirstPass:
    """One query, searched once; each clustering of its best documents is made once.

    Parameters
    ----------
    index
        What to search.
    query
        Encoded.
    k
        Documents per ranking, at least as many as feedback learns from.
    threads, executor
        What to compute with.
    """

    def __init__(self, index: Index, query: EncodedQuery, k: int, *, threads: int, executor: Executor) -> None:
        budget = Budget(default_probes(k, index.num_vectors), default_rescore(k), widen=True)
        execution = Execution({"threads": threads, "executor": executor})
        self._collection, self._query, self._k, self._execution = index.snapshot, query, k, execution
        self._first = PrunedPass(find_candidates(self._collection, query, k, budget, execution), k, budget, execution)
        self._first.finish()
        self._best = self._first.best(k)
        self._expansions: dict[ColbertPRF, Expansion] = {}

    @property
    def scores(self) -> dict[str, float]:
        """The documents of the first pass."""
        return self._scores(self._best)

    def scores_again(self, method: ColbertPRF) -> dict[str, float]:
        """The documents after feedback, as a search with this method finds them."""
        expansion = trimmed(self._clustered(method), method)
        if not len(expansion):
            return self.scores
        if method.rerank:
            return self._scores(self._first.score_again(expansion, self._k, depth=method.rerank_depth, rescore=None))
        return self._scores(self._first.find_again(expansion, self._k, rescore=None))

    def _clustered(self, method: ColbertPRF) -> Expansion:
        """Every representative of the documents it learns from: what f_e, weights and the second pass do not change."""
        key = replace(method, expansion_vectors=method.clusters, weight=1.0, beta=None, rerank=False)
        if key not in self._expansions:
            hits = map(Hit, self._collection.doc_ids_of(self._best.positions), self._best.scores.tolist())
            ranking = Ranking(self._query, tuple(hits))
            self._expansions[key] = key.expand(self._query, ranking, self._collection, workers=self._execution.workers)
        return self._expansions[key]

    def _scores(self, documents: TopDocuments) -> dict[str, float]:
        doc_ids = self._collection.doc_ids_of(documents.positions)
        return dict(zip(doc_ids, documents.scores.tolist(), strict=True))


def trimmed(expansion: Expansion, method: ColbertPRF) -> Expansion:
    """The first vectors of an expansion, as many and as heavy as a method wants; they come by falling σ."""
    kept, start, query = expansion.vectors[: method.expansion_vectors], expansion.num_original, expansion.query
    if not kept:
        return expansion
    end = start + len(kept)
    original = EncodedQuery(query.token_ids[:start], query.vectors[:start], query.weights[:start])
    weights = method.weights_of(original, np.array([vector.sigma for vector in kept]))
    whole = EncodedQuery(query.token_ids[:end], query.vectors[:end], np.concatenate([original.weights, weights]))
    vectors = tuple(replace(one, weight=float(weight)) for one, weight in zip(kept, weights, strict=True))
    return Expansion(whole, vectors, expansion.feedback)


GRID: dict[str, tuple[float, ...]] = {
    "clusters": (8, 16, 24, 32, 64),
    "expansion_vectors": (2, 4, 6, 8, 10, 15, 20, 24),
    "feedback_docs": (1, 2, 3, 5, 7, 10),
    "weight": (0, 0.02, 0.05, 0.1, 0.15, 0.2, 0.5, 1),
    "beta": (0, 0.02, 0.05, 0.1, 0.2, 0.5, 1),
}
"""Values of each parameter unless others are asked for."""

STUDIES: dict[str, tuple[str, ...]] = {
    "expansion": ("clusters", "expansion_vectors"),
    "feedback_docs": ("feedback_docs",),
    "weight": ("weight",),
    "beta": ("beta",),
}
"""What each study varies; the rest stays as it is."""

VARIED = ("feedback_docs", "clusters", "expansion_vectors", "weight", "beta")


def varied_values(setting: ColbertPRF) -> dict[str, float | None]:
    """The parameters that studies vary; of ``weight`` and ``beta`` the one that is not in force is None.

    >>> varied_values(ColbertPRF(beta=1))
    {'feedback_docs': 1, 'clusters': 24, 'expansion_vectors': 20, 'weight': None, 'beta': 1}
    """
    return {**{name: getattr(setting, name) for name in VARIED}, setting.strength.name: setting.strength.value}


@dataclass(frozen=True, eq=False)
class Sweep:
    """What a study found.

    Parameters
    ----------
    studies
        The settings of each study, by its name.
    measures
        In the order given.
    means
        A mean by each measure, for each setting.
    margins
        Half of the 95 % confidence interval, over topics, of the mean difference from the first pass, by each measure,
        for each setting; 0 for a single topic, which tells nothing of others.
    first_pass
        A mean by each measure, before feedback.
    num_topics
        Averaged over.
    """

    studies: Mapping[str, tuple[ColbertPRF, ...]]
    measures: tuple[Measure, ...]
    means: Mapping[ColbertPRF, npt.NDArray[np.float64]]
    margins: Mapping[ColbertPRF, npt.NDArray[np.float64]]
    first_pass: npt.NDArray[np.float64]
    num_topics: int

    def mean(self, setting: ColbertPRF) -> float:
        """The mean of a setting by the first measure."""
        return float(self.means[setting][0])

    def margin(self, setting: ColbertPRF) -> float:
        """The margin of a setting by the first measure."""
        return float(self.margins[setting][0])

    def table(self) -> Table:
        """A row for each study and setting, and one for the first pass."""
        titles = ("study", "system", *VARIED)
        none = np.zeros_like(self.first_pass)
        rows = [Row(("", "first pass", *("" for _ in VARIED)), _cells(self.first_pass, none))]
        for study, settings in self.studies.items():
            for one in settings:
                system = "ReRanker" if one.rerank else "Ranker"
                values = ("" if value is None else f"{value:g}" for value in varied_values(one).values())
                rows.append(Row((study, system, *values), _cells(self.means[one], self.margins[one])))
        columns = (name for measure in self.measures for name in (measure.name, f"{measure.name} ±"))
        return Table(titles, tuple(map(Column, columns)), tuple(rows))


def _cells(means: npt.NDArray[np.float64], margins: npt.NDArray[np.float64]) -> tuple[Cell, ...]:
    """Each mean, and beside it its margin."""
    return tuple(map(Cell, np.stack([means, margins], axis=1).ravel().tolist()))


def sweep_settings(
    grid: Mapping[str, Sequence[float]], studies: Sequence[str], *, base: ColbertPRF | None = None
) -> dict[str, tuple[ColbertPRF, ...]]:
    """The settings of each study: those of its parameters that make sense together, as Ranker and as ReRanker.

    Parameters
    ----------
    grid
        Values by parameter; see ``GRID``.
    studies
        Names in ``STUDIES``.
    base
        What stays as it is; the defaults if left out.

    Examples
    --------
    >>> found = sweep_settings({"clusters": [8, 24], "expansion_vectors": [4, 10]}, ["expansion"])
    >>> [(one.clusters, one.expansion_vectors, one.rerank) for one in found["expansion"]][:3]
    [(8, 4, False), (24, 4, False), (24, 10, False)]
    """
    base = base or ColbertPRF()
    # Written out, so that a setting of two studies is equal in both and run once.
    base = replace(base, **{base.strength.name: base.strength.value})  # type: ignore[arg-type]
    found: dict[str, tuple[ColbertPRF, ...]] = {}
    for study in studies:
        if study not in STUDIES:
            raise InputError(f"there is no study {study!r}; choose {', '.join(STUDIES)}")
        combinations: list[dict[str, Any]] = [{}]
        for name in STUDIES[study]:
            combinations = [{**known, name: value} for known in combinations for value in grid[name]]
        # More vectors than clusters cannot be added.
        kept = [one for one in combinations if one.get("expansion_vectors", 0) <= one.get("clusters", np.inf)]
        if not kept:
            raise InputError(f"the study {study!r} has no setting with at most as many vectors added as clusters")
        if study in ("weight", "beta"):
            kept = [{"weight": None, "beta": None, **one} for one in kept]
        found[study] = tuple(replace(base, **one, rerank=rerank) for rerank in (False, True) for one in kept)
    return found


def run_sweep(
    index: Index,
    judged: Judged,
    studies: Mapping[str, Sequence[ColbertPRF]],
    measures: Sequence[str] = ("MAP",),
    *,
    relevance: int = 1,
    k: int = RUN_DEPTH,
    progress: bool = True,
) -> Sweep:
    """Measure every setting of every study over all topics.

    A topic is searched once, and its best documents are clustered once for each number of documents and clusters; a
    setting costs its second pass alone.

    Parameters
    ----------
    index
        With the model its vectors are of.
    judged
        Topics and judgements, from :func:`~colbert_prf.experiments.experiment.judged_topics`.
    studies
        From :func:`sweep_settings`.
    measures, relevance
        As :func:`~colbert_prf.evaluation.evaluate` takes them.
    k
        Documents per topic.
    progress
        Whether a bar may be shown.
    """
    parsed = parse_measures(measures, relevance=relevance)
    settings = list(dict.fromkeys(one for found in studies.values() for one in found))
    if k < max(one.feedback_docs for one in settings):
        raise InputError(f"k must be at least as large as the number of feedback documents, found {k}")
    if index.encoder is None:
        raise InputError("the index has no encoder, which a study needs for its topics")
    queries = index.encoder.encode_queries(judged.topics.values())
    values = []
    with (
        ThreadPoolExecutor(available_cores()) as executor,
        progress_bar("Studying", total=len(judged.topics), unit="topics", shown=progress) as advance,
    ):
        for query_id, query in zip(judged.topics, queries, strict=True):
            kept = KeptFirstPass(index, query, k, threads=available_cores(), executor=executor)
            found = [kept.scores, *(kept.scores_again(setting) for setting in settings)]
            values.append(_measured(parsed, judged.qrels[query_id], found))
            advance(1)
    measured = np.array(values)  # of shape (num_topics, num_measures, 1 + num_settings)
    means, margins = measured.mean(axis=0), margins_of(measured - measured[:, :, :1])
    return Sweep(
        {name: tuple(found) for name, found in studies.items()},
        parsed,
        dict(zip(settings, means[:, 1:].T, strict=True)),
        dict(zip(settings, margins[:, 1:].T, strict=True)),
        means[:, 0],
        len(values),
    )


def margins_of(differences: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Half of the 95 % confidence interval of the mean over the first axis, by Student's t.

    Four differences with a standard deviation of 2 and t = 3.182 with three degrees of freedom: 3.182 · 2 / √4.

    >>> float(margins_of(np.array([1 - 3**0.5, 1 - 3**0.5, 1 + 3**0.5, 1 + 3**0.5])).round(3))
    3.182
    """
    from scipy.stats import t

    num_topics = len(differences)
    if num_topics < 2:
        return np.zeros_like(differences[0])
    spread: npt.NDArray[np.float64] = differences.std(axis=0, ddof=1)
    return np.asarray(t.ppf(0.975, num_topics - 1) * spread / np.sqrt(num_topics))


def _measured(
    measures: Sequence[Measure], grades: Mapping[str, int], found: Sequence[Mapping[str, float]]
) -> npt.NDArray[np.float64]:
    """Each measure of each ranking of one topic: to ir_measures, rankings are queries with the same judgements."""
    names = [str(number) for number in range(len(found))]
    qrels = dict.fromkeys(names, grades)
    return measure_queries(
        measures, qrels, {name: ranks_as_scores(one) for name, one in zip(names, found, strict=True)}
    )
