"""Figures, drawn with matplotlib: arrays in, a ``matplotlib.figure.Figure`` out. Needs the extra ``[plots]``."""

from colbert_prf.plots.expansion import Contrast, Panel, plot_expansion
from colbert_prf.plots.files import save_figure
from colbert_prf.plots.projection import Projection, fit_projection

__all__ = ["Contrast", "Panel", "Projection", "fit_projection", "plot_expansion", "save_figure"]
