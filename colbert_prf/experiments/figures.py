"""The paper's figure of its parameter studies, and the same as heat maps."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from colbert_prf.experiments.sweep import Sweep
from colbert_prf.feedback import ColbertPRF
from colbert_prf.plots.results import LinePanel, plot_heat_map, plot_lines

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["sweep_figures"]


SYSTEMS = {False: "Ranker", True: "ReRanker"}
ADDED, CLUSTERS = "vectors added, $f_e$", "clusters, K"
TITLES = {"feedback_docs": "Passages learned from", "weight": "Weight", "beta": "β"}
LABELS = {
    "feedback_docs": "feedback passages, $f_b$",
    "weight": "weight of the vectors added, relative to the query",
    "beta": "β: a vector added weighs β·σ",
}


def sweep_figures(sweep: Sweep, title: str) -> dict[str, Figure]:
    """Draw every study: ``studies`` has a panel of lines for each, ``heat-ranker`` and ``heat-reranker`` K against f_e.

    Parameters
    ----------
    sweep
        What was found; its first measure is drawn.
    title
        Of the figures, such as the name of the collection.
    """
    panels: list[LinePanel] = []
    figures: dict[str, Figure] = {}
    for study, settings in sweep.studies.items():
        if study == "expansion":
            for rerank, system in SYSTEMS.items():
                chosen = [one for one in settings if one.rerank == rerank]
                panels.append(_expansion_panel(sweep, chosen, system))
                figures[f"heat-{system.lower()}"] = _heat_map(sweep, chosen, f"{title}: {system}")
        else:
            panels.append(_line_panel(sweep, study, settings))
    return {"studies": plot_lines(title, sweep.measures[0].name, panels), **figures}


def _expansion_panel(sweep: Sweep, settings: list[ColbertPRF], system: str) -> LinePanel:
    """One line for each K over f_e."""
    lines = {
        f"K = {clusters}": [(one.expansion_vectors, sweep.mean(one)) for one in settings if one.clusters == clusters]
        for clusters in _values(one.clusters for one in settings)
    }
    added = _values(one.expansion_vectors for one in settings)
    return LinePanel(system, ADDED, lines, float(sweep.first_pass[0]), "first pass", added)


def _line_panel(sweep: Sweep, study: str, settings: Iterable[ColbertPRF]) -> LinePanel:
    """One line for the Ranker, one for the ReRanker."""
    lines: dict[str, list[tuple[float, float]]] = {name: [] for name in SYSTEMS.values()}
    for one in settings:
        lines[SYSTEMS[one.rerank]].append((getattr(one, study), sweep.mean(one)))
    values = _values(getattr(one, study) for one in settings)
    return LinePanel(TITLES[study], LABELS[study], lines, float(sweep.first_pass[0]), "first pass", values)


def _heat_map(sweep: Sweep, settings: list[ColbertPRF], title: str) -> Figure:
    rows = _values(one.clusters for one in settings)
    columns = _values(one.expansion_vectors for one in settings)
    values = np.full((len(rows), len(columns)), np.nan)
    for one in settings:
        values[rows.index(one.clusters), columns.index(one.expansion_vectors)] = sweep.mean(one)
    baseline = float(sweep.first_pass[0])
    return plot_heat_map(title, sweep.measures[0].name, CLUSTERS, rows, ADDED, columns, values, baseline=baseline)


def _values(found: Iterable[float]) -> list[float]:
    return sorted(set(found))
