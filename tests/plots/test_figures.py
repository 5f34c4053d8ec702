"""Figures: what is put into them, where labels go, and which files are refused."""

from __future__ import annotations

import builtins

import numpy as np
import pytest

from colbert_prf import InputError, MissingExtraError
from colbert_prf.plots import Contrast, Panel, fit_projection, plot_expansion, save_figure
from colbert_prf.plots.labels import place_labels

RANDOM = np.random.default_rng(3)
NOWHERE = np.empty((0, 2))
BOUNDS = (0, 0, 200, 200)


def vectors(count: int) -> np.ndarray:
    rows = RANDOM.normal(size=(count, 8)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.fixture
def data():
    pytest.importorskip("matplotlib")
    panels = [
        Panel("K = 3", vectors(3), ["tank", "size", "$the$"], np.array([6.0, 3.0, 0.0]), np.array([True, True, False])),
        Panel("K = 2", vectors(2), ["a", "b"], np.array([1.0, 1.0])),
    ]
    return {
        "query": vectors(3),
        "labels": ["do", "gold", "##fish"],
        "feedback": vectors(40),
        "panels": panels,
        "augmentation": vectors(5),
        "contrast": Contrast("the war, for $5 or $6", vectors(4), {2: "tank"}, vectors(2)),
    }


def collections_of(figure, panel: int) -> dict[str, object]:
    return {collection.get_label(): collection for collection in figure.axes[panel].collections}


def points_of(collection) -> np.ndarray:
    return np.asarray(collection.get_offsets())


def test_the_projection_keeps_most_of_the_variance():
    rows = RANDOM.normal(size=(50, 6)) * [1, 5, 1, 3, 1, 1]
    projection = fit_projection(rows)
    values = np.sort(np.linalg.eigvalsh(np.cov(rows.T)))[::-1]
    assert projection(rows).var(axis=0, ddof=1) == pytest.approx(values[:2])
    assert projection.explained == pytest.approx(values[:2] / values.sum())
    assert projection.axes @ projection.axes.T == pytest.approx(np.eye(2))


def test_a_projection_does_not_depend_on_the_order_of_vectors():
    rows = vectors(20)
    assert fit_projection(rows)(rows) == pytest.approx(fit_projection(rows[::-1])(rows), abs=1e-5)


@pytest.mark.parametrize("rows", [np.zeros((0, 4)), np.zeros((3, 1)), np.zeros(3)])
def test_a_projection_needs_vectors(rows):
    with pytest.raises(InputError, match="found shape"):
        fit_projection(rows)


def test_even_one_vector_is_drawn():
    assert fit_projection(vectors(1))(vectors(2)).shape == (2, 2)


def test_the_figure_shows_the_projection_of_every_vector(data):
    figure = plot_expansion("do goldfish", **data)
    projection = fit_projection(np.concatenate([data["query"], data["augmentation"], data["feedback"]]))
    assert len(figure.axes) == 2
    for number, panel in enumerate(data["panels"]):
        shown = collections_of(figure, number)
        assert points_of(shown["query"]) == pytest.approx(projection(data["query"]))
        assert points_of(shown["query augmentation"]) == pytest.approx(projection(data["augmentation"]))
        assert points_of(shown["passage learned from"]) == pytest.approx(projection(data["feedback"]))
        (centroids,) = (found for label, found in shown.items() if label.startswith("centroid"))
        assert points_of(centroids) == pytest.approx(projection(panel.vectors))
        marked = shown[data["contrast"].title]
        assert points_of(marked) == pytest.approx(projection(data["contrast"].vectors[[2]]))
        twins = shown["the same word in a passage"]
        assert points_of(twins) == pytest.approx(projection(data["contrast"].twins))
        texts = {text.get_text() for text in figure.axes[number].texts}
        assert texts == {*data["labels"], *panel.labels, "tank"}


def test_labels_of_a_crowded_figure_do_not_cover_each_other(data):
    """As they are drawn, not as they were planned: the limits of the axes must be those of the finished figure."""
    from matplotlib.text import Text

    crowd = vectors(1) + 0.25 * vectors(24)
    panel = Panel("K = 24", crowd, [f"word{number}" for number in range(24)], np.linspace(0, 6, 24))
    figure = plot_expansion("do goldfish", **{**data, "panels": [panel]})
    figure.canvas.draw()
    (axis,) = figure.axes
    # Left, bottom, right and top of the words alone; of an annotation they would have its line as well.
    boxes = np.array([Text.get_window_extent(text).extents for text in axis.texts])
    assert len(boxes) == 24 + len(data["labels"]) + 1
    room = np.minimum(boxes[:, None, 2:], boxes[:, 2:]) - np.maximum(boxes[:, None, :2], boxes[:, :2])
    np.einsum("iij->ij", room)[:] = 0
    assert (room.min(axis=2) <= 1).all()  # pixels
    left, bottom, right, top = axis.get_window_extent().extents
    assert (boxes[:, :2] >= [left - 1, bottom - 1]).all()
    assert (boxes[:, 2:] <= [right + 1, top + 1]).all()


def test_a_centroid_is_larger_with_sigma_and_filled_if_added(data):
    figure = plot_expansion("do goldfish", **data)
    (centroids,) = (found for label, found in collections_of(figure, 0).items() if label.startswith("centroid"))
    tank, size, the = centroids.get_sizes()
    assert tank > size > the > 0
    assert tank - size == pytest.approx(size - the)
    (others,) = (found for label, found in collections_of(figure, 1).items() if label.startswith("centroid"))
    assert others.get_sizes()[0] == pytest.approx(the + (tank - the) / 6)
    fills = centroids.get_facecolors()[:, :3].tolist()
    assert fills[0] == fills[1] != fills[2] == [1, 1, 1]


def test_drawing_changes_nothing_global(data):
    import matplotlib as mpl
    from matplotlib import _pylab_helpers

    before = dict(mpl.rcParams)
    plot_expansion("do goldfish", **data)
    assert dict(mpl.rcParams) == before
    assert not _pylab_helpers.Gcf.figs


@pytest.mark.parametrize(
    ("suffix", "start"), [("png", b"\x89PNG\r\n\x1a\n"), ("svg", b"<?xml"), ("pdf", b"%PDF"), ("PNG", b"\x89PNG")]
)
def test_a_figure_is_written_by_its_suffix(data, tmp_path, suffix, start):
    path = tmp_path / f"figure.{suffix}"
    save_figure(plot_expansion("do goldfish", **data), path)
    content = path.read_bytes()
    assert content.startswith(start)
    assert len(content) > 5_000
    if suffix == "png":
        width, height = (int.from_bytes(content[at : at + 4], "big") for at in (16, 20))
        assert 1000 < height < width < 4000


def test_equal_figures_are_equal_files(data, tmp_path):
    for name in ("a.pdf", "b.pdf"):
        save_figure(plot_expansion("do goldfish", **data), tmp_path / name)
    assert (tmp_path / "a.pdf").read_bytes() == (tmp_path / "b.pdf").read_bytes()


def test_bad_names_are_refused(data, tmp_path):
    figure = plot_expansion("do goldfish", **data)
    (tmp_path / "folder.png").mkdir()
    for name, message in {
        "figure.jpeg": "a figure ends in .pdf, .png, .svg, found '.jpeg'",
        "figure": "found 'no suffix'",
        "nowhere/figure.png": "does not exist",
        "folder.png": "cannot be written: Is a directory",
    }.items():
        with pytest.raises(InputError, match=message):
            save_figure(figure, tmp_path / name)


def test_numbers_of_labels_are_checked(data):
    with pytest.raises(InputError, match="2 vectors, 1 labels"):
        Panel("K", vectors(2), ["a"], np.ones(2))
    with pytest.raises(InputError, match="a label per query vector, found 2 and 2"):
        plot_expansion("do goldfish", **{**data, "labels": ["do", "gold"]})
    with pytest.raises(InputError, match="needs a panel"):
        plot_expansion("do goldfish", **{**data, "panels": []})


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    real = builtins.__import__

    def without(name, *rest):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingExtraError, match=r"colbert-prf\[plots\]"):
        plot_expansion("q", vectors(1), ["q"], vectors(3), [Panel("K", vectors(1), ["a"], np.ones(1))])


