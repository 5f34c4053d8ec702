"""Figures, drawn with matplotlib: arrays in, a ``matplotlib.figure.Figure`` out. Needs the extra ``[plots]``."""

from colbert_prf.plots.expansion import Contrast, Panel, plot_expansion
from colbert_prf.plots.files import save_figure
from colbert_prf.plots.projection import Projection, fit_projection
from colbert_prf.plots.results import LinePanel, plot_bars, plot_differences, plot_heat_map, plot_lines

__all__ = [
    "Contrast",
    "LinePanel",
    "Panel",
    "Projection",
    "fit_projection",
    "plot_bars",
    "plot_differences",
    "plot_expansion",
    "plot_heat_map",
    "plot_lines",
    "save_figure",
]
