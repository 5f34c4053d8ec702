"""The paper's figure of feedback: query, feedback passages and the centroids that stand for them, in two dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from colbert_prf.encoder.text import valid_document
from colbert_prf.errors import InputError, MissingExtraError
from colbert_prf.plots.labels import place_labels
from colbert_prf.plots.projection import Projection, fit_projection
from colbert_prf.types import Vectors

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["Contrast", "Panel", "plot_expansion"]

Floats = npt.NDArray[np.float64]

# Okabe and Ito's colours, told apart without red and green; the shapes differ as well.
QUERY, AUGMENTATION, FEEDBACK, CENTROID, CONTRAST = "#000000", "#D55E00", "#56B4E9", "#009E73", "#AA3377"
QUERY_TEXT, CENTROID_TEXT, QUIET = "#000000", "#00583F", "#6F6F6F"
SIZES = (14.0, 260.0)
"""Areas of centroids with σ of 0 and with the largest, in square points."""
WIDTH, HEIGHT, TOP, BOTTOM, LEGEND_LINE = 6.4, 5.4, 0.75, 0.45, 0.215
"""Of a panel, and above and below the panels, in inches; the legend has one column under each panel."""
POINTS_PER_INCH = 72
LINE_FROM = 6.0
"""A label farther from its point than so many points gets a line to it."""


@dataclass(frozen=True, eq=False)
class Panel:
    """The centroids of one clustering.

    Parameters
    ----------
    title
        Such as ``K = 24``.
    vectors, labels, sigmas
        One of each for every centroid; the area of a point grows with σ.
    chosen
        Which are added to the query, drawn filled and in bold, of shape (num_centroids,); all if left out.
    """

    title: str
    vectors: Vectors
    labels: Sequence[str]
    sigmas: npt.NDArray[np.float64]
    chosen: npt.NDArray[np.bool_] | None = None

    def __post_init__(self) -> None:
        chosen = len(self.vectors) if self.chosen is None else len(self.chosen)
        if not len(self.vectors) == len(self.labels) == len(self.sigmas) == chosen:
            raise InputError(
                f"a panel needs a label and a σ for each vector, found {len(self.vectors)} vectors, "
                f"{len(self.labels)} labels, {len(self.sigmas)} σ and {chosen} chosen"
            )


@dataclass(frozen=True, eq=False)
class Contrast:
    """A text from another context.

    Parameters
    ----------
    title
        What the legend says.
    vectors
        Of the text, of shape (n, dim).
    shared
        The vectors to be labelled, by their place among ``vectors``: tokens the text shares with the figure.
    twins
        Vectors of the same tokens in the feedback documents, of shape (m, dim), to be marked as well.
    """

    title: str
    vectors: Vectors
    shared: dict[int, str]
    twins: Vectors | None = None


def plot_expansion(
    title: str,
    query: Vectors,
    labels: Sequence[str],
    feedback: Vectors,
    panels: Sequence[Panel],
    *,
    augmentation: Vectors | None = None,
    contrast: Contrast | None = None,
) -> Figure:
    """Draw what feedback learned.

    The plane is that of the principal components of query, augmentation and feedback vectors; everything else is
    projected into it.

    Parameters
    ----------
    title
        Of the figure: the query.
    query, labels
        Vectors of the query's tokens, of shape (num_tokens, dim), and their tokens.
    feedback
        Vectors of the feedback documents, of shape (n, dim).
    panels
        Drawn side by side, two in a row.
    augmentation
        Vectors of the tokens a query is filled up with, ``[MASK]``.
    contrast
        A text to compare with.

    Returns
    -------
    figure
        Not known to ``matplotlib.pyplot``: nothing global is changed, and nothing needs closing.

    Raises
    ------
    InputError
        If there is no panel, or a number of labels is wrong.
    MissingExtraError
        Without matplotlib.
    """
    if not panels or len(labels) != len(query):
        raise InputError(f"a figure needs a panel and a label per query vector, found {len(panels)} and {len(labels)}")
    masks = query[:0] if augmentation is None else augmentation
    projection = fit_projection(np.concatenate([query, masks, feedback]))
    largest = max(float(panel.sigmas.max(initial=0)) for panel in panels)
    scene = _Scene(projection, query, labels, masks, feedback, contrast, largest)
    kinds = 3 + bool(len(masks)) + 2 * (contrast is not None)
    figure, axes = _empty_figure(title, len(panels), kinds)
    drawings = [(ax, *_draw(ax, panel, scene)) for ax, panel in zip(axes, panels, strict=True)]
    _legend(figure, axes[0], min(len(panels), 2))
    # Labels come last: where there is room is known only once the limits of the shared axes are, which drawing sets.
    figure.draw_without_rendering()
    for drawing in drawings:
        _write_labels(*drawing)
    return figure


def _empty_figure(title: str, num_panels: int, num_kinds: int) -> tuple[Figure, list[Axes]]:
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError("Drawing a figure", extra="plots") from error
    columns = min(num_panels, 2)
    rows = -(-num_panels // columns)
    bottom = BOTTOM + LEGEND_LINE * -(-num_kinds // columns)
    width, height = columns * WIDTH, rows * HEIGHT + TOP + bottom
    figure = Figure(figsize=(width, height), dpi=100)
    FigureCanvasAgg(figure)
    figure.suptitle(valid_document(title), fontsize=14, fontweight="bold", y=1 - 0.22 / height, parse_math=False)
    edges = {"left": 0.35 / width, "right": 1 - 0.12 / width, "bottom": bottom / height, "top": 1 - TOP / height}
    grid = {**edges, "wspace": 0.08, "hspace": 0.16}
    axes = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True, gridspec_kw=grid)
    for ax in axes.flat[num_panels:]:
        ax.set_axis_off()
    return figure, list(axes.flat[:num_panels])


@dataclass(frozen=True, eq=False)
class _Scene:
    """What all panels share; ``largest`` is the largest σ of any."""

    projection: Projection
    query: Vectors
    labels: Sequence[str]
    masks: Vectors
    feedback: Vectors
    contrast: Contrast | None
    largest: float


@dataclass(frozen=True)
class _Label:
    """A text beside a point: where, how large the point is (radius in points), and how it looks."""

    point: Floats
    radius: float
    text: str
    style: dict[str, Any]


def _draw(ax: Axes, panel: Panel, scene: _Scene) -> tuple[list[_Label], Floats]:
    """Draw the points of a panel; what is still to be written, and the points better not covered, are returned."""
    written: list[_Label] = []
    style: dict[str, Any]
    points = scene.projection(scene.feedback)
    ax.scatter(
        points[:, 0], points[:, 1], s=13, c=FEEDBACK, alpha=0.55, linewidths=0, label="passage learned from", zorder=1
    )
    if scene.contrast is not None:
        written += _draw_contrast(ax, scene.contrast, scene.projection)
    written += _draw_centroids(ax, scene.projection(panel.vectors), panel, scene.largest)
    filled = scene.projection(scene.masks)
    if len(filled):
        style = {"marker": "^", "s": 26, "c": AUGMENTATION, "edgecolors": "white", "linewidths": 0.4}
        ax.scatter(filled[:, 0], filled[:, 1], **style, label="query augmentation", zorder=4)
    places = scene.projection(scene.query)
    ax.scatter(places[:, 0], places[:, 1], s=34, c=QUERY, edgecolors="white", linewidths=0.6, label="query", zorder=5)
    style = {"color": QUERY_TEXT, "fontweight": "bold", "fontsize": 10}
    written += [_Label(place, 3.5, text, style) for place, text in zip(places, scene.labels, strict=True)]
    ax.set_title(panel.title, fontsize=12, parse_math=False)
    first, second = (f"{share:.0%}" for share in scene.projection.explained)
    ax.set_xlabel(f"first component, {first} of variance", fontsize=9, color=QUIET)
    ax.set_ylabel(f"second component, {second}", fontsize=9, color=QUIET)
    ax.set(xticks=[], yticks=[])
    ax.margins(0.09)
    for side in ax.spines.values():
        side.set_color("#BBBBBB")
    return written, np.concatenate([points, filled])


def _draw_centroids(ax: Axes, points: Floats, panel: Panel, largest: float) -> list[_Label]:
    chosen = np.ones(len(points), np.bool_) if panel.chosen is None else panel.chosen
    areas = _areas(panel.sigmas, largest)
    ax.scatter(
        points[:, 0],
        points[:, 1],
        s=areas,
        c=[(CENTROID, 0.75) if use else ("white", 0.6) for use in chosen],
        edgecolors=CENTROID,
        linewidths=1.2,
        label="centroid, larger with σ; filled if added to the query",
        zorder=3,
    )
    strong = {"color": CENTROID_TEXT, "fontsize": 10}
    weak = {"color": QUIET, "fontsize": 8.5}
    rows = zip(points, areas, panel.labels, chosen, strict=True)
    return [_Label(point, np.sqrt(area) / 2, text, strong if use else weak) for point, area, text, use in rows]


def _draw_contrast(ax: Axes, contrast: Contrast, projection: Projection) -> list[_Label]:
    points = projection(contrast.vectors)
    shared = np.array(sorted(contrast.shared), dtype=np.intp)
    others = np.setdiff1d(np.arange(len(points)), shared)
    style: dict[str, Any] = {"marker": "x", "c": CONTRAST}
    ax.scatter(points[others, 0], points[others, 1], s=14, alpha=0.45, linewidths=0.9, **style, zorder=2)
    ax.scatter(points[shared, 0], points[shared, 1], s=60, linewidths=2.2, **style, label=contrast.title, zorder=6)
    if contrast.twins is not None and len(contrast.twins):
        twins = projection(contrast.twins)
        ring: dict[str, Any] = {"c": FEEDBACK, "edgecolors": CONTRAST, "linewidths": 1.4}
        ax.scatter(twins[:, 0], twins[:, 1], s=26, **ring, label="the same word in a passage", zorder=4)
    text: dict[str, Any] = {"color": CONTRAST, "fontweight": "bold", "fontsize": 10}
    return [_Label(points[place], 4, contrast.shared[int(place)], text) for place in shared]


def _areas(sigmas: npt.NDArray[np.float64], largest: float) -> Floats:
    """Areas that grow with σ, from 0 to the largest of all panels, so that panels compare."""
    low, high = SIZES
    return np.asarray(low + (high - low) * sigmas / max(largest, 1e-12), dtype=np.float64)


def _legend(figure: Figure, ax: Axes, columns: int) -> None:
    handles, names = ax.get_legend_handles_labels()
    legend = figure.legend(
        handles, names, loc="lower center", ncols=columns, fontsize=9.5, frameon=False, markerscale=1, handletextpad=0.5
    )
    for text in legend.get_texts():
        text.set_parse_math(False)


def _write_labels(ax: Axes, written: list[_Label], obstacles: Floats) -> None:
    """Write beside the points, with a thin line where a label had to move away."""
    figure = ax.get_figure()
    assert figure is not None  # it is drawn in one
    unit = figure.dpi / POINTS_PER_INCH
    texts = [ax.annotate(label.text, tuple(label.point), parse_math=False, **label.style) for label in written]
    extents = [text.get_window_extent() for text in texts]
    sizes = np.array([(box.width / unit + 2, box.height / unit) for box in extents])
    anchors = ax.transData.transform(np.array([label.point for label in written])) / unit
    others = ax.transData.transform(obstacles) / unit
    left, bottom, right, top = np.array(ax.get_window_extent().extents) / unit
    radii = [label.radius for label in written]
    centres = place_labels(anchors, radii, sizes, others, (left + 2, bottom + 2, right - 2, top - 2))
    for text, label, centre, anchor, size in zip(texts, written, centres, anchors, sizes, strict=True):
        text.remove()
        line = {"arrowstyle": "-", "color": label.style["color"], "lw": 0.6, "alpha": 0.7, "shrinkA": 0}
        gap = np.hypot(*np.maximum(np.abs(centre - anchor) - size / 2, 0)) - label.radius
        shown = ax.annotate(
            label.text,
            tuple(label.point),
            tuple(centre - anchor),
            textcoords="offset points",
            ha="center",
            va="center",
            zorder=7,
            parse_math=False,
            arrowprops={**line, "shrinkB": label.radius} if gap > LINE_FROM else None,
            **label.style,
        )
        _halo(shown)


def _halo(text: Any) -> None:
    """A white edge around letters, so that they can be read over points."""
    from matplotlib.patheffects import withStroke

    text.set_path_effects([withStroke(linewidth=2.2, foreground="white", alpha=0.85)])