def overlap(centres, sizes) -> float:
    """Of any two labels."""
    room = (sizes[:, None] + sizes) / 2 - np.abs(centres[:, None] - centres)
    np.einsum("iij->ij", room)[:] = 0
    return float(np.clip(room, 0, None).prod(axis=2).max())


def test_labels_of_crowded_points_do_not_cover_each_other():
    anchors, sizes = 100 + RANDOM.normal(size=(8, 2)), np.tile([40.0, 10.0], (8, 1))
    centres = place_labels(anchors, np.full(8, 3.0), sizes, NOWHERE, BOUNDS)
    assert overlap(centres, sizes) == 0
    assert np.abs(centres - anchors).max() < 100


def test_labels_stay_within_the_bounds():
    corners = np.array([[0, 0], [0, 200], [200, 0], [200, 200]])
    sizes = np.tile([30.0, 10.0], (4, 1))
    centres = place_labels(corners, np.ones(4), sizes, NOWHERE, BOUNDS)
    assert (centres - sizes / 2 >= 0).all()
    assert (centres + sizes / 2 <= 200).all()


def test_a_label_avoids_points():
    everywhere_but_left = np.array([[x, y] for x in range(100, 200, 6) for y in range(0, 200, 6)])
    (centre,) = place_labels([[99, 100]], [2], [[30, 10]], everywhere_but_left, BOUNDS)
    assert centre[0] + 15 <= 100


def test_no_labels_need_no_places():
    assert place_labels(NOWHERE, [], NOWHERE, NOWHERE, BOUNDS).shape == (0, 2)
