"""Figures of results show the numbers they were given."""

from __future__ import annotations

import numpy as np
import pytest

from colbert_prf.errors import InputError
from colbert_prf.plots import LinePanel, plot_bars, plot_differences, plot_heat_map, plot_lines


def test_bars_are_as_long_as_the_values_and_the_best_is_bold():
    figure = plot_bars("t", ["old", "new"], {"MAP": [0.25, 0.5], "P@5": [0.4, 0.2]})
    first, second = figure.axes
    assert [bar.get_width() for bar in first.patches] == [0.25, 0.5]
    assert [(text.get_text().strip(), text.get_fontweight()) for text in second.texts] == [
        ("0.400", "bold"),
        ("0.200", "normal"),
    ]
    assert [label.get_text() for label in first.get_yticklabels()] == ["old", "new"]


def test_differences_are_sorted_and_counted():
    figure = plot_differences("t", "old", "MAP", {"new": np.array([-0.5, 0.25, 0.0, 0.5])})
    (axis,) = figure.axes
    assert [bar.get_height() for bar in axis.patches] == [0.5, 0.25, 0.0, -0.5]
    assert axis.texts[0].get_text() == "2 gains, 1 equal, 1 loss; mean +0.062"


def test_lines_and_their_baseline():
    panel = LinePanel("t", "x", {"K = 8": [(1, 0.1), (3, 0.3)], "K = 9": [(3, 0.2)]}, 0.15, "first pass", [1, 3])
    (axis,) = plot_lines("t", "MAP", [panel]).axes
    one, other, base = axis.lines
    assert (one.get_xdata().tolist(), one.get_ydata().tolist()) == ([0, 1], [0.1, 0.3])
    assert other.get_xdata().tolist() == [1]
    assert set(base.get_ydata()) == {0.15}
    assert [label.get_text() for label in axis.get_xticklabels()] == ["1", "3"]
    assert [text.get_text() for text in axis.get_legend().get_texts()] == ["K = 8", "K = 9", "first pass"]
    with pytest.raises(InputError, match="needs a panel"):
        plot_lines("t", "MAP", [])


def test_bars_at_the_points_of_a_line_are_as_high_as_its_margins():
    lines = {"a": [(0, 0.1), (2, 0.4)], "b": [(0, 0.1), (2, 0.3)]}
    panel = LinePanel("t", "x", lines, 0.1, "first pass", [0, 2], {"a": [0.0, 0.2], "b": [0.0, 0.05]})
    figure = plot_lines("t", "MAP", [panel], note="what the bars are")
    (axis,) = figure.axes
    (_, one), (_, other) = (bars.get_segments() for bars in axis.collections)
    assert (one[:, 1].tolist(), other[:, 1].tolist()) == (pytest.approx([0.2, 0.6]), pytest.approx([0.25, 0.35]))
    assert one[0, 0] < 1 < other[0, 0]  # beside each other, around the second value
    assert [text.get_text() for text in figure.texts] == ["t", "what the bars are"]


def test_a_heat_map_leaves_gaps_blank_and_marks_the_best():
    values = np.array([[0.1, np.nan], [0.3, 0.2]])
    axis = plot_heat_map("t", "MAP", "K", [8, 24], "f", [2, 4], values, baseline=0.2).axes[0]
    shown = {text.get_position(): (text.get_text(), text.get_fontweight()) for text in axis.texts}
    assert shown == {(0, 0): ("0.100", "normal"), (0, 1): ("0.300", "bold"), (1, 1): ("0.200", "normal")}
    assert axis.images[0].get_clim() == pytest.approx((0.1, 0.3))


def test_a_heat_map_puts_what_may_be_chance_in_brackets():
    values, uncertain = np.array([[0.1, 0.2]]), np.array([[False, True]])
    axis = plot_heat_map("t", "MAP", "K", [8], "f", [2, 4], values, baseline=0.2, uncertain=uncertain).axes[0]
    assert [text.get_text() for text in axis.texts] == ["0.100", "(0.200)"]
