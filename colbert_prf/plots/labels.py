"""Where to write beside points so that little is covered: each label in turn takes its best place, a few times over."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["place_labels"]

Floats = npt.NDArray[np.float64]

DIRECTIONS = np.radians(np.arange(0, 360, 22.5))
GAPS = (2.0, 9.0, 18.0, 30.0, 44.0, 60.0)
"""From the edge of a point to the edge of its label, in the unit of the points."""
ROUNDS = 8
OUTSIDE, OVER_LABEL, OVER_DISC, OVER_POINT, PER_GAP = 20.0, 6.0, 3.0, 0.15, 0.012
"""What it costs to stick out of the bounds or to cover a label or a labelled point, by the share of the label; to cover
another point; and to be away."""
MANY = 6
"""Points from which on covering more is no worse: in a crowd a label has to stand somewhere."""


def place_labels(
    anchors: npt.ArrayLike,
    radii: npt.ArrayLike,
    sizes: npt.ArrayLike,
    obstacles: npt.ArrayLike,
    bounds: tuple[float, float, float, float],
) -> Floats:
    """Choose the centre of each label.

    Parameters
    ----------
    anchors, radii
        The points labelled, of shape (n, 2), and how large each is, of shape (n,).
    sizes
        Width and height of the labels, of shape (n, 2).
    obstacles
        Other points, better not covered, of shape (m, 2); the anchors are in any case.
    bounds
        Left, bottom, right and top of where labels may be.

    Returns
    -------
    centres
        Of shape (n, 2).

    Examples
    --------
    Two points at the same place: the labels do not cover each other.

    >>> centres = place_labels([[50, 50], [50, 50]], [1, 1], [[20, 8], [20, 8]], np.empty((0, 2)), (0, 0, 100, 100))
    >>> apart = np.abs(centres[0] - centres[1])
    >>> bool(apart[0] >= 20 or apart[1] >= 8)
    True
    """
    anchors, radii, sizes = (np.asarray(values, dtype=np.float64) for values in (anchors, radii, sizes))
    points = np.asarray(obstacles, dtype=np.float64).reshape(-1, 2)
    choices, fixed = [], []
    discs = np.repeat(2 * radii[:, np.newaxis], 2, axis=1)
    for anchor, radius, size in zip(anchors, radii, sizes, strict=True):
        centres, distances = _candidates(anchor, radius, size)
        over_discs = OVER_DISC * _overlaps(centres, size, anchors, discs)
        over_points = OVER_POINT * np.minimum(_covered(centres, size, points), MANY)
        choices.append(centres)
        fixed.append(PER_GAP * distances + OUTSIDE * _outside(centres, size, bounds) + over_discs + over_points)
    chosen = np.array([centres[cost.argmin()] for centres, cost in zip(choices, fixed, strict=True)])
    for _ in range(ROUNDS):
        before = chosen.copy()
        for number in range(len(chosen)):
            others = np.arange(len(chosen)) != number
            overlap = _overlaps(choices[number], sizes[number], chosen[others], sizes[others])
            chosen[number] = choices[number][(fixed[number] + OVER_LABEL * overlap).argmin()]
        if np.array_equal(before, chosen):
            break
    return chosen.reshape(-1, 2)


def _candidates(anchor: Floats, radius: float, size: Floats) -> tuple[Floats, Floats]:
    """Centres around a point, and how far the label then is from it."""
    directions = np.stack([np.cos(DIRECTIONS), np.sin(DIRECTIONS)], axis=1)
    # The nearer of the two sides of the label's box that a ray from its centre meets.
    with np.errstate(divide="ignore"):
        reach = np.min(size / 2 / np.abs(directions), axis=1)
    gaps = np.repeat(GAPS, len(directions))
    steps = radius + gaps + np.tile(reach, len(GAPS))
    return anchor + np.tile(directions, (len(GAPS), 1)) * steps[:, np.newaxis], gaps


def _outside(centres: Floats, size: Floats, bounds: tuple[float, float, float, float]) -> Floats:
    low, high = np.array(bounds[:2]), np.array(bounds[2:])
    over = np.maximum(low - (centres - size / 2), 0) + np.maximum(centres + size / 2 - high, 0)
    return np.asarray((over / size).sum(axis=1))


def _covered(centres: Floats, size: Floats, points: Floats) -> Floats:
    """How many points a label covers."""
    inside = (np.abs(centres[:, np.newaxis] - points) < size / 2).all(axis=2)
    return np.asarray(inside.sum(axis=1), dtype=np.float64)


def _overlaps(centres: Floats, size: Floats, others: Floats, sizes: Floats) -> Floats:
    """How much of a label other labels cover, summed."""
    room = (size + sizes) / 2 - np.abs(centres[:, np.newaxis] - others)
    shared = np.clip(room, 0, np.minimum(size, sizes))
    share = shared.prod(axis=2) / size.prod()
    # A touch is already bad: half a letter covered is a letter unread.
    return np.asarray((share + 0.2 * (share > 0)).sum(axis=1))
