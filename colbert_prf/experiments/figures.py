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
    note = f"Bars: 95 % confidence interval of the difference from the first pass over {sweep.num_topics} topics"
    return {"studies": plot_lines(title, sweep.measures[0].name, panels, note=note), **figures}


def _expansion_panel(sweep: Sweep, settings: list[ColbertPRF], system: str) -> LinePanel:
    """One line for each K over f_e, from the first pass on, to which nothing was added."""
    nothing = (0.0, float(sweep.first_pass[0]))
    by_clusters = {
        f"K = {clusters}": [one for one in settings if one.clusters == clusters]
        for clusters in _values(one.clusters for one in settings)
    }
    lines = {
        name: [nothing, *((one.expansion_vectors, sweep.mean(one)) for one in chosen)]
        for name, chosen in by_clusters.items()
    }
    margins = {name: [0.0, *map(sweep.margin, chosen)] for name, chosen in by_clusters.items()}
    added = [0.0, *_values(one.expansion_vectors for one in settings)]
    return LinePanel(system, ADDED, lines, nothing[1], "first pass", added, margins)


def _line_panel(sweep: Sweep, study: str, settings: Iterable[ColbertPRF]) -> LinePanel:
    """One line for the Ranker, one for the ReRanker."""
    lines: dict[str, list[tuple[float, float]]] = {name: [] for name in SYSTEMS.values()}
    margins: dict[str, list[float]] = {name: [] for name in SYSTEMS.values()}
    for one in settings:
        lines[SYSTEMS[one.rerank]].append((getattr(one, study), sweep.mean(one)))
        margins[SYSTEMS[one.rerank]].append(sweep.margin(one))
    values = _values(getattr(one, study) for one in settings)
    return LinePanel(TITLES[study], LABELS[study], lines, float(sweep.first_pass[0]), "first pass", values, margins)


def _heat_map(sweep: Sweep, settings: list[ColbertPRF], title: str) -> Figure:
    rows = _values(one.clusters for one in settings)
    columns = _values(one.expansion_vectors for one in settings)
    values = np.full((len(rows), len(columns)), np.nan)
    uncertain = np.zeros(values.shape, np.bool_)
    baseline = float(sweep.first_pass[0])
    for one in settings:
        cell = rows.index(one.clusters), columns.index(one.expansion_vectors)
        values[cell], uncertain[cell] = sweep.mean(one), abs(sweep.mean(one) - baseline) <= sweep.margin(one)
    return plot_heat_map(
        title, sweep.measures[0].name, CLUSTERS, rows, ADDED, columns, values, baseline=baseline, uncertain=uncertain
    )


def _values(found: Iterable[float]) -> list[float]:
    return sorted(set(found))
