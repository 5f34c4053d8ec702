"""Figures of results: bars of measures, differences query by query, lines and heat maps of a parameter study."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from colbert_prf.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["LinePanel", "plot_bars", "plot_differences", "plot_heat_map", "plot_lines"]

Floats = npt.NDArray[np.float64]

# Okabe and Ito's colours, told apart without red and green; lines differ in their marks as well.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#000000", "#999933")
MARKS = "os^Dv<>P"
GAIN, LOSS, PALE, QUIET, GRID = "#0072B2", "#D55E00", "#7A93A6", "#6F6F6F", "#E4E4E4"
BESIDE = 0.11
"""How far lines with bars stand beside each other, where the values of x are at a distance of 1."""
ROW, TOP, BOTTOM = 0.27, 0.75, 0.55
"""Of a figure of bars, in inches: the height of a bar, and the space above and below."""


@dataclass(frozen=True, eq=False)
class LinePanel:
    """Lines over one parameter.

    Parameters
    ----------
    title, label
        Over the panel, and of its horizontal axis.
    lines
        Points (x, y) of each line, by its name.
    baseline, baseline_name
        A horizontal line, such as the first pass; none if left out.
    positions
        Values of x that are to stand at equal distances, as those of a scale that is not even; None for a plain axis.
    margins
        Half the height of the bar at each point of a line, by its name; without bars if left out. Lines with bars stand
        a little beside each other, so that no bar covers another.
    """

    title: str
    label: str
    lines: Mapping[str, Sequence[tuple[float, float]]]
    baseline: float | None = None
    baseline_name: str = ""
    positions: Sequence[float] | None = None
    margins: Mapping[str, Sequence[float]] | None = None


def plot_bars(
    title: str, systems: Sequence[str], values: Mapping[str, Sequence[float]], *, pale: Collection[str] = ()
) -> Figure:
    """Draw a panel of horizontal bars for each measure, a bar for each system, the first on top.

    Parameters
    ----------
    title
        Of the figure.
    systems
        Names of the bars.
    values
        A value for each system, by the name of the measure.
    pale
        Systems drawn in a paler colour, such as those of others.

    Examples
    --------
    >>> figure = plot_bars("Vaswani", ["first pass", "Ranker"], {"MAP": [0.3, 0.4], "nDCG@10": [0.5, 0.5]})
    >>> len(figure.axes)
    2
    """
    height = ROW * len(systems) + TOP + BOTTOM
    width = 2.2 * len(values) + 0.075 * max(map(len, systems)) + 0.4
    figure = _figure((width, height))
    left = (0.075 * max(map(len, systems)) + 0.25) / width
    grid = {"left": left, "right": 1 - 0.15 / width, "top": 1 - TOP / height, "bottom": BOTTOM / height, "wspace": 0.12}
    axes = figure.subplots(1, len(values), sharey=True, squeeze=False, gridspec_kw=grid)[0]
    places = np.arange(len(systems))
    colours = [PALE if system in pale else COLOURS[0] for system in systems]
    for axis, (measure, numbers) in zip(axes, values.items(), strict=True):
        axis.barh(places, numbers, height=0.72, color=colours)
        best = max(numbers)
        for place, number in zip(places, numbers, strict=True):
            weight = "bold" if f"{number:.3f}" == f"{best:.3f}" else "normal"
            axis.text(
                number, place, f"{number:.3f} ", va="center", ha="right", fontsize=8, color="white", fontweight=weight
            )
        axis.set_title(measure, fontsize=10)
        axis.set_xlim(0, max(1e-9, best) * 1.04)
        _plain(axis, "x")
    axes[0].set_yticks(places, systems, fontsize=9)
    axes[0].set_ylim(len(systems) - 0.4, -0.6)
    for text in axes[0].get_yticklabels():
        text.set_parse_math(False)
    figure.suptitle(title, x=0.01, ha="left", fontsize=12, fontweight="bold", parse_math=False)
    return figure


def plot_differences(title: str, baseline: str, measure: str, values: Mapping[str, Floats]) -> Figure:
    """Draw for each system how much each query gained or lost against a baseline, the largest gain first.

    Parameters
    ----------
    title, baseline, measure
        Names: of the figure, of what is compared with, and of what is measured.
    values
        The differences of each system, one per query, in any order.

    Examples
    --------
    >>> figure = plot_differences("Vaswani", "first pass", "MAP", {"Ranker": np.array([0.1, -0.2, 0.0])})
    >>> [text.get_text() for text in figure.axes[0].texts]
    ['1 gain, 1 equal, 1 loss; mean -0.033']
    """
    columns = min(3, len(values))
    rows = -(-len(values) // columns)
    height = 2.1 * rows + 0.9
    figure = _figure((4.3 * columns, height))
    grid = {"left": 0.62 / (4.3 * columns), "right": 0.985, "top": 1 - 0.85 / height, "bottom": 0.3 / height}
    axes = figure.subplots(rows, columns, squeeze=False, sharey=True, gridspec_kw={**grid, "hspace": 0.35})
    limit = max(0.05, *(float(np.abs(one).max()) for one in values.values())) * 1.25
    for axis, (system, differences) in zip(axes.flat, values.items(), strict=False):
        ordered = np.sort(differences)[::-1]
        axis.bar(np.arange(len(ordered)), ordered, width=0.9, color=np.where(ordered >= 0, GAIN, LOSS))
        axis.axhline(0, color=QUIET, linewidth=0.8)
        gains, losses = int((ordered > 1e-9).sum()), int((ordered < -1e-9).sum())
        told = (
            f"{_counted(gains, 'gain')}, {len(ordered) - gains - losses} equal, {_counted(losses, 'loss')}; "
            f"mean {ordered.mean():+.3f}"
        )
        axis.text(0.985, 0.95, told, transform=axis.transAxes, ha="right", va="top", fontsize=8, color=QUIET)
        axis.set_title(system, fontsize=9.5, parse_math=False)
        axis.set_ylim(-limit, limit)
        axis.set_xticks([])
        _plain(axis, "y")
    for axis in axes.flat[len(values) :]:
        axis.remove()
    for axis in axes[:, 0]:
        axis.set_ylabel(f"Δ {measure}", fontsize=9)
    shown = f"{title}: {measure} of each query against {baseline}"
    figure.suptitle(shown, x=0.01, ha="left", fontsize=12, fontweight="bold", parse_math=False)
    return figure


def plot_lines(title: str, measure: str, panels: Sequence[LinePanel], *, note: str = "") -> Figure:
    """Draw panels of lines side by side, two in a row; those of a row have one scale.

    Parameters
    ----------
    title, measure
        Of the figure and of the vertical axes.
    panels
        At least one.
    note
        A line under the title, such as what bars mean.

    Examples
    --------
    >>> panel = LinePanel("Ranker", "vectors added", {"K = 8": [(2, 0.3), (4, 0.4)]}, baseline=0.25)
    >>> len(plot_lines("Vaswani", "MAP", [panel]).axes)
    1
    """
    if not panels:
        raise InputError("a figure needs a panel, found none")
    columns = min(2, len(panels))
    rows = -(-len(panels) // columns)
    height = 4.1 * rows + 0.65
    figure = _figure((5.6 * columns, height))
    grid = {"left": 0.78 / (5.6 * columns), "right": 0.985, "top": 1 - 0.9 / height, "bottom": 1.0 / height}
    axes = figure.subplots(
        rows, columns, squeeze=False, sharey="row", gridspec_kw={**grid, "hspace": 0.5, "wspace": 0.06}
    )
    for axis, panel in zip(axes.flat, panels, strict=False):
        _draw_lines(axis, panel)
    for axis in axes.flat[len(panels) :]:
        axis.remove()
    for axis in axes[:, 0]:
        axis.set_ylabel(measure, fontsize=10)
    figure.suptitle(title, x=0.01, y=1 - 0.12 / height, ha="left", fontsize=12, fontweight="bold", parse_math=False)
    figure.text(0.01, 1 - 0.36 / height, note, va="top", fontsize=8.5, color=QUIET, parse_math=False)
    return figure


def plot_heat_map(
    title: str,
    measure: str,
    row_label: str,
    rows: Sequence[object],
    column_label: str,
    columns: Sequence[object],
    values: Floats,
    *,
    baseline: float | None = None,
    uncertain: npt.NDArray[np.bool_] | None = None,
) -> Figure:
    """Draw a table of values as colours with the numbers in them; NaN is left blank.

    Parameters
    ----------
    title, measure
        Of the figure and of its scale.
    row_label, rows, column_label, columns
        What rows and columns are, and the value each stands for.
    values
        Of shape (num_rows, num_columns).
    baseline
        A value the middle of the scale stands for, so that better and worse are told apart by colour.
    uncertain
        Of the shape of ``values``: which numbers stand in brackets, because their difference from the baseline may be
        chance.

    Examples
    --------
    >>> values = np.array([[0.3, 0.4], [0.2, np.nan]])
    >>> len(plot_heat_map("Vaswani", "MAP", "K", [8, 4], "added", [4, 8], values).axes)
    2
    """
    figure = _figure((0.82 * len(columns) + 2.2, 0.5 * len(rows) + 1.6))
    axis = figure.subplots()
    limits: dict[str, Any] = {"cmap": "viridis"}
    if baseline is not None:
        spread = max(1e-6, float(np.nanmax(np.abs(values - baseline))))
        limits = {"cmap": "PuOr", "vmin": baseline - spread, "vmax": baseline + spread}
    image = axis.imshow(values, aspect="auto", **limits)
    axis.set_xticks(range(len(columns)), list(map(str, columns)))
    axis.set_yticks(range(len(rows)), list(map(str, rows)))
    axis.set_xlabel(column_label)
    axis.set_ylabel(row_label)
    best = np.nanmax(values)
    for row, column in np.argwhere(np.isfinite(values)).tolist():
        value = float(values[row, column])
        red, green, blue, _ = image.to_rgba(np.array([value]))[0]
        dark = 0.3 * red + 0.59 * green + 0.11 * blue < 0.55
        style: dict[str, Any] = {
            "color": "white" if dark else "black",
            "fontweight": "bold" if value == best else "normal",
        }
        shown = f"({value:.3f})" if uncertain is not None and uncertain[row, column] else f"{value:.3f}"
        axis.text(column, row, shown, ha="center", va="center", fontsize=8.5, **style)
    for side in axis.spines.values():
        side.set_visible(False)
    bar = figure.colorbar(image, ax=axis, pad=0.02)
    told = measure if baseline is None else f"{measure}; first pass {baseline:.3f}"
    if uncertain is not None:
        told += "\n(in brackets: the difference may be chance)"
    bar.set_label(told, fontsize=9)
    axis.set_title(title, fontsize=11, fontweight="bold", loc="left", parse_math=False)
    figure.tight_layout()
    return figure


def _draw_lines(axis: Axes, panel: LinePanel) -> None:
    places = {value: place for place, value in enumerate(panel.positions or ())}
    for number, (name, points) in enumerate(panel.lines.items()):
        style: dict[str, Any] = {"color": COLOURS[number % len(COLOURS)], "marker": MARKS[number % len(MARKS)]}
        if len(panel.lines) == 2:  # two that coincide can both be seen
            style |= {"linestyle": "--", "markersize": 4} if number else {"linewidth": 2.4, "markersize": 7}
        x, y = (np.array(values, np.float64) for values in zip(*points, strict=True))
        x = np.array([places.get(value, value) for value in x.tolist()])
        if panel.margins:
            x = x + (BESIDE * (number - (len(panel.lines) - 1) / 2) if places else 0)
            half = np.asarray(panel.margins[name])
            axis.vlines(x, y - half, y + half, color=style["color"], linewidth=1, alpha=0.55)
        axis.plot(x, y, **{"linewidth": 1.6, "markersize": 5, **style}, label=name)
    if panel.baseline is not None:
        axis.axhline(panel.baseline, color=QUIET, linestyle=":", linewidth=1.4, label=panel.baseline_name)
    if panel.positions is not None:
        axis.set_xticks(list(places.values()), [f"{value:g}" for value in places])
    axis.set_title(panel.title, fontsize=10.5, parse_math=False)
    axis.set_xlabel(panel.label, fontsize=10)
    axis.grid(color=GRID)
    axis.set_axisbelow(True)
    # Below the panel it covers no line.
    axis.legend(fontsize=8.5, frameon=False, ncols=3, loc="upper center", bbox_to_anchor=(0.5, -0.15))
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)


def _plain(axis: Axes, grid: Literal["x", "y"]) -> None:
    """Take away what a chart of bars does not need."""
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)
    axis.grid(axis=grid, color=GRID)
    axis.set_axisbelow(True)
    axis.tick_params(labelsize=8)


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}{'es' if what.endswith('s') else 's'}"


def _figure(size: tuple[float, float]) -> Figure:
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError("Drawing a figure", extra="plots") from error
    figure = Figure(figsize=size, dpi=100)
    FigureCanvasAgg(figure)
    return figure
